// Names that a shell would not take as one word, planted in place of the usual ones: whatever a
// machine names must be quoted where it enters a command.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/finding.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

inline constexpr std::string_view kPlanted = ";x";  // a link may be called "eth0;x"

// Links, zones, labels, settings and the origins of settings ("pid 7;x"), in facts and predictions.
void plant_names(ClusterFacts& cluster);

// What of a text a shell reads as its own language: all that no quote takes away.
std::string unquoted(std::string_view command);

// The commands of a finding in which a planted name stands unquoted, those in `backticks` of its
// words for hands included.
std::vector<std::string> unsafe_commands(const Finding& finding);

}  // namespace distdoctor::testing
