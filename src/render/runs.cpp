#include "render/runs.h"

#include <distdoctor/run_speed.h>

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::render {
namespace {

std::string switches_of(const Experiment& run) {
  std::vector<std::string> words;
  for (const auto& [name, value] : run.switches) {
    words.push_back(value.empty() ? "-" + name : name + "=" + value);
  }
  return join(words, " ");
}

// Where the ranks that came least far stopped: "rank 3 on node1 stopped after device".
std::string where_it_stopped(const Experiment& run) {
  const auto least = std::ranges::min_element(run.ranks, {}, &RankRun::reached);
  if (least == run.ranks.end()) return "";
  const auto also = std::ranges::count(run.ranks, least->reached, &RankRun::reached);
  const std::string others = also > 1 ? fmt::format(" and {} more", also - 1) : "";
  return fmt::format("rank {} on {}{} stopped after {}", least->rank, printable(least->place.node),
                     others, least->reached == RunStage::none ? "nothing" : slug(least->reached));
}

std::string first_error(const Experiment& run) {
  for (const RankRun& rank : run.ranks) {
    if (rank.outcome == run.outcome && !rank.error.empty()) return printable(rank.error);
  }
  return "";
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
    if (const auto error = first_error(run); !error.empty()) line += ": " + error;
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

}  // namespace distdoctor::render
