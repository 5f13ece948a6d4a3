#include "render/runs.h"

#include <distdoctor/run_ending.h>
#include <distdoctor/run_speed.h>
#include <distdoctor/wire_speeds.h>

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace distdoctor::render {
namespace {

std::string switches_of(const Experiment& run) {
  std::vector<std::string> words;
  for (const auto& [name, value] : run.switches) {
    words.push_back(value.empty() ? "-" + name : name + "=" + value);
  }
  return join(words, " ");
}

// The rank that began it, not one that suffered it: "rank 3 on node1 and 2 more stopped after
// device: ...".
std::string where_it_stopped(const Experiment& run) {
  const RankRun* first = first_cause(run);
  if (first == nullptr) return "";
  const auto also = std::ranges::count_if(run.ranks, [&](const RankRun& rank) {
    return rank.reached == first->reached && badness(rank) == badness(*first);
  });
  const std::string others = also > 1 ? fmt::format(" and {} more", also - 1) : "";
  const std::string error = first->error.empty() ? "" : ": " + printable(first->error);
  return fmt::format("rank {} on {}{} stopped after {}{}", first->rank,
                     printable(first->place.node), others,
                     first->reached == RunStage::none ? "nothing" : slug(first->reached), error);
}

// "node0 -> node1 by eth1: 2.31 GB/s by 1 stream, 2.4 by 8, 0.08 ms round trip": of each number of
// streams the best.
std::string wire_line(const PairFacts& pair, const Path& path) {
  std::map<int, double> best;
  for (const WireSpeed& row : *path.wire) {
    best[row.streams] = std::max(best[row.streams], row.gb_per_s);
  }
  std::vector<std::string> words;
  for (const auto& [streams, gb_per_s] : best) {
    words.push_back(words.empty() ? fmt::format("{:.3g} GB/s by {} stream{}", gb_per_s, streams,
                                                streams == 1 ? "" : "s")
                                  : fmt::format("{:.3g} by {}", gb_per_s, streams));
  }
  std::string line =
      fmt::format("{} -> {} by {}: {}", pair.from, pair.to, path.interface, join(words, ", "));
  if (path.rtt_ms.known()) line += fmt::format(", {:.2g} ms round trip", *path.rtt_ms);
  return line;
}

}  // namespace

std::string run_line(const Experiment& run) {
  const std::string switches = switches_of(run);
  std::string line = fmt::format("{:3}  {}{}  {} rank{}  {}", run.number, run.what,
                                 switches.empty() ? "" : " (" + switches + ")", run.ranks.size(),
                                 run.ranks.size() == 1 ? "" : "s", slug(run.outcome));
  if (run.outcome == RunOutcome::ok) {
    const double bandwidth = speed_at_largest(run).bus_gb_per_s;
    if (bandwidth > 0) line += fmt::format("  {:.3g} GB/s", bandwidth);
  } else {
    line += "  " + where_it_stopped(run);
  }
  if (!run.unheeded.empty()) line += "; not heeded: " + join(run.unheeded, ", ");
  return line;
}

void runs(const std::vector<Experiment>& experiments, const Style& style, std::ostream& out) {
  if (experiments.empty()) return;
  out << style.bold("runs") << '\n';
  for (const Experiment& run : experiments)
    out << wrapped(printable(run_line(run)), 7, style.width());
}

void wires(const std::vector<PairFacts>& pairs, const Style& style, std::ostream& out) {
  constexpr std::size_t kMost = 6;
  std::vector<std::pair<double, std::string>> lines;
  for (const PairFacts& pair : pairs) {
    for (const Path& path : pair.paths) {
      const bool measured = path.wire.known() && !path.wire->empty();
      if (measured) lines.emplace_back(best_wire(path), wire_line(pair, path));
    }
  }
  if (lines.empty()) return;
  std::ranges::stable_sort(lines, {}, &std::pair<double, std::string>::first);
  const std::size_t shown = style.verbose() ? lines.size() : std::min(lines.size(), kMost);
  out << style.bold("plain TCP below them") << '\n';
  for (std::size_t i = 0; i < shown; ++i) {
    out << wrapped(printable(lines[i].second), 2, style.width());
  }
  if (shown < lines.size()) out << "  and " << lines.size() - shown << " faster ones (-v)\n";
}

}  // namespace distdoctor::render
