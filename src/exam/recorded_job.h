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

}  // namespace distdoctor::exam
