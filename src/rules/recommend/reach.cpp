#include "rules/recommend/reach.h"

#include <distdoctor/views.h>

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace distdoctor::rules {

namespace {

Address without_zone(Address address) {
  address.zone.clear();
  return address;
}

// "node1 takes lo (127.0.0.1)"
std::string takes(const NodeFacts& node, const Choice& choice) {
  return fmt::format("{} takes {} ({})", node.host, printable(choice.interface),
                     choice.address.text());
}

}  // namespace

bool usable(const Link& link, const LinkAddress& row) {
  const Address& address = row.address;
  return link.running && link.kind != LinkKind::loopback && !address.loopback() &&
         !address.link_local() && !row.tentative && !row.dad_failed;
}

std::string Network::text() const {
  return fmt::format("{}/{}", base.text(), prefix);
}

Network network_of(const Address& address, int prefix) {
  Network network{.base = without_zone(address), .prefix = prefix};
  for (int bit = prefix; bit < address.bits(); ++bit) {
    auto& byte = network.base.bytes.at(static_cast<std::size_t>(bit / 8));
    byte = static_cast<std::uint8_t>(byte & ~(0x80U >> static_cast<unsigned>(bit % 8)));
  }
  return network;
}

Reachability::Reachability(const std::vector<SeenNode>& seen, const std::vector<PairFacts>& pairs)
    : seen_(seen) {
  count_links();
  for (const PairFacts& pair : pairs) read_dials(pair);
}

void Reachability::count_links() {
  for (const SeenNode& seen : seen_) {
    std::set<Network> networks;
    std::set<Address> addresses;
    for (const Link& link : *seen.node->links) {
      for (const LinkAddress& row : link.addresses) {
        addresses.insert(without_zone(row.address));
        if (usable(link, row)) networks.insert(network_of(row.address, row.prefix));
      }
    }
    for (const Network& network : networks) ++nodes_in_[network];
    for (const Address& address : addresses) ++nodes_with_[address];
  }
}

// Dials to a port of the job say nothing about an address: nobody may be listening there yet.
void Reachability::read_dials(const PairFacts& pair) {
  for (const Dial& dial : pair.dials) {
    if (!dial.ours || dial.purpose == Purpose::master) continue;
    Tried& tried = tried_[{pair.to, without_zone(dial.address)}];
    if (dial.outcome == Outcome::ok) {
      tried.answered.insert(pair.from);
    } else {
      tried.in_vain = pair.from;
    }
  }
}

bool Reachability::common(const Network& network) const {
  const auto found = nodes_in_.find(network);
  return found != nodes_in_.end() && found->second == seen_.size();
}

Verdict Reachability::of_address(std::size_t index, const Choice& choice) const {
  const NodeFacts& node = *seen_.at(index).node;
  const Address address = without_zone(choice.address);
  if (seen_.size() == 1) return {.reach = Reach::on_link};
  if (address.loopback()) {
    return {Reach::broken, takes(node, choice) + ", which leads every node to itself"};
  }
  const auto holders = nodes_with_.find(address);
  if (holders != nodes_with_.end() && holders->second > 1) {
    return {Reach::broken, takes(node, choice) + ", an address that another node has too"};
  }
  const auto where = find_address(*node.links, address);
  if (!where || !where->link->running) {
    return {Reach::broken, takes(node, choice) + ", a link that is not running"};
  }
  const bool on_link =
      usable(*where->link, *where->address) && common(network_of(address, where->address->prefix));
  const auto found = tried_.find({node.host, address});
  if (found != tried_.end()) {
    const Tried& tried = found->second;
    if (!tried.in_vain.empty()) {
      return {on_link ? Reach::blocked : Reach::broken,
              fmt::format("{}, which {} dialled in vain", takes(node, choice), tried.in_vain)};
    }
    if (tried.answered.size() + 1 >= seen_.size()) return {.reach = Reach::proved};
  }
  if (on_link) return {.reach = Reach::on_link};
  if (found != tried_.end()) return {.reach = Reach::answered};
  return {Reach::unproved, takes(node, choice) + ", in a subnet that not every node is in"};
}

Verdict Reachability::of(const Choices& choices) const {
  Verdict worst;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (choices[i].empty()) {
      return {Reach::broken, seen_.at(i).node->host + " finds no interface"};
    }
    for (const Choice& choice : choices[i]) {
      Verdict verdict = of_address(i, choice);
      if (verdict.reach < worst.reach) worst = std::move(verdict);
    }
  }
  return worst;
}

}  // namespace distdoctor::rules
