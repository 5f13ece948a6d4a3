// Which address Gloo takes (gloo tcp/device.cc createDevice as torch calls it, ProcessGroupGloo).
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/facts/predicted.h>
#include <distdoctor/job.h>

#include <string>

namespace distdoctor::rules {

// Unknown where the links, or the resolution of the own hostname, were not seen.
Observed<GlooChoice> gloo_choice(const NodeFacts& node, const Settings& settings);

}  // namespace distdoctor::rules
