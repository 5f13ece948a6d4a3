#include "probe/plan.h"

#include <distdoctor/unresolved_master.h>
#include <distdoctor/untested.h>
#include <distdoctor/views.h>

#include "base/mix.h"
#include "probe/master_port.h"
#include "probe/plan_rdma.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace distdoctor::probe {
namespace {

// Long enough for all dials and paths; the report closes a set before.
constexpr int kHoldMs = 20'000;
constexpr int kMasterHoldMs = 2'000;
constexpr std::size_t kMostPathsPerPair = 4;
constexpr std::size_t kMostDuplicateAsks = 64;

// Different for each set, so that an answer tells who gave it.
class Nonces {
 public:
  explicit Nonces(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() { return mixed(state_ += kMixStep); }

 private:
  std::uint64_t state_;
};

// A node with what it announces; an address once, with all its purposes.
struct Offer {
  Choice choice;
  Purpose purpose;
  std::vector<Purpose> also;
  std::string listen;  // the id of its set
  std::uint64_t nonce;
};
struct Peer {
  const NodeFacts* node;
  std::vector<Offer> offers;
};

std::string set_name(const std::string& host, const Address& address) {
  return host + " " + address.text();
}

// Nobody can listen at an IPv6 address while duplicate address detection runs, or after it failed
// (RFC 4862, 5.4): the links of a container that just starts.
bool can_be_bound(const NodeFacts& node, const Address& address) {
  const auto at = node.links.known() ? find_address(*node.links, address) : std::nullopt;
  return !at || !(at->address->tentative || at->address->dad_failed);
}

std::vector<Offer> offers_of(const ClusterFacts& cluster, const NodeFacts& node, Nonces& nonces) {
  std::vector<Offer> offers;
  const Prediction* prediction = find_prediction(cluster, node.host);
  if (prediction == nullptr) return offers;
  for (const Announced& row : announced(cluster.job, *prediction)) {
    if (!can_be_bound(node, row.choice.address)) continue;
    const auto known = std::ranges::find_if(
        offers, [&](const Offer& offer) { return offer.choice.address == row.choice.address; });
    if (known == offers.end()) {
      offers.push_back(
          {row.choice, row.purpose, {}, set_name(node.host, row.choice.address), nonces.next()});
    } else if (known->purpose != row.purpose) {
      known->also.push_back(row.purpose);
    }
  }
  return offers;
}

// Whom node `i` of `n` dials, beginning after itself, so that not all begin with the same one.
std::vector<std::size_t> targets_of(std::size_t i, std::size_t n, const PlanLimits& limits) {
  std::vector<std::size_t> targets;
  if (std::cmp_less_equal(n, limits.all_pairs_up_to)) {
    for (std::size_t step = 1; step < n; ++step) targets.push_back((i + step) % n);
    return targets;
  }
  // A ring and a wider one, both ways: each direction of a tried pair is tried.
  const auto stride = static_cast<std::size_t>(std::sqrt(static_cast<double>(n)));
  for (const std::size_t step : {std::size_t{1}, stride, n - stride, n - 1}) {
    targets.push_back((i + step) % n);
  }
  return targets;
}

// The peer that a packet to `address` from `from` is meant to reach.
std::string owner_of(const ClusterFacts& cluster, const Address& address, const std::string& from) {
  if (address.loopback()) return from;
  const auto has = [&](const NodeFacts& node) { return has_address(node, address); };
  const NodeFacts* master = find_node(cluster, cluster.predicted.master->node);
  if (master != nullptr && has(*master)) return master->host;
  const auto found = std::ranges::find_if(cluster.nodes, has);
  return found == cluster.nodes.end() ? std::string() : found->host;
}

class Planner {
 public:
  Planner(const ClusterFacts& cluster, const PlanLimits& limits, std::uint64_t seed)
      : cluster_(cluster), limits_(limits), nonces_(seed) {}

  ProbePlan plan() {
    for (const NodeFacts& node : cluster_.nodes) {
      if (node.reached) peers_.push_back({&node, offers_of(cluster_, node, nonces_)});
    }
    plan_master();
    plan_announced();
    plan_duplicates();
    plan_rdma(cluster_, limits_, plan_);
    return std::move(plan_);
  }

 private:
  void leave_out(const std::string& node, std::string_view what, std::string why) {
    plan_.left_out.push_back(
        {node, std::string(what), {.kind = Why::not_collected, .text = std::move(why)}});
  }

  // Where this node's MASTER_ADDR leads; none: it could not be seen.
  std::optional<std::vector<Address>> master_addresses(const NodeFacts& node) const {
    const std::string& host = cluster_.predicted.master->host;
    if (const auto literal = Address::parse(host)) return {{*literal}};
    if (!node.names.known()) return std::nullopt;
    const auto row = std::ranges::find(*node.names, host, &Resolution::name);
    if (row == node.names->end() || !row->all.known()) return std::nullopt;
    return *row->all;
  }

  static std::string why_unresolved(const std::string& host) {
    const bool shells = host.find('$') != std::string::npos;
    return shells ? "only the job's own shell knows MASTER_ADDR" : std::string(kMasterUnresolved);
  }

  // One set an address that the master has: it listens, or it only watches.
  std::map<Address, PlannedListen> master_sets() {
    const Master& master = *cluster_.predicted.master;
    const bool bind = why_not_bind(cluster_, master).empty();
    const NodeFacts* node = find_node(cluster_, master.node);
    std::map<Address, PlannedListen> sets;
    if (node == nullptr || !node->reached || !node->links.known()) return sets;
    for (const Address& address : master.addresses) {
      if (!find_address(*node->links, address)) continue;
      const ListenRequest request{.id = "master " + set_name(master.node, address),
                                  .address = address,
                                  .port = master.port,
                                  .nonce = nonces_.next(),
                                  .watch_arrivals = true,
                                  .watch_only = !bind,
                                  .hold_ms = kMasterHoldMs};
      sets[address] = {master.node, request};
    }
    return sets;
  }

  void plan_master() {
    const auto& master = cluster_.predicted.master;
    if (!master || !master->port) return;
    if (*master->port == 0) return leave_out("", kMasterTraffic, "0 is no port");
    Round round{.dial_timeout_ms = limits_.dial_timeout_ms};
    const auto sets = master_sets();
    for (const auto& [address, listen] : sets) round.listens.push_back(listen);
    for (const Peer& peer : peers_) {
      const auto addresses = master_addresses(*peer.node);
      if (!addresses) leave_out(peer.node->host, kMasterTraffic, why_unresolved(master->host));
      for (const Address& address : addresses.value_or(std::vector<Address>{})) {
        PlannedDial dial{
            .from = peer.node->host,
            .to = owner_of(cluster_, address, peer.node->host),
            .target = {.purpose = Purpose::master, .address = address, .port = *master->port}};
        const auto set = sets.find(address);
        if (set != sets.end() && dial.to == set->second.host) {
          dial.listen = set->second.request.id;
          if (!set->second.request.watch_only) dial.target.nonce = set->second.request.nonce;
        }
        round.dials.push_back(std::move(dial));
      }
    }
    if (!round.dials.empty()) plan_.rounds.push_back(std::move(round));
  }

  void plan_announced() {
    if (peers_.size() < 2) return;
    Round round{.dial_timeout_ms = limits_.dial_timeout_ms,
                .path_timeout_ms = limits_.path_timeout_ms};
    for (const Peer& peer : peers_) {
      if (peer.offers.empty())
        leave_out(peer.node->host, "announced", "no address is known to try");
      for (const Offer& offer : peer.offers) add_listen(round, peer, offer);
    }
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      for (const std::size_t j : targets_of(i, peers_.size(), limits_)) {
        add_pair(round, peers_[i], peers_[j]);
        ++pairs;
      }
    }
    const std::size_t all = peers_.size() * (peers_.size() - 1);
    if (pairs < all) {
      leave_out("", "pairs",
                std::to_string(pairs) + " of " + std::to_string(all) +
                    " ordered pairs were planned: above " +
                    std::to_string(limits_.all_pairs_up_to) + " nodes each tries four others");
    }
    if (!round.dials.empty()) plan_.rounds.push_back(std::move(round));
  }

  void add_listen(Round& round, const Peer& peer, const Offer& offer) const {
    round.listens.push_back({peer.node->host,
                             {.id = offer.listen,
                              .address = offer.choice.address,
                              .spread = limits_.ports_per_address,
                              .outside = true,
                              .nonce = offer.nonce,
                              .udp = true,
                              .watch_arrivals = true,
                              .hold_ms = kHoldMs}});
  }

  // A zone is a name on one machine: the dialler uses the link that it announces for this purpose.
  static Address as_seen_from(const Peer& from, const Offer& offer) {
    Address address = offer.choice.address;
    if (address.zone.empty()) return address;
    const auto own = std::ranges::find_if(from.offers, [&](const Offer& row) {
      return row.purpose == offer.purpose && !row.choice.address.zone.empty();
    });
    if (own != from.offers.end()) address.zone = own->choice.address.zone;
    return address;
  }

  void add_pair(Round& round, const Peer& from, const Peer& to) const {
    std::set<std::string> measured;  // interfaces of `to`
    for (const Offer& offer : to.offers) {
      const Address address = as_seen_from(from, offer);
      round.dials.push_back(
          {.from = from.node->host,
           .to = to.node->host,
           .target = {.purpose = offer.purpose, .address = address, .nonce = offer.nonce},
           .listen = offer.listen,
           .also = offer.also});
      if (address.loopback() || measured.size() >= kMostPathsPerPair ||
          !measured.insert(offer.choice.interface).second) {
        continue;
      }
      round.paths.push_back({.from = from.node->host,
                             .to = to.node->host,
                             .target = {.purpose = path_purpose(offer),
                                        .source = {.v6 = address.v6},
                                        .destination = address,
                                        .nonce = offer.nonce,
                                        .loss_packets = limits_.loss_packets},
                             .listen = offer.listen});
    }
  }

  // Of an address with several purposes the one that carries the most.
  static Purpose path_purpose(const Offer& offer) {
    const bool data = std::ranges::find(offer.also, Purpose::nccl_data) != offer.also.end();
    return data ? Purpose::nccl_data : offer.purpose;
  }

  // Each node asks for its own addresses, and for those of peers on the same wire.
  void plan_duplicates() {
    if (peers_.size() < 2) return;  // nobody to confuse it with, and the wait is half a second
    for (const Peer& peer : peers_) {
      std::vector<Choice> choices;
      if (!peer.node->links.known()) continue;
      for (const Offer& offer : peer.offers) choices.push_back(offer.choice);
      for (const Peer& other : peers_) {
        if (&other != &peer) add_neighbours(peer, other, choices);
      }
      std::erase_if(choices, [](const Choice& choice) {
        return choice.address.v6 || choice.address.loopback();
      });
      if (choices.size() > kMostDuplicateAsks) choices.resize(kMostDuplicateAsks);
      if (!choices.empty()) plan_.duplicates.push_back({peer.node->host, {std::move(choices)}});
    }
  }

  static void add_neighbours(const Peer& peer, const Peer& other, std::vector<Choice>& choices) {
    for (const Offer& own : peer.offers) {
      const auto row = find_address(*peer.node->links, own.choice.address);
      if (!row) continue;
      for (const Offer& offer : other.offers) {
        const Address& address = offer.choice.address;
        if (!address.loopback() && address != own.choice.address &&
            address.shares_prefix(own.choice.address, row->address->prefix)) {
          choices.push_back({row->link->name, address});
        }
      }
    }
  }

  const ClusterFacts& cluster_;
  const PlanLimits& limits_;
  Nonces nonces_;
  std::vector<Peer> peers_;
  ProbePlan plan_;
};

}  // namespace

ProbePlan make_plan(const ClusterFacts& cluster,
                    const PlanLimits& limits,
                    std::uint64_t nonce_seed) {
  return Planner(cluster, limits, nonce_seed).plan();
}

}  // namespace distdoctor::probe
