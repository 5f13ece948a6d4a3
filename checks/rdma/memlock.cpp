// Registering memory with an RDMA device pins it, which the memlock limit counts.
#include <distdoctor/check.h>

#include "chosen.h"

#include <cerrno>
#include <cstdint>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr std::int64_t kMiB = std::int64_t{1} << 20;
// One queue pair of mlx5 with its completion queue pins some 100 KiB, and NCCL makes several for
// each peer: below 1 MiB the first connection fails, with 8 MiB (systemd's default) a small job may
// run.
constexpr std::int64_t kHopeless = kMiB;
constexpr std::int64_t kDoubtful = 64 * kMiB;

// Only CAP_IPC_LOCK in the initial user namespace lifts the limit (kernel: can_do_mlock, and
// ib_umem_get). Where nobody saw that, a plain user is taken to have it nowhere, and of root
// nothing is known: a gap.
bool binds(const NodeFacts& node, Judge& judge) {
  if (node.world.known()) {
    const auto& all = node.world->capabilities;
    const bool may_lock = std::ranges::find(all, "CAP_IPC_LOCK") != all.end();
    return !(may_lock && node.world->initial_user_namespace);
  }
  if (node.identity.known() && node.identity->uid != 0) return true;
  judge.see(node, "world", node.world);
  return false;
}

// What the kernel did when a program there asked for memory: none where that was not tried, or
// where it is not known of any port that NCCL would use.
struct Tried {
  const VerbsDevice* refused = nullptr;  // it said ENOMEM
  std::int64_t registered = 0;           // bytes at once, by all of them
};
std::optional<Tried> tried(const RdmaNode& one) {
  if (!one.node->verbs.known()) return std::nullopt;
  std::optional<Tried> all;
  for (const VerbsDevice& device : one.node->verbs->devices) {
    if (!uses(one, device.name) || device.error_code != 0) continue;
    if (!all) all = Tried{.registered = device.registered_bytes};
    all->registered = std::min(all->registered, device.registered_bytes);
    if (device.step_error_code == ENOMEM) all->refused = &device;
  }
  return all;
}

Fix raise(const NodeFacts& node) {
  Fix fix{.node = node.host, .kind = Fix::Kind::manual, .text = ""};
  const std::string container = container_of(node);
  if (container == "kubernetes") {
    fix.text =
        "raise LimitMEMLOCK of the node's container runtime (containerd, crio), and add the "
        "capability IPC_LOCK to the pod";
  } else if (!container.empty()) {
    fix.text = "start the container with --ulimit memlock=-1 --cap-add=IPC_LOCK";
  } else if (node.context == Context::slurm_step) {
    fix.text =
        "LimitMEMLOCK=infinity in slurmd's unit, and PropagateResourceLimitsExcept=MEMLOCK in "
        "slurm.conf";
  } else {
    fix.kind = Fix::Kind::shell;
    fix.command =
        "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > "
        "/etc/security/limits.d/99-distdoctor-memlock.conf";
    fix.text =
        "as root, for logins from then on; a service needs LimitMEMLOCK=infinity in its unit "
        "instead";
  }
  return fix;
}

std::string size_text(std::int64_t bytes) {
  return bytes < kMiB ? fmt::format("{} KiB", bytes / 1024)
                      : fmt::format("{:.0f} MiB", static_cast<double>(bytes) / kMiB);
}

std::string summary(const NodeFacts& node, std::int64_t soft) {
  const std::string where =
      is_the_jobs_context(node.context) ? "" : " (as seen from here; the job's own may differ)";
  return fmt::format(
      "a process on {} may lock {} of memory{}, and NCCL registers more with the "
      "RDMA devices",
      node.host, size_text(soft), where);
}

void judge_node(const Case& c,
                const RdmaNode& one,
                std::int64_t soft,
                const VerbsDevice* refused,
                Judge& judge) {
  const NodeFacts& node = *one.node;
  const bool hopeless = soft < kHopeless || refused != nullptr;
  const Certainty by_limit = hopeless ? Certainty::likely : Certainty::possible;
  Finding finding{.code = "rdma-memlock",
                  .severity = hopeless ? Severity::blocker : Severity::notice,
                  .certainty = refused != nullptr ? Certainty::proved : by_limit,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = summary(node, soft)};
  finding.severity = capped_by_context(capped(c, finding.severity), node.context);
  finding.evidence = {{.node = node.host,
                       .fact = "limits.memlock",
                       .observed = size_text(soft),
                       .expected = "unlimited",
                       .context = std::string(slug(node.context)),
                       .command = "ulimit -l; grep CapEff /proc/self/status"}};
  if (refused != nullptr) {
    finding.evidence.push_back({.node = node.host,
                                .fact = "verbs." + refused->name,
                                .observed = refused->step_error,
                                .expected = "4 MiB registered",
                                .context = std::string(slug(node.context)),
                                .command = "ibv_rc_pingpong -s 1048576 -d " +
                                           shell_quote(refused->name) +
                                           "   # with nobody to talk to: it registers first"});
  }
  finding.fix = {raise(node)};
  judge.report(std::move(finding));
}

void judge_limit(const Case& c, const RdmaNode& one, std::int64_t soft, Judge& judge) {
  const auto what = tried(one);
  const VerbsDevice* refused = what ? what->refused : nullptr;
  const bool lifted = what && what->registered > soft;  // it locked more than the limit allows
  if (refused != nullptr || (!lifted && binds(*one.node, judge))) {
    judge_node(c, one, soft, refused, judge);
  }
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  if (all_unused(nodes, judge)) return;
  for (const RdmaNode& one : nodes) {
    if (one.hcas->used.empty()) continue;
    const auto* limits = judge.see(*one.node, "limits", one.node->limits);
    if (limits == nullptr) continue;
    const auto memlock = limits->find("memlock");
    if (memlock == limits->end()) {
      judge.miss({one.node->host, "limits.memlock", {Why::not_collected, "was not read"}});
      continue;
    }
    const std::int64_t soft = memlock->second.soft.value_or(kDoubtful);  // none: unlimited
    if (soft < kDoubtful) judge_limit(c, one, soft, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "What is registered with an RDMA device is pinned, and counts against RLIMIT_MEMLOCK "
        "unless "
        "the process has CAP_IPC_LOCK in the initial user namespace (root in a container usually "
        "has not). With 64 KiB the first queue cannot be made: `Call to ibv_create_cq failed with "
        "error Cannot allocate memory`. 8 MiB carry a small job at most.",
    .confirm =
        "`ulimit -l` inside the job: `srun bash -c 'ulimit -l'`, `docker exec NAME sh -c 'ulimit "
        "-l'`. An ssh login has limits of its own.",
    .fix =
        "Docker: `--ulimit memlock=-1 --cap-add=IPC_LOCK`. Slurm: LimitMEMLOCK=infinity for slurmd "
        "and PropagateResourceLimitsExcept=MEMLOCK. Hosts: /etc/security/limits.d.",
    .verify = "`ulimit -l` inside the job prints `unlimited`."};
constexpr Code kCodes[] = {{.id = "rdma-memlock",
                            .fault_class = FaultClass::memlock,
                            .worst = Severity::blocker,
                            .title = "Too little memory may be locked for RDMA",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_memlock{
    .title = "Memory may be locked for RDMA", .codes = kCodes, .run = run, .needs = Needs::rdma};

}  // namespace distdoctor::checks
