#include "support/check_cases.h"
#include "support/hcas.h"

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void limit(World& w, std::int64_t bytes) {
  give_infiniband(w);
  World::change(w.node(1).limits,
                [&](auto& limits) { limits["memlock"] = {.soft = bytes, .hard = bytes}; });
}
void in_docker(World& w) {
  limit(w, 65536);
  World::change(w.node(1).identity, [](Identity& identity) { identity.container = "docker"; });
}

// What the helper saw on node1: how much it could register, and the error of the next step.
void tried(World& w, std::int64_t registered, int error) {
  VerbsDevice device{.name = "mlx5_0", .registered_bytes = registered};
  if (error != 0) {
    device.step_error = "ibv_reg_mr of 64 KiB: ENOMEM";
    device.step_error_code = error;
  }
  w.node(1).verbs = Verbs{.library = "/usr/lib/libibverbs.so.1", .devices = {device}};
}
void may(World& w, const std::vector<std::string>& capabilities, bool initial) {
  w.node(1).world =
      distdoctor::World{.initial_user_namespace = initial, .capabilities = capabilities};
}

Verdict small(Severity severity, const std::string& size, const std::string& fix) {
  return {.code = "rdma-memlock",
          .severity = severity,
          .certainty = size.ends_with("KiB") ? likely : possible,
          .symptom = Symptom::crash,
          .says = "a process on node1 may lock " + size + " of memory",
          .blamed = {"node1"},
          .evidence = {"node1 limits.memlock: " + size +
                       ", not unlimited; ulimit -l; grep CapEff /proc/self/status"},
          .fixes = {"node1: " + fix}};
}
const std::string kLimits =
    "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' > "
    "/etc/security/limits.d/99-distdoctor-memlock.conf";

Verdict refused(Severity severity, const std::string& fix) {
  Verdict verdict = small(severity, "64 KiB", fix);
  verdict.certainty = proved;
  verdict.evidence.push_back(
      "node1 verbs.mlx5_0: ibv_reg_mr of 64 KiB: ENOMEM, not 4 MiB registered; ibv_rc_pingpong -s "
      "1048576 -d mlx5_0   # with nobody to talk to: it registers first");
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: unlimited", give_infiniband},
    {"64 KiB", [](World& w) { limit(w, 65536); }, {small(blocker, "64 KiB", kLimits)}},
    {"in a container", in_docker, {small(blocker, "64 KiB", "(manual)")}},
    {"a job step",
     [](World& w) {
       limit(w, 65536);
       w.node(1).context = Context::slurm_step;
     },
     {small(blocker, "64 KiB", "(manual)")}},
    {"8 MiB may do: a notice",
     [](World& w) { limit(w, 8 << 20); },
     {small(notice, "8 MiB", kLimits)}},
    {"an ssh login is not the job's world",
     [](World& w) {
       limit(w, 65536);
       w.node(1).context = Context::ssh;
     },
     {small(notice, "64 KiB", kLimits)}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       limit(w, 65536);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {small(notice, "64 KiB", kLimits)}},
    {"proved: the kernel refused to register memory, here to root of a container",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity, [](Identity& identity) { identity.uid = 0; });
       tried(w, 0, ENOMEM);
     },
     {refused(blocker, "(manual)")}},
    {"proved, and by ssh a notice",
     [](World& w) {
       limit(w, 65536);
       w.node(1).context = Context::ssh;
       tried(w, 0, ENOMEM);
     },
     {refused(notice, kLimits)}},
    {"root of a container, without the capability",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity, [](Identity& identity) { identity.uid = 0; });
       may(w, {"CAP_CHOWN"}, true);
     },
     {small(blocker, "64 KiB", "(manual)")}},
    {"the capability counts in the initial user namespace only",
     [](World& w) {
       limit(w, 65536);
       may(w, {"CAP_IPC_LOCK"}, false);
     },
     {small(blocker, "64 KiB", kLimits)}},
    {"near miss: a user with the capability",
     [](World& w) {
       limit(w, 65536);
       may(w, {"CAP_IPC_LOCK"}, true);
     }},
    {"near miss: 4 MiB were registered in spite of it",
     [](World& w) {
       limit(w, 65536);
       tried(w, 4 << 20, 0);
     }},
    {"near miss: refused, but there is no limit",
     [](World& w) {
       give_infiniband(w);
       tried(w, 65536, ENOMEM);
     }},
    {"nobody knows which capabilities root has: a gap",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity, [](Identity& identity) { identity.uid = 0; });
       w.node(1).world = Unknown{.text = "/proc: EACCES"};
     },
     {},
     {"node1 world"}},
    {"nobody knows who we are: a gap",
     [](World& w) {
       limit(w, 65536);
       w.node(1).identity = Unknown{.text = "uname: EFAULT"};
       w.node(1).world = Unknown{.text = "/proc: EACCES"};
     },
     {},
     {"node1 world"}},
    {"a limit that is not among those that were read is a gap",
     [](World& w) {
       give_infiniband(w);
       World::change(w.node(1).limits, [](auto& limits) { limits.erase("memlock"); });
     },
     {},
     {"node1 limits.memlock"}},
    {"near miss: enough", [](World& w) { limit(w, 64 << 20); }},
    {"near miss: no RDMA carries data",
     [](World& w) {
       limit(w, 65536);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"near miss: one node alone",
     [](World& w) {
       limit(w, 65536);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"unseen limits are a gap",
     [](World& w) {
       give_infiniband(w);
       w.node(1).limits = Unknown{.kind = Why::failed, .text = "getrlimit: EFAULT"};
     },
     {},
     {"node1 limits"}},
    {"unseen devices are a gap",
     [](World& w) {
       limit(w, 65536);
       w.node(1).rdma = Unknown{.kind = Why::denied, .text = "/sys: EACCES"};
     },
     {},
     {"node1 rdma"}},
};

TEST_CASE("rdma/memlock") {
  run_cases("rdma/memlock", cases);
}

}  // namespace
}  // namespace distdoctor::testing
