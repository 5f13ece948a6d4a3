#include "support/check_cases.h"
#include "support/hcas.h"

#include <cerrno>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// mlx5_0 of node1 fails at this step; all other devices work.
void fails(World& w, const std::string& step, int code) {
  give_infiniband(w);
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    Verbs verbs{.library = "/usr/lib/libibverbs.so.1"};
    for (const char* name : {"mlx5_0", "mlx5_1"}) {
      verbs.devices.push_back({.name = name, .registered_bytes = 4 << 20, .active_ports = {1}});
    }
    if (i == 1) {
      verbs.devices[0].step_error = step;
      verbs.devices[0].step_error_code = code;
    }
    w.node(i).verbs = verbs;
  }
}
void limit(World& w) {
  World::change(w.node(1).limits, [](auto& limits) { limits["memlock"] = {.soft = 65536}; });
}

Verdict broken(Severity severity, const std::string& step) {
  return {.code = "rdma-device-broken",
          .severity = severity,
          .certainty = proved,
          .symptom = Symptom::crash,
          .says = "mlx5_0 of node1 is opened, but is of no use to programs: " + step,
          .blamed = {"node1"},
          .evidence = {"node1 verbs.mlx5_0: " + step +
                       ", not a queue, and 4 MiB registered; ibv_devinfo -v -d mlx5_0; "
                       "ibv_rc_pingpong -s 1048576 -d mlx5_0"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}},
    {"healthy", [](World& w) { fails(w, "", 0); }},
    {"firmware",
     [](World& w) { fails(w, "ibv_create_cq: EIO", EIO); },
     {broken(blocker, "ibv_create_cq: EIO")}},
    {"no memory, and no limit",
     [](World& w) { fails(w, "ibv_reg_mr of 4 MiB: ENOMEM", ENOMEM); },
     {broken(blocker, "ibv_reg_mr of 4 MiB: ENOMEM")}},
    {"by ssh: a notice",
     [](World& w) {
       fails(w, "ibv_create_cq: EIO", EIO);
       w.node(1).context = Context::ssh;
     },
     {broken(notice, "ibv_create_cq: EIO")}},
    {"near miss: no memory, and a limit, which is another check's",
     [](World& w) {
       fails(w, "ibv_reg_mr of 4 MiB: ENOMEM", ENOMEM);
       limit(w);
     }},
    {"no memory, and a limit that leaves enough",
     [](World& w) {
       fails(w, "ibv_reg_mr of 4 MiB: ENOMEM", ENOMEM);
       World::change(w.node(1).limits,
                     [](auto& limits) { limits["memlock"] = {.soft = 64 << 20}; });
     },
     {broken(blocker, "ibv_reg_mr of 4 MiB: ENOMEM")}},
    {"no memory, and nobody knows the limit: a gap",
     [](World& w) {
       fails(w, "ibv_reg_mr of 4 MiB: ENOMEM", ENOMEM);
       w.node(1).limits = Unknown{.kind = Why::failed, .text = "getrlimit: EFAULT"};
     },
     {},
     {"node1 limits"}},
    {"near miss: none of them was opened, which is another check's",
     [](World& w) {
       fails(w, "", 0);
       for (NodeFacts& node : w.cluster.nodes) {
         World::change(node.verbs, [](Verbs& verbs) {
           for (VerbsDevice& device : verbs.devices) device.error = "ibv_open_device: EPERM";
         });
       }
     },
     {},
     {},
     "libibverbs opened none of the devices in use"},
    {"near miss: NCCL leaves it out",
     [](World& w) {
       fails(w, "ibv_create_cq: EIO", EIO);
       set_and_predict(w, "NCCL_IB_HCA", "mlx5_1");
     }},
    {"near miss: one node alone",
     [](World& w) {
       fails(w, "ibv_create_cq: EIO", EIO);
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"unseen is a gap",
     [](World& w) {
       fails(w, "", 0);
       w.node(1).verbs = Unknown{.text = "run vendor verbs: not there"};
     },
     {},
     {"node1 verbs"}},
};

TEST_CASE("rdma/device_works") {
  run_cases("rdma/device_works", cases);
}

}  // namespace
}  // namespace distdoctor::testing
