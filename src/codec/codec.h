// JSON of facts, requests and answers. Reading is strict: a wrong type, an integer out of range or
// an unknown enum name is an Error with its place ("nodes[0].links[2].mtu"); unknown keys are
// passed over, since a newer agent may say more; an absent key leaves the member as it was.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "base/error.h"
#include "codec/json.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::codec {

inline constexpr std::string_view kFactsSchema = "distdoctor-facts/1";
inline constexpr std::string_view kClusterSchema = "distdoctor-cluster/1";
inline constexpr std::string_view kReportSchema = "distdoctor/1";
inline constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20;  // a facts file

// The members of `part` that the text has overwrite those of `into`: so partial facts merge. On an
// Error `into` is as it was.
Result<void> read_into(std::string_view text, NodeFacts& into);
Result<void> read_into(Value part, NodeFacts& into);
std::string write_node(const NodeFacts& node);
// Only the members that differ from those of an empty NodeFacts: what one collector has seen, or
// why it has not.
std::string write_part(const NodeFacts& part);

std::string write_cluster(const ClusterFacts& cluster);  // distdoctor-cluster/1
// One node with what each library would choose there (design.md 5b); distdoctor-facts/1.
// `prediction` may be null: then "nccl" and "gloo" are unknown.
std::string write_facts(const NodeFacts& node, const Prediction* prediction);

// Takes distdoctor-cluster/1 and distdoctor-facts/1 (one node). The file's name is for errors.
Result<ClusterFacts> read_facts_file(std::string_view text, std::string_view file_name);
// Several recordings as one cluster; the same host twice is an Error that names it.
Result<ClusterFacts> merge(std::vector<ClusterFacts> clusters);

// {"type": "listen", "body": {...}}, and its two values.
struct TypedBody {
  std::string_view type;
  std::string body;
};
TypedBody typed_body(const Request& request);
TypedBody typed_body(const Answer& answer);  // NodeFacts as write_part
std::string write_request(const Request& request);
Result<Request> read_request(std::string_view text);
Result<Request> read_request(Value json);
std::string write_answer(const Answer& answer);
Result<Answer> read_answer(std::string_view text);
Result<Answer> read_answer(Value json);

// The JSON Schema of one of the three, from the same `fields` that write it.
std::string json_schema(std::string_view schema);

}  // namespace distdoctor::codec
