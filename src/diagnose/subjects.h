// Whether two findings are about the same thing.
#pragma once

#include <distdoctor/finding.h>

#include <set>
#include <string>

namespace distdoctor::diagnose {

// The nodes that the subjects name, by themselves, in pairs or as a device's first part.
std::set<std::string> nodes_of(const Subjects& subjects);

// No subject at all is the whole job. Devices compare by (node, device) when both sides have them,
// pairs by equality in either direction when both sides have only pairs, else the nodes must meet.
bool overlap(const Subjects& a, const Subjects& b);

}  // namespace distdoctor::diagnose
