// What was measured of plain TCP between nodes (Path::wire), as figures to judge by; look-ups only.
#pragma once

#include <distdoctor/bonds.h>
#include <distdoctor/facts.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// A path whose wire was measured, between two nodes that were looked at.
struct MeasuredWire {
  const NodeFacts* from = nullptr;
  const NodeFacts* to = nullptr;
  const Path* path = nullptr;
};

inline std::vector<MeasuredWire> measured_wires(const ClusterFacts& cluster) {
  std::vector<MeasuredWire> all;
  for (const PairFacts& pair : cluster.pairs) {
    const NodeFacts* from = find_node(cluster, pair.from);
    const NodeFacts* to = find_node(cluster, pair.to);
    if (from == nullptr || to == nullptr) continue;
    for (const Path& path : pair.paths) {
      if (path.wire.known() && !path.wire->empty()) all.push_back({from, to, &path});
    }
  }
  return all;
}

inline const Link* sending_link(const MeasuredWire& row) {
  return row.from->links.known() ? find_link(*row.from->links, row.path->interface) : nullptr;
}
inline const Link* receiving_link(const MeasuredWire& row) {
  if (!row.to->links.known()) return nullptr;
  const auto at = find_address(*row.to->links, row.path->destination);
  return at ? at->link : nullptr;
}

// GB/s that both ends say of themselves, that is the slower one; none where one does not say. Of a
// bond one member's: all streams between two hosts may be put on it.
inline std::optional<double> claimed_gb_per_s(const MeasuredWire& row) {
  const Link* out = sending_link(row);
  const Link* in = receiving_link(row);
  const auto sent = out == nullptr ? std::nullopt : one_stream_mbps(*out);
  const auto taken = in == nullptr ? std::nullopt : one_stream_mbps(*in);
  if (!sent || !taken) return std::nullopt;
  return std::min(*sent, *taken) / 8000.0;
}

// Whether the data of the run went over TCP, as far as its ranks' own logs tell.
inline bool goes_over_tcp(const Experiment& run) {
  if (run.backend == RunBackend::gloo) return true;
  return std::ranges::any_of(run.ranks, [](const RankRun& rank) {
    return std::ranges::any_of(rank.transports, [](const std::string& transport) {
      return transport.starts_with("NET/Socket");
    });
  });
}

// GB/s. Above, Gloo's own copying and adding up is what limits it, not the wire.
inline constexpr double kGlooCeiling = 1.25;

// The largest number of streams that was tried.
inline int most_streams(const Path& path) {
  return std::ranges::max(*path.wire, {}, &WireSpeed::streams).streams;
}

// All figures of so many streams, in the order of their measurement.
inline std::vector<double> wire_figures(const Path& path, int streams) {
  std::vector<double> figures;
  for (const WireSpeed& row : *path.wire) {
    if (row.streams == streams) figures.push_back(row.gb_per_s);
  }
  return figures;
}

// GB/s, the best of all figures.
inline double best_wire(const Path& path) {
  return std::ranges::max(*path.wire, {}, &WireSpeed::gb_per_s).gb_per_s;
}

// GB/s of as many streams as the library opens (Gloo one), where they were measured alone and
// beside all other nodes and it made no difference: then the wire is what limits, not a processor.
inline std::optional<double> steady_wire(const Path& path, RunBackend backend) {
  constexpr double kSame = 0.85;
  const auto figures = wire_figures(path, backend == RunBackend::gloo ? 1 : most_streams(path));
  if (figures.size() < 2) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(figures);
  return least >= kSame * most ? std::optional(least) : std::nullopt;
}

// The narrower of what a node sends and what it receives, each by the better of its paths.
struct NodeWire {
  double gb_per_s = 0;
  MeasuredWire wire = {};
};
inline std::optional<NodeWire> narrower_way(const ClusterFacts& cluster,
                                            std::string_view host,
                                            RunBackend backend) {
  std::optional<NodeWire> out;
  std::optional<NodeWire> in;
  for (const MeasuredWire& row : measured_wires(cluster)) {
    auto* side = row.from->host == host ? &out : row.to->host == host ? &in : nullptr;
    const auto steady = side == nullptr ? std::nullopt : steady_wire(*row.path, backend);
    if (steady && (!*side || (*side)->gb_per_s < *steady)) *side = NodeWire{*steady, row};
  }
  if (!out || !in) return std::nullopt;
  return out->gb_per_s <= in->gb_per_s ? out : in;
}

// Only of two nodes both ways are measured alone and beside each other; of more nothing is said.
inline std::optional<NodeWire> node_wire(const ClusterFacts& cluster,
                                         std::string_view host,
                                         RunBackend backend) {
  return cluster.nodes.size() == 2 ? narrower_way(cluster, host, backend) : std::nullopt;
}

}  // namespace distdoctor
