// JSON of facts, requests and answers. Reading is strict: a wrong type, an integer out of range or
// an unknown enum name is an Error with its place ("nodes[0].links[2].mtu"); unknown keys are
// passed over, since a newer agent may say more; an absent key leaves the member as it was.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "base/error.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::codec {

inline constexpr std::size_t kMaxDepth = 32;
inline constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;  // a facts file

// The members of `part` that the text has overwrite those of `into`: so partial facts merge.
Result<void> read_into(std::string_view text, NodeFacts& into);
std::string write_node(const NodeFacts& node);
// Only the members whose Observed is known, and those of the collector's failure.
std::string write_cluster(const ClusterFacts& cluster);  // distdoctor-cluster/1
// Takes distdoctor-cluster/1 and distdoctor-facts/1 (one node). Several merge into one cluster;
// the same host twice is an Error that names it.
Result<ClusterFacts> read_facts_file(std::string_view text, std::string_view file_name);
Result<ClusterFacts> merge(std::vector<ClusterFacts> clusters);

std::string write_request(const Request& request);  // {"type": "listen", "body": {...}}
Result<Request> read_request(std::string_view text);
std::string write_answer(const Answer& answer);
Result<Answer> read_answer(std::string_view text);

}  // namespace distdoctor::codec
