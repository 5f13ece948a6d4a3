// An all-reduce over TCP reaches a fair part of what plain TCP carries over the same wires.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/wire_speeds.h>

#include "isolations.h"

#include <fmt/format.h>

#include <algorithm>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words
                             // of this folder

// A ring sends and receives all the time: nearly all of the wire is usual, and less than this is no
// matter of sizes or rounds.
constexpr double kFarBelow = 0.4;
// The largest size has to be long under way, compared with a round trip.
constexpr double kLongEnough = 0.005;  // seconds
constexpr double kManyTrips = 100;

std::vector<std::string> nodes_of(const Experiment& run) {
  std::vector<std::string> nodes;
  for (const RankRun& rank : run.ranks) {
    if (std::ranges::find(nodes, rank.place.node) == nodes.end()) nodes.push_back(rank.place.node);
  }
  return nodes;
}

// The baseline, each time that it was run.
std::vector<const Experiment*> baselines(const Case& c) {
  std::vector<const Experiment*> runs;
  for (const Experiment& run : c.cluster.experiments) {
    const Experiment& first = c.cluster.experiments.front();
    const bool same = run.switches.empty() && std::ranges::equal(run.ranks, first.ranks, {},
                                                                 &RankRun::place, &RankRun::place);
    if (same && run.outcome == RunOutcome::ok) runs.push_back(&run);
  }
  return runs;
}

// A run that made it faster, or told where it is slow, has the answer already.
bool explained(const Case& c) {
  return std::ranges::any_of(c.cluster.isolations, [](const Isolation& one) {
    return one.layer != Layer::none || !is_slow(one);
  });
}

// Several ranks of Gloo on a node send over the wire at once, in an order that is Gloo's own; of
// several interfaces of NCCL only the first was measured.
bool comparable(const Case& c, const Experiment& run, const std::vector<std::string>& nodes) {
  if (run.backend == RunBackend::gloo) return run.ranks.size() == nodes.size();
  return std::ranges::all_of(nodes, [&](const std::string& node) {
    const Prediction* prediction = find_prediction(c.cluster, node);
    return prediction != nullptr && prediction->nccl.known() &&
           prediction->nccl->net_socket.size() == 1;
  });
}

// The narrowest of all nodes' wires; none where one of them is not known to be steady.
std::optional<NodeWire> narrowest(const Case& c,
                                  const std::vector<std::string>& nodes,
                                  RunBackend backend) {
  std::optional<NodeWire> least;
  for (const std::string& node : nodes) {
    const auto wire = node_wire(c.cluster, node, backend);
    if (!wire) return std::nullopt;
    if (!least || wire->gb_per_s < least->gb_per_s) least = wire;
  }
  return least;
}

bool long_enough(const NodeWire& wire, std::int64_t bytes) {
  const double trip = wire.wire.path->rtt_ms.known() ? *wire.wire.path->rtt_ms / 1000 : 0;
  const double seconds = static_cast<double>(bytes) / (wire.gb_per_s * 1e9);
  return seconds >= std::max(kLongEnough, kManyTrips * trip);
}

void report(const Case& c,
            const NodeWire& wire,
            const std::vector<const Experiment*>& runs,
            Judge& judge) {
  const Experiment& best = **std::ranges::max_element(
      runs, {}, [](const Experiment* run) { return speed_at_largest(*run).bus_gb_per_s; });
  const double reached = speed_at_largest(best).bus_gb_per_s;
  const Path& path = *wire.wire.path;
  const bool nccl = best.backend == RunBackend::nccl;
  Finding finding{
      .code = "collective-below-wire",
      .severity = Severity::degraded,
      .certainty = Certainty::likely,
      .symptom = Symptom::slow,
      .summary = fmt::format(
          "the all-reduce reaches {:.3g} GB/s in {} runs, where plain TCP carries {:.3g} GB/s over "
          "its narrowest wire ({} -> {}), beside all others, too",
          reached, runs.size(), wire.gb_per_s, wire.wire.from->host, wire.wire.to->host)};
  add_run(c, best, fmt::format("nearly {:.3g} GB/s", wire.gb_per_s), finding);
  const int streams = nccl ? most_streams(path) : 1;
  finding.evidence.push_back(
      {.node = wire.wire.from->host,
       .fact = fmt::format("TCP to {} by {} stream{}", path.destination.text(), streams,
                           streams == 1 ? "" : "s"),
       .observed = fmt::format("{:.3g} GB/s", wire.gb_per_s),
       .expected = fmt::format("about the {:.3g} GB/s of the collective", reached),
       .command =
           fmt::format("iperf3 -c {} -P {}", shell_quote(path.destination.text()), streams)});
  finding.fix = {by_hand(
      "*", nccl ? "more connections (NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4), then the "
                  "CPUs of NCCL's proxy threads: binding, NUMA node of the card, `top -H`"
                : "the CPUs of the ranks: `top -H`, whether all share one core, cgroup limits "
                  "(cpu.max)")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.experiments.empty() || explained(c)) return;
  const Experiment& first = c.cluster.experiments.front();
  const auto nodes = nodes_of(first);
  const auto runs = baselines(c);
  if (nodes.size() < 2 || runs.size() < 2 || !goes_over_tcp(first)) return;
  if (!comparable(c, first, nodes)) return;
  const auto wire = narrowest(c, nodes, first.backend);
  if (!wire || (first.backend == RunBackend::gloo && wire->gb_per_s > kGlooCeiling)) return;
  const bool all_below = std::ranges::all_of(runs, [&](const Experiment* one) {
    const RunSpeed speed = speed_at_largest(*one);
    return speed.bus_gb_per_s > 0 && speed.bus_gb_per_s < kFarBelow * wire->gb_per_s &&
           long_enough(*wire, speed.bytes);
  });
  if (all_below) report(c, *wire, runs, judge);
}

// --- the catalogue ---

constexpr std::string_view kCauses[] = {"collective-below-links"};
constexpr Page kPage{
    .meaning =
        "`bisect` measured what plain TCP carries between the nodes, alone and while every node "
        "sends to the next one as in a collective. Both times it was far more than the all-reduce "
        "reaches over the same addresses, in every run, and neither a switch nor fewer ranks made "
        "that faster. So the wire has room: the library does not fill it.",
    .confirm =
        "`iperf3 -c ADDRESS -P 8` beside all_reduce_perf of nccl-tests (busbw at the largest "
        "size).",
    .fix =
        "Of NCCL: NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD (their product 64 at most), the "
        "CPU binding of the ranks, so that proxy threads have cores of their own near the card. Of "
        "Gloo: cores for the ranks (cpu.max of the control group, `taskset -pc PID`).",
    .verify = "The all-reduce reaches most of what iperf3 shows."};
constexpr Code kCodes[] = {{.id = "collective-below-wire",
                            .fault_class = FaultClass::socket_single_stream,
                            .worst = Severity::degraded,
                            .title = "The collective is far below plain TCP on the same wires",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check collective_below_wire{.title = "A collective reaches what plain TCP carries",
                                         .codes = kCodes,
                                         .run = run,
                                         .needs = Needs::runs};

}  // namespace distdoctor::checks
