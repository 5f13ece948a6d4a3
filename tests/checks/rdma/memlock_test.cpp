#include "support/check_cases.h"
#include "support/hcas.h"

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
    "/etc/security/limits.d/rdma.conf";

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
    {"near miss: nobody knows which capabilities root has",
     [](World& w) {
       in_docker(w);
       World::change(w.node(1).identity, [](Identity& identity) { identity.uid = 0; });
     }},
    {"near miss: nobody knows who we are",
     [](World& w) {
       limit(w, 65536);
       w.node(1).identity = Unknown{.text = "uname: EFAULT"};
     }},
    {"near miss: enough", [](World& w) { limit(w, 64 << 20); }},
    {"near miss: no RDMA carries data",
     [](World& w) {
       limit(w, 65536);
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     }},
    {"near miss: one node alone",
     [](World& w) {
       limit(w, 65536);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     }},
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
