#include "probe/plan_wire.h"

#include <distdoctor/views.h>
#include <distdoctor/wire_speeds.h>

#include "base/mix.h"
#include "base/text.h"
#include "probe/wire_speed.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace distdoctor::probe {
namespace {

// To connect, to say what is wanted and to ping; sixty-four streams over a long way take longest.
constexpr int kForOpeningMs = 2'000;
constexpr int kForReportMs = 3'000;
constexpr double kLooksSlow = 0.6;  // of the best wire, or of what the links claim

// A node with the address by which the collective's data reaches it.
struct End {
  const NodeFacts* node;
  Choice choice;
};

struct Way {
  std::size_t from;
  std::size_t to;
};

std::optional<Choice> data_choice(const Prediction& prediction, RunBackend backend) {
  const bool nccl = backend == RunBackend::nccl;
  if (nccl && prediction.nccl.known() && !prediction.nccl->net_socket.empty()) {
    return prediction.nccl->net_socket.front();
  }
  if (!nccl && prediction.gloo.known() && !prediction.gloo->devices.empty()) {
    return prediction.gloo->devices.front();
  }
  return std::nullopt;
}

// In the order of the ranks; empty where one of the nodes has no known address.
std::vector<End> ends_of(const ClusterFacts& cluster, const Experiment& run) {
  std::vector<End> ends;
  for (const RankRun& rank : run.ranks) {
    const NodeFacts* node = find_node(cluster, rank.place.node);
    if (node == nullptr) return {};
    if (std::ranges::find(ends, node, &End::node) != ends.end()) continue;
    const Prediction* prediction = find_prediction(cluster, node->host);
    const auto choice =
        prediction == nullptr ? std::nullopt : data_choice(*prediction, run.backend);
    if (!choice) return {};
    ends.push_back({node, *choice});
  }
  return ends;
}

// As many as NCCL would open between two ranks (net_socket.cc: threads times sockets of each).
int streams_of(const ClusterFacts& cluster, const Experiment& run, const WireLimits& limits) {
  const auto& predictions = cluster.predicted.nodes;
  if (run.backend != RunBackend::nccl || predictions.empty()) return limits.streams;
  int product = 1;
  for (const char* name : {"NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD"}) {
    const Setting* setting = find_setting(predictions.front(), name);
    const auto number = setting == nullptr ? std::nullopt : parse_int<int>(setting->value);
    if (number) product *= std::clamp(*number, 1, kMostStreams);
  }
  return product > 1 ? std::min(product, kMostStreams) : limits.streams;
}

// The edges of the ring in as few groups as there can be of which no two share a node.
std::vector<std::vector<Way>> matchings(std::size_t n) {
  if (n == 2) return {{{0, 1}}};
  std::vector<std::vector<Way>> groups(n % 2 == 0 ? 2 : 3);
  for (std::size_t i = 0; i < n; ++i) {
    const bool odd_one = n % 2 == 1 && i == n - 1;
    groups[odd_one ? 2 : i % 2].push_back({i, (i + 1) % n});
  }
  return groups;
}

class Planner {
 public:
  Planner(const ClusterFacts& cluster,
          std::vector<End> ends,
          const WireLimits& limits,
          std::uint64_t seed)
      : cluster_(cluster), ends_(std::move(ends)), limits_(limits), state_(seed) {}

  std::vector<Round> plan(RunBackend backend, int streams) {
    for (const auto& group : matchings(ends_.size())) {
      std::vector<Way> back;
      for (const Way& way : group) back.push_back({way.to, way.from});
      add(group, {1, streams});
      add(back, {1, streams});
    }
    std::vector<Way> ring;
    for (std::size_t i = 0; i < ends_.size(); ++i) ring.push_back({i, (i + 1) % ends_.size()});
    add(ring, {backend == RunBackend::gloo ? 1 : streams});
    return std::move(rounds_);
  }

 private:
  // The path as it was measured before: nothing is sent where nothing was seen to pass.
  const Path* known_path(const Way& way) const {
    const PairFacts* pair =
        find_pair(cluster_, ends_[way.from].node->host, ends_[way.to].node->host);
    if (pair == nullptr) return nullptr;
    const Address& wanted = ends_[way.to].choice.address;
    const auto found = std::ranges::find_if(pair->paths, [&](const Path& path) {
      return path.destination.v6 == wanted.v6 && path.destination.bytes == wanted.bytes;
    });
    return found == pair->paths.end() || !found->rtt_ms.known() ? nullptr : &*found;
  }

  void add(const std::vector<Way>& ways, const std::vector<int>& streams) {
    const int numbers = static_cast<int>(streams.size());
    Round round{.path_timeout_ms = kForOpeningMs + (numbers * (limits_.speed_ms + kForOpeningMs))};
    for (const Way& way : ways) {
      if (const Path* path = known_path(way)) add_way(round, way, *path, streams);
    }
    if (!round.paths.empty()) rounds_.push_back(std::move(round));
  }

  void add_way(Round& round, const Way& way, const Path& path, const std::vector<int>& streams) {
    const End& to = ends_[way.to];
    const std::string id = "wire " + std::to_string(rounds_.size()) + " " + to.node->host;
    const std::uint64_t nonce = mixed(state_ += kMixStep);
    round.listens.push_back({to.node->host,
                             {.id = id,
                              .address = to.choice.address,
                              .nonce = nonce,
                              .udp = true,
                              .hold_ms = round.path_timeout_ms + kForReportMs}});
    round.paths.push_back({.from = ends_[way.from].node->host,
                           .to = to.node->host,
                           .target = {.purpose = path.purpose,
                                      .source = {.v6 = path.destination.v6},
                                      .destination = path.destination,
                                      .nonce = nonce,
                                      .loss_packets = 0,
                                      .streams = streams,
                                      .speed_ms = limits_.speed_ms},
                           .listen = id});
  }

  const ClusterFacts& cluster_;
  std::vector<End> ends_;
  const WireLimits& limits_;
  std::uint64_t state_;
  std::vector<Round> rounds_;
};

bool looks_slow(const MeasuredWire& row, double best) {
  const double mine = best_wire(*row.path);
  return mine < kLooksSlow * best || mine < kLooksSlow * claimed_gb_per_s(row).value_or(0);
}

}  // namespace

std::vector<Round> plan_wires(const ClusterFacts& cluster,
                              const Experiment& baseline,
                              const WireLimits& limits,
                              std::uint64_t nonce_seed) {
  if (baseline.outcome != RunOutcome::ok || !goes_over_tcp(baseline)) return {};
  auto ends = ends_of(cluster, baseline);
  if (ends.size() < 2) return {};
  const int streams = streams_of(cluster, baseline, limits);
  return Planner(cluster, std::move(ends), limits, nonce_seed).plan(baseline.backend, streams);
}

std::vector<Round> confirm_wires(const ClusterFacts& cluster, const std::vector<Round>& rounds) {
  double best = 0;
  const auto wires = measured_wires(cluster);
  for (const MeasuredWire& row : wires) best = std::max(best, best_wire(*row.path));
  std::vector<Round> again;
  for (Round round : rounds) {
    std::erase_if(round.paths, [&](const PlannedPath& path) {
      return path.target.streams.size() < 2 ||
             std::ranges::none_of(
                 wires,
                 [&](const MeasuredWire& row) {
                   return row.from->host == path.from && row.to->host == path.to &&
                          row.path->destination == path.target.destination && looks_slow(row, best);
                 });
    });
    std::erase_if(round.listens, [&](const PlannedListen& listen) {
      return std::ranges::find(round.paths, listen.request.id, &PlannedPath::listen) ==
             round.paths.end();
    });
    for (PlannedPath& path : round.paths) path.target.streams = {path.target.streams.back()};
    if (!round.paths.empty()) again.push_back(std::move(round));
  }
  return again;
}

}  // namespace distdoctor::probe
