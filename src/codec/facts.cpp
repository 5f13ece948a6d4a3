// Facts of nodes and clusters, whole and in parts.
#include "base/text.h"
#include "codec/codec.h"
#include "codec/read.h"
#include "codec/shapes.h"
#include "codec/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace distdoctor::codec {
namespace {

constexpr std::size_t kMaxPartBytes = std::size_t{16} << 20;
constexpr std::size_t kLongestHost = 255;

// Each member of a struct as JSON of its own.
class MemberTexts {
 public:
  template <class T>
  void operator()(std::string_view name, const T& member) {
    texts_.emplace_back(name, write_json(member));
  }
  static std::vector<std::pair<std::string, std::string>> of(const NodeFacts& node) {
    MemberTexts visitor;
    fields(visitor, node);
    return std::move(visitor.texts_);
  }

 private:
  std::vector<std::pair<std::string, std::string>> texts_;
};

ChoiceOrError choice_or_error(const Choice* choice, const std::string& error) {
  if (choice == nullptr) return {.error = {error}};
  return {.interface = {choice->interface}, .address = {choice->address}};
}

Observed<std::vector<HcaShape>> shown_hcas(const Prediction& prediction) {
  if (!prediction.hcas.known()) return prediction.hcas.why();
  std::vector<HcaShape> hcas;
  for (const HcaChoice& hca : prediction.hcas->used) {
    hcas.push_back({.device = hca.device,
                    .port = hca.port,
                    .link_layer = hca.roce ? "RoCE" : "IB",
                    .gid_index = hca.gid_index});
  }
  return hcas;
}

Observed<NcclShape> shown_nccl(const NodeFacts& node, const Prediction& prediction) {
  if (!prediction.nccl.known()) return prediction.nccl.why();
  const NcclChoice& choice = *prediction.nccl;
  const NcclLibrary library = node.nccl_library.known() ? *node.nccl_library : NcclLibrary{};
  const std::string& error = choice.net_socket_error;
  return NcclShape{.library = library.path,
                   .version = library.version,
                   .version_known = prediction.nccl_version_known,
                   .rules = choice.rules,
                   .bootstrap = choice_or_error(choice.bootstrap ? &*choice.bootstrap : nullptr,
                                                choice.bootstrap_error),
                   .net_socket = choice.net_socket,
                   .net_socket_error = {error.empty() ? std::nullopt : std::optional(error)},
                   .others = prediction.nccl_others,
                   .hca = shown_hcas(prediction)};
}

Observed<GlooShape> shown_gloo(const Prediction& prediction) {
  if (!prediction.gloo.known()) return prediction.gloo.why();
  const GlooChoice& choice = *prediction.gloo;
  const Choice* first = choice.devices.empty() ? nullptr : &choice.devices.front();
  return GlooShape{.first = choice_or_error(first, choice.error),
                   .devices = choice.devices,
                   .reason = choice.reason};
}

// A host's name reaches terminals, tables and fixes: what no machine is called is refused.
bool plausible_host(std::string_view host) {
  return !host.empty() && host.size() <= kLongestHost && printable(host) == host;
}

Result<ClusterFacts> one_node(Value root, std::string_view attempt) {
  ClusterFacts cluster;
  DD_TRY(read_value(root, cluster.nodes.emplace_back(), attempt));
  cluster.job.peers = {cluster.nodes.front().host};
  cluster.version = cluster.nodes.front().version;
  return cluster;
}

Result<void> check_hosts(const ClusterFacts& cluster, std::string_view attempt) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < cluster.nodes.size(); ++i) {
    const std::string& host = cluster.nodes[i].host;
    if (!plausible_host(host)) {
      return failure(attempt, "this is no node's name", fmt::format("nodes[{}].host", i));
    }
    if (!seen.insert(host).second) {
      return failure(attempt, fmt::format("the node '{}' is there twice", host),
                     fmt::format("nodes[{}].host", i));
    }
  }
  return {};
}

Result<ClusterFacts> by_schema(Value root, std::string_view attempt) {
  std::string schema;
  if (const auto found = root.find("schema")) {
    DD_TRY(read_value(*found, schema, attempt));
  }
  if (schema == kFactsSchema) return one_node(root, attempt);
  if (schema != kClusterSchema) {
    return failure(
        attempt, schema.empty()
                     ? fmt::format("no \"schema\" in it: it was not written by distdoctor")
                     : fmt::format("its schema is '{}'; this version reads {} and {}",
                                   printable(shortened(schema, 40)), kClusterSchema, kFactsSchema));
  }
  ClusterFacts cluster;
  DD_TRY(read_value(root, cluster, attempt));
  return cluster;
}

}  // namespace

Result<void> read_into(std::string_view text, NodeFacts& into) {
  DD_TRY(const Document document, Document::parse(text, kMaxPartBytes));
  return read_into(document.root(), into);
}

Result<void> read_into(Value part, NodeFacts& into) {
  NodeFacts merged = into;
  DD_TRY(read_value(part, merged, "read the facts of a node"));
  into = std::move(merged);
  return {};
}

std::string write_node(const NodeFacts& node) {
  return write_json(node);
}

std::string write_part(const NodeFacts& part) {
  static const auto kEmpty = MemberTexts::of(NodeFacts{});
  const auto members = MemberTexts::of(part);
  Writer writer;
  writer.begin('{');
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == kEmpty[i]) continue;
    writer.key(members[i].first);
    writer.raw(members[i].second);
  }
  writer.end('}');
  return writer.take();
}

std::string write_cluster(const ClusterFacts& cluster) {
  return indented(write_json(ClusterShape{.cluster = cluster}));
}

std::string write_facts(const NodeFacts& node, const Prediction* prediction) {
  NodeShape shape{.node = node};
  if (prediction != nullptr) {
    shape.nccl = shown_nccl(node, *prediction);
    shape.gloo = shown_gloo(*prediction);
  }
  return indented(write_json(shape));
}

Result<ClusterFacts> read_facts_file(std::string_view text, std::string_view file_name) {
  const std::string attempt = fmt::format("read {}", file_name);
  auto document = Document::parse(text, kMaxFileBytes);
  if (!document) return failure(attempt, document.error().reason, document.error().place);
  DD_TRY(ClusterFacts cluster, by_schema(document->root(), attempt));
  DD_TRY(check_hosts(cluster, attempt));
  return cluster;
}

Result<ClusterFacts> merge(std::vector<ClusterFacts> clusters) {
  ClusterFacts all;
  std::set<std::string> seen;
  for (ClusterFacts& cluster : clusters) {
    const std::vector<std::string> peers = std::move(all.job.peers);
    if (all.job == JobSpec{}) all.job = cluster.job;
    all.job.peers = peers;
    if (all.version.empty()) all.version = cluster.version;
    for (const std::string& peer : cluster.job.peers) {
      if (!seen.insert(peer).second) continue;
      all.job.peers.push_back(peer);
    }
    std::ranges::move(cluster.nodes, std::back_inserter(all.nodes));
    std::ranges::move(cluster.pairs, std::back_inserter(all.pairs));
    std::ranges::move(cluster.untried, std::back_inserter(all.untried));
    std::ranges::move(cluster.rdma_paths, std::back_inserter(all.rdma_paths));
    std::ranges::move(cluster.experiments, std::back_inserter(all.experiments));
  }
  DD_TRY(check_hosts(all, "put the recordings together"));
  return all;
}

}  // namespace distdoctor::codec
