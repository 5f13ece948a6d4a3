#include "checks/software/nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void with_efa(World& w) {
  for (NodeFacts& node : w.cluster.nodes) {
    node.rdma = Rdma{.devices = {{.name = "rdmap0s6",
                                  .driver = "efa",
                                  .uverbs = "/dev/infiniband/uverbs0",
                                  .uverbs_there = true,
                                  .uverbs_usable = true}}};
  }
}
void plugin(Software& software) {
  software.plugins = {{.path = "/opt/ofi/libnccl-net.so",
                       .kind = "net",
                       .exports = {"ncclNetPlugin_v9"},
                       .version = "aws-ofi-nccl 1.13.2"}};
  software.libfabric = "/opt/amazon/efa/lib64/libfabric.so.1";
}

Verdict unusable(Severity severity, Certainty certainty, const std::string& lacks) {
  return {.code = "software-efa-not-usable",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::slow,
          .says = "node1 has the EFA device rdmap0s6, but " + lacks,
          .blamed = {"node1"},
          .evidence = {"node1 EFA: " + lacks +
                       ", not libnccl-net.so of aws-ofi-nccl, and libfabric; ls "
                       "/opt/amazon/ofi-nccl/lib* /opt/amazon/efa/lib*; ldconfig -p | grep -E "
                       "'nccl-net|fabric'"},
          .fixes = {"node1: (manual)"}};
}

// A healthy plugin, and a node that is shut.
void shut(World& w, bool there) {
  with_efa(w);
  on_all(w, plugin);
  World::change(w.node(1).rdma, [&](Rdma& rdma) {
    rdma.devices[0].uverbs_there = there;
    rdma.devices[0].uverbs_usable = false;
  });
}
Verdict closed(Severity severity, const std::string& why) {
  Verdict verdict = unusable(severity, likely, why);
  verdict.evidence = {"node1 EFA: " + why +
                      ", not a device node that the job may open; ls -l /dev/infiniband; fi_info "
                      "-p efa"};
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy, no EFA", [](World&) {}, {}, {}, "no node with NCCL has an EFA device"},
    {"healthy, EFA and its plugin",
     [](World& w) {
       with_efa(w);
       on_all(w, plugin);
     }},
    {"no plugin, and ranks that run",
     [](World& w) {
       with_efa(w);
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins.clear(); });
       running(w);
     },
     {unusable(degraded, likely, "no network plugin for NCCL (aws-ofi-nccl)")}},
    {"a plugin that may lie where nobody could follow the job",
     [](World& w) {
       with_efa(w);
       w.cluster.job.unresolved["LD_LIBRARY_PATH"] = {"$(module load ofi)", {}};
     },
     {},
     {"node0 LD_LIBRARY_PATH", "node1 LD_LIBRARY_PATH", "node2 LD_LIBRARY_PATH",
      "node3 LD_LIBRARY_PATH"}},
    {"no plugin that a login would find: a notice",
     [](World& w) {
       with_efa(w);
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins.clear(); });
       seen_by_ssh(w);
     },
     {unusable(notice, possible, "no network plugin for NCCL (aws-ofi-nccl)")}},
    {"a plugin without libfabric",
     [](World& w) {
       with_efa(w);
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.libfabric.clear(); });
       running(w);
     },
     {unusable(degraded, likely, "no libfabric for /opt/ofi/libnccl-net.so")}},
    {"a container without the device",
     [](World& w) { shut(w, false); },
     {closed(degraded, "/dev/infiniband/uverbs0 is not there")}},
    {"a device that may not be opened by this login: a notice",
     [](World& w) {
       shut(w, true);
       seen_by_ssh(w);
     },
     {closed(notice, "/dev/infiniband/uverbs0 may not be opened")}},
    {"near miss: one of two may be opened",
     [](World& w) {
       shut(w, false);
       World::change(w.node(1).rdma, [](Rdma& rdma) {
         rdma.devices.push_back(rdma.devices[0]);
         rdma.devices[1].uverbs_there = rdma.devices[1].uverbs_usable = true;
       });
     }},
    {"near miss: another plugin, which nobody knows",
     [](World& w) {
       with_efa(w);
       on_all(w, [](Software& software) {
         software.plugins = {{.path = "/opt/x/libnccl-net.so", .kind = "net"}};
       });
     }},
    {"near miss: no NCCL was found on the host, the job runs in a container",
     [](World& w) {
       with_efa(w);
       on_all(w, no_nccl);
     },
     {},
     {},
     "no node with NCCL has an EFA device"},
    {"near miss: one node alone",
     [](World& w) {
       with_efa(w);
       w.cluster.nodes.resize(1);
     },
     {},
     {},
     "one node alone"},
    {"near miss: a job on Gloo",
     [](World& w) {
       with_efa(w);
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"nobody looked at the devices: a gap",
     [](World& w) { w.node(1).rdma = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 rdma"},
     "no node with NCCL has an EFA device"},
};

TEST_CASE("software/efa_plugin") {
  run_cases("software/efa_plugin", cases);
}

}  // namespace
}  // namespace distdoctor::testing
