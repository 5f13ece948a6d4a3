// A collective reaches what the links allow.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

void report(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding =
      about(c, found, "collective-below-links",
            fmt::format("the all-reduce reaches {:.1f} GB/s, where {} lets {:.1f} GB/s through; no "
                        "switch and no smaller group is faster",
                        found.bus_gb_per_s, found.limit, found.allowed_gb_per_s));
  finding.certainty = Certainty::possible;
  if (!add_proof(c, found, finding)) return;
  // What NCCL reaches says little of Gloo, whose own code is a limit, too.
  if (c.cluster.experiments.front().backend == RunBackend::gloo) {
    finding.severity = Severity::notice;
  }
  finding.fix = {by_hand("*",
                         "compare with the same machines elsewhere (nccl-tests), then look at CPU "
                         "binding, NUMA, clocks and the load of the network")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::none})) {
    if (is_slow(*found) && found->allowed_gb_per_s > 0) report(c, *found, judge);
  }
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "Bus bandwidth (nccl-tests' definition) at the largest size is far below what the "
        "narrowest link between the ranks usually lets through, in two rounds, and nothing that "
        "was tried is faster. The figure for the link is a rule of thumb, so this is a hint.",
    .confirm =
        "`all_reduce_perf -b 256M -e 1G -f 2`, and the links alone: ib_write_bw, iperf3, "
        "p2pBandwidthLatencyTest.",
    .fix =
        "CPU and NUMA binding of the ranks, clocks, other traffic on the network, PCIe settings "
        "of the BIOS.",
    .verify = "The all-reduce reaches most of what the link does alone."};
constexpr Code kCodes[] = {{.id = "collective-below-links",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::degraded,
                            .title = "The collective is far below what the links allow",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check collective_speed{.title = "A collective reaches what the links allow",
                                    .codes = kCodes,
                                    .run = run,
                                    .needs = Needs::runs};

}  // namespace distdoctor::checks
