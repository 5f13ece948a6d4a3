#include "exam/nodes.h"

#include <distdoctor/address.h>

#include "rules/nccl/comm_id.h"
#include "rules/torch/rendezvous.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

namespace distdoctor::exam {
namespace {

void keep_channel(const NodeFacts& from, NodeFacts& to) {
  to.host = from.host;
  to.reached = from.reached;
  to.channel = from.channel;
  to.not_reached = from.not_reached;
  to.version = from.version;
  to.same_as = from.same_as;
  to.context = from.context;
  to.clock_offset_ms = from.clock_offset_ms;
  to.clock_error_ms = from.clock_error_ms;
}

// "node0:29400" without its port; "[fd00::1]:29400" without brackets too.
std::string host_of_endpoint(const std::string& endpoint) {
  if (endpoint.starts_with('[')) return endpoint.substr(1, endpoint.find(']') - 1);
  const bool one_colon = std::ranges::count(endpoint, ':') == 1;
  return one_colon ? endpoint.substr(0, endpoint.find(':')) : endpoint;
}

void add_name(const std::string& name, std::vector<std::string>& names) {
  if (name.empty() || Address::parse(name)) return;
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

}  // namespace

std::vector<NodeFacts> nodes_of(const std::vector<fleet::PeerState>& peers) {
  std::vector<NodeFacts> nodes;
  for (const fleet::PeerState& peer : peers) {
    NodeFacts node{.host = peer.host,
                   .reached = peer.reached,
                   .channel = peer.channel,
                   .not_reached = peer.not_reached,
                   .version = peer.version,
                   .same_as = peer.same_as,
                   .context = peer.context};
    node.clock_offset_ms = peer.clock_offset_ms;
    node.clock_error_ms = peer.clock_error_ms;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

void take_collected(const Observed<Answer>& answer, NodeFacts& node) {
  if (!answer.known()) {
    node.reached = false;
    node.not_reached = "its agent said hello, then: " + answer.why().text;
    return;
  }
  if (const auto* collected = std::get_if<NodeFacts>(&*answer)) {
    NodeFacts facts = *collected;
    keep_channel(node, facts);
    node = std::move(facts);
  }
}

void take_names(const Observed<Answer>& answer, NodeFacts& node) {
  if (!answer.known()) return;
  const auto* collected = std::get_if<NodeFacts>(&*answer);
  if (collected == nullptr || !collected->names.known()) return;
  std::vector<Resolution> rows = *collected->names;
  const std::size_t fresh = rows.size();
  if (node.names.known()) {
    for (const Resolution& old : *node.names) {
      const auto end = rows.begin() + static_cast<std::ptrdiff_t>(fresh);
      const auto found = std::ranges::find(rows.begin(), end, old.name, &Resolution::name);
      if (found == end) rows.push_back(old);
    }
  }
  node.names = std::move(rows);
}

void take_software(const Observed<Answer>& answer, NodeFacts& node) {
  if (!answer.known()) return;
  const auto* collected = std::get_if<NodeFacts>(&*answer);
  if (collected == nullptr) return;
  if (collected->software.known()) node.software = collected->software;
  if (collected->nccl_library.known()) node.nccl_library = collected->nccl_library;
}

std::vector<std::string> names_to_resolve(const JobSpec& job) {
  std::vector<std::string> names;
  const auto master = job.settings.find("MASTER_ADDR");
  if (master != job.settings.end()) add_name(master->second.value, names);
  for (const Launch& launch : job.launches) {
    add_name(launch.master_addr, names);
    add_name(host_of_endpoint(launch.rdzv_endpoint), names);
  }
  // As the rules will ask: variables in them are expanded.
  if (const auto meeting = rules::rendezvous_of(job)) add_name(meeting->host, names);
  const auto id = job.settings.find("NCCL_COMM_ID");
  if (id != job.settings.end()) add_name(rules::comm_id_host(id->second.value), names);
  return names;
}

std::vector<std::string> peers_to_resolve(const JobSpec& job) {
  constexpr std::size_t kFew = 32;
  constexpr std::size_t kOfMany = 8;
  const std::size_t most = job.peers.size() <= kFew ? kFew : kOfMany;
  std::vector<std::string> names;
  for (const std::string& peer : job.peers) {
    if (names.size() < most) add_name(peer, names);
  }
  return names;
}

}  // namespace distdoctor::exam
