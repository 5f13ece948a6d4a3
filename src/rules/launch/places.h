// What the job says of where its libraries and files are, for the collectors.
#pragma once

#include <distdoctor/facts.h>

#include "base/job_places.h"
#include "rules/launch/settings.h"

namespace distdoctor::rules {

// Of its launch line, its script, --env, or a launcher around us: what goes before each agent's own
// environment. What only the job's shell knows stands there as it was written (fill_in).
JobPlaces places_said(const Said& said, const JobSpec& job);

// With those that a node did not go by though they are in force there: of the coordinator's
// environment, or of a rank that lives on another node. `sent` itself where there are none.
JobPlaces places_in_force(const ClusterFacts& cluster,
                          const NodeFacts& node,
                          const JobPlaces& sent);

}  // namespace distdoctor::rules
