// TCP carries data by the right interface, in enough streams.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

void report_interface(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding =
      about(c, found, "collective-interface-wrong",
            fmt::format("traffic by {}{} {}; {} is {}{}", fmt::join(found.names, ", "),
                        where_text(found), ailment_text(found), settings_text(found.workaround),
                        is_slow(found) ? "faster" : "what works", speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, "the interface that serves better, on all nodes", finding);
  judge.report(std::move(finding));
}

void report_streams(const Case& c, const Isolation& found, Judge& judge) {
  Finding finding =
      about(c, found, "collective-few-streams",
            fmt::format("one TCP connection does not fill the wire{}", speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  add_workaround(found, "costs CPU cores: threads times sockets of each rank", finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::interface})) {
    report_interface(c, *found, judge);
  }
  for (const Isolation* found : isolations_of(c, {Layer::streams})) {
    report_streams(c, *found, judge);
  }
}

// --- the catalogue ---

constexpr Page kInterfacePage{
    .meaning =
        "The same all-reduce does not work, or is slow, by the interface that the library takes, "
        "and works by another one that all nodes share; both were run twice.",
    .confirm =
        "all_reduce_perf with and without NCCL_SOCKET_IFNAME; `iperf3` between the addresses of "
        "both interfaces.",
    .fix = "NCCL_SOCKET_IFNAME (Gloo: GLOO_SOCKET_IFNAME) with the better interface.",
    .verify = "NCCL_DEBUG=INFO prints it in `NET/Socket : Using`."};
constexpr Page kStreamsPage{
    .meaning =
        "NCCL opens few TCP connections unless told otherwise; one of them does not fill a fast "
        "wire, or a cloud limits each flow. With more of them the same all-reduce is faster.",
    .confirm =
        "all_reduce_perf with and without NCCL_SOCKET_NTHREADS=4 NCCL_NSOCKS_PERTHREAD=4; "
        "`iperf3 -P 8` against `iperf3 -P 1`.",
    .fix = "NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD; their product may be 64 at most.",
    .verify = "The all-reduce reaches most of what `iperf3 -P 8` shows."};
constexpr Code kCodes[] = {{.id = "collective-interface-wrong",
                            .fault_class = FaultClass::iface_wrong,
                            .worst = Severity::blocker,
                            .title = "Another interface serves better",
                            .causes = {},
                            .page = kInterfacePage},
                           {.id = "collective-few-streams",
                            .fault_class = FaultClass::socket_single_stream,
                            .worst = Severity::degraded,
                            .title = "Too few TCP connections",
                            .causes = {},
                            .page = kStreamsPage}};

}  // namespace

extern const Check collective_tcp{.title = "TCP carries data by the right interface",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::runs};

}  // namespace distdoctor::checks
