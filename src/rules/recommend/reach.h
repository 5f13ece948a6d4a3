// How well the addresses that a library announces serve the other nodes, as far as facts tell.
#pragma once

#include <distdoctor/facts.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace distdoctor::rules {

// A node whose links were seen, with its prediction.
struct SeenNode {
  const NodeFacts* node;
  const Prediction* prediction;
};

// Whether other nodes may reach an address: not loopback, not link-local (169.254.0.0/16 is what
// servers use towards their own BMC), not tentative, on a link that runs.
bool usable(const Link& link, const LinkAddress& row);

struct Network {
  Address base = {};  // host bits zero
  int prefix = 0;
  [[nodiscard]] std::string text() const;
  auto operator<=>(const Network&) const = default;
};
Network network_of(const Address& address, int prefix);

// In rising worth. `blocked`: in common subnets, but something between refuses test traffic, so
// only another choice that was tried is better. `answered`: the nodes that were asked to dial it
// had an answer; above a number of nodes not all are asked.
enum class Reach : std::uint8_t { broken, blocked, unproved, answered, on_link, proved };

struct Verdict {
  Reach reach = Reach::proved;
  std::string culprit = {};  // "node1 takes lo (127.0.0.1), ...": what keeps it from being better
};

// What each node announces, in the order of the seen nodes.
using Choices = std::vector<std::vector<Choice>>;

class Reachability {
 public:
  Reachability(const std::vector<SeenNode>& seen, const std::vector<PairFacts>& pairs);

  // The worst of all. No choice on a node is broken; so is loopback, an address that two nodes
  // have and one that was dialled in vain, unless the node is alone.
  [[nodiscard]] Verdict of(const Choices& choices) const;
  // Whether every seen node has a usable address in it.
  [[nodiscard]] bool common(const Network& network) const;

 private:
  struct Tried {
    std::set<std::string_view> answered;  // the nodes that dialled it
    std::string_view in_vain = {};        // one that got no answer
  };
  using Key = std::tuple<std::string_view, Address>;

  [[nodiscard]] Verdict of_address(std::size_t index, const Choice& choice) const;
  void count_links();
  void read_dials(const PairFacts& pair);

  std::vector<SeenNode> seen_;
  std::map<Network, std::size_t> nodes_in_;    // nodes that have a usable address there
  std::map<Address, std::size_t> nodes_with_;  // nodes that have this very address
  std::map<Key, Tried> tried_;
};

}  // namespace distdoctor::rules
