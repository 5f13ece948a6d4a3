// Ranks of a node meet in shared memory.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

std::string mebibytes(std::int64_t bytes) {
  return fmt::format("{} MiB", bytes >> 20U);
}

void add_mount(const NodeFacts& node, Finding& finding) {
  if (!node.shm.known() || node.shm->size == 0) return;
  finding.evidence.push_back({.node = node.host,
                              .fact = "/dev/shm",
                              .observed = fmt::format("{} of {} free", mebibytes(node.shm->free),
                                                      mebibytes(node.shm->size)),
                              .expected = "room for the segments of all ranks",
                              .context = std::string(slug(node.context)),
                              .command = "df -B1 /dev/shm; ls -la /dev/shm"});
}

void report(const Case& c, const Isolation& found, Judge& judge) {
  const bool pools = found.workaround.empty();
  Finding finding =
      pools ? about(c, found, "collective-shm-full",
                    fmt::format("NCCL's segments of all ranks do not fit into /dev/shm{}; those of "
                                "one rank on each node do",
                                where_text(found)))
            : about(c, found, "collective-shm-broken",
                    fmt::format("the way by shared memory{} {}{}", where_text(found),
                                ailment_text(found), speeds_text(found)));
  if (!add_proof(c, found, finding)) return;
  for (const NodeFacts* node : nodes_of(c, found)) add_mount(*node, finding);
  add_workaround(found,
                 "GPUs without peer-to-peer access then talk by way of the network, which is slow",
                 finding);
  for (const NodeFacts* node : nodes_of(c, found)) {
    finding.fix.push_back(by_hand(
        node->host,
        "enlarge /dev/shm: `--shm-size=1g` or `--ipc=host` for a container, an emptyDir with "
        "`medium: Memory` for a pod, the line of /dev/shm in /etc/fstab for a host"));
  }
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::shm})) report(c, *found, judge);
}

// --- the catalogue ---

constexpr Page kBrokenPage{
    .meaning =
        "GPUs of one node that do not reach each other's memory talk by way of segments in "
        "/dev/shm. The same all-reduce does not work by them, and works without; both were run "
        "twice.",
    .confirm =
        "all_reduce_perf of nccl-tests with NCCL_P2P_DISABLE=1, with and without "
        "NCCL_SHM_DISABLE=1; `df -h /dev/shm` in the job.",
    .fix = "A larger /dev/shm, shared by all ranks of the node; NCCL_SHM_DISABLE=1 until then.",
    .verify = "The all-reduce works with NCCL_P2P_DISABLE=1."};
constexpr Page kFullPage{
    .meaning =
        "Each process that talks to another node allocates a pool in /dev/shm, whatever is "
        "switched off. With all ranks NCCL fails and names /dev/shm; with one rank on each node "
        "it works.",
    .confirm = "`df -h /dev/shm` in the job, while it starts.",
    .fix =
        "Docker: `--shm-size=1g` or `--ipc=host`. Kubernetes: an emptyDir with "
        "`medium: Memory` at /dev/shm.",
    .verify = "The all-reduce works with all ranks."};
constexpr Code kCodes[] = {{.id = "collective-shm-broken",
                            .fault_class = FaultClass::unknown_shm,
                            .worst = Severity::blocker,
                            .title = "The way by shared memory is broken",
                            .causes = {},
                            .page = kBrokenPage},
                           {.id = "collective-shm-full",
                            .fault_class = FaultClass::shm_small,
                            .worst = Severity::blocker,
                            .title = "/dev/shm does not hold the segments of all ranks",
                            .causes = {},
                            .page = kFullPage}};

}  // namespace

extern const Check collective_shm{
    .title = "Ranks meet in shared memory", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
