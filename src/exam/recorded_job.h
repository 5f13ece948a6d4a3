// The job of a recording, under what is said about it today.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/job.h>

#include "rules/launch/settings.h"

namespace distdoctor::exam {

// Explicit words of today win over the recording; our own environment says nothing about machines
// that were recorded elsewhere. Facts of single nodes have no job: it is worked out of their own
// processes.
JobSpec job_of_recording(const ClusterFacts& cluster, const rules::Said& said);

// Where the job's libraries lie by what is said today, though they were looked for by what was said
// then, what was found is not the job's: the nodes' software becomes Unknown. `then` is the
// recording's own job.
void forget_other_libraries(const rules::Said& said, const JobSpec& then, ClusterFacts& cluster);

}  // namespace distdoctor::exam
