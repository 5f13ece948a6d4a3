#include "checks/env/variables.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

template <class Change>
void on_all(World& w, Change change) {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) {
    World::change(w.node(i).software, change);
  }
}
void loaded_by_ranks(World& w) {
  on_all(w, [](Software& software) { software.nccl[0].origin = "mapped by pid 7"; });
}
void plugin(World& w, const std::string& path) {
  on_all(w, [&](Software& software) {
    software.plugins = {{.path = path, .kind = "net", .exports = {"ncclNetPlugin_v8"}}};
  });
}

// The same on all nodes, with --env.
Verdict everywhere(Verdict verdict,
                   const std::string& name,
                   const std::string& value,
                   const std::string& expected) {
  verdict.blamed = {"node0", "node1", "node2", "node3"};
  for (const auto& node : verdict.blamed) {
    verdict.evidence.push_back(node + " " + name + ": " + value + " (--env), not " + expected +
                               "; printenv " + name);
  }
  verdict.fixes = {"*: " + name + " unset"};
  return verdict;
}

Verdict no_network(Severity severity) {
  return everywhere({.code = "env-network-not-there",
                     .severity = severity,
                     .certainty = likely,
                     .symptom = Symptom::crash,
                     .says = "there is no plugin"},
                    "NCCL_NET", "AWS Libfabric",
                    "IB, Socket, or a network of a plugin that is there");
}

Verdict no_devices(const std::vector<int>& nodes,
                   const std::string& value,
                   const std::string& fix) {
  Verdict verdict{.code = "env-network-not-there",
                  .severity = blocker,
                  .certainty = likely,
                  .symptom = Symptom::crash,
                  .says = "where there is no RDMA device",
                  .fixes = {fix}};
  for (const int node : nodes) {
    verdict.blamed.push_back("node" + std::to_string(node));
    verdict.evidence.push_back(verdict.blamed.back() + " NCCL_NET: " + value +
                               " (--env), and no RDMA device, not unset, or a device in "
                               "/sys/class/infiniband; ls /sys/class/infiniband; rdma link");
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"AWS with EFA and its plugin",
     [](World& w) {
       aws_efa(w);
       plugin(w, "/opt/amazon/ofi-nccl/lib/libnccl-net.so");
       say(w, "NCCL_NET", "AWS Libfabric");
     }},
    {"NCCL's own networks, in any case",
     [](World& w) {
       for (NodeFacts& node : w.cluster.nodes) node.rdma = Rdma{.devices = {{.name = "mlx5_0"}}};
       say(w, "NCCL_NET", "ib");
       say_on(w, 1, "NCCL_NET", "SOCKET");
       say_on(w, 2, "NCCL_NET", "");
     }},
    {"InfiniBand, and no node has a device",
     [](World& w) { say(w, "NCCL_NET", "IB"); },
     {no_devices({0, 1, 2, 3}, "IB", "*: NCCL_NET unset")}},
    {"one node has none",
     [](World& w) {
       say(w, "NCCL_NET", "ib");
       for (const std::size_t i : {0UL, 1UL, 3UL}) {
         w.node(i).rdma = Rdma{.devices = {{.name = "mlx5_0"}}};
       }
     },
     {no_devices({2}, "ib", "node2: NCCL_NET unset")}},
    {"InfiniBand, and nobody looked for devices",
     [](World& w) {
       say(w, "NCCL_NET", "IB");
       for (NodeFacts& node : w.cluster.nodes) node.rdma = Unknown{.text = "no answer"};
     },
     {},
     {"node0 rdma", "node1 rdma", "node2 rdma", "node3 rdma"}},
    {"no plugin for that network",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       loaded_by_ranks(w);
     },
     {no_network(blocker)}},
    {"no plugin that a login would load: a notice",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       for (std::size_t i = 0; i < 4; ++i) w.node(i).context = Context::ssh;
     },
     {no_network(notice)}},
    {"near miss: no NCCL was found, the job runs in a container",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       on_all(w, [](Software& software) { software.nccl.clear(); });
     }},
    {"its plugin may lie where nobody could follow the job",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       w.cluster.job.unresolved["LD_LIBRARY_PATH"] = {
           "$(module load ofi):$LD_LIBRARY_PATH",
           {.source = Source::command_line, .where = "run.sh:3"}};
     },
     {},
     {"node0 LD_LIBRARY_PATH", "node1 LD_LIBRARY_PATH", "node2 LD_LIBRARY_PATH",
      "node3 LD_LIBRARY_PATH"}},
    {"where nobody could follow the job, and yet it is there",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       plugin(w, "/ofi/libnccl-net.so");
       w.cluster.job.unresolved["LD_LIBRARY_PATH"] = {"/ofi:$LD_LIBRARY_PATH", {}};
     }},
    {"a name of which only the shell knows what it leads to",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       say(w, "NCCL_NET_PLUGIN", "$OFI/libnccl-net.so");
     },
     {},
     {"node0 NCCL_NET_PLUGIN", "node1 NCCL_NET_PLUGIN", "node2 NCCL_NET_PLUGIN",
      "node3 NCCL_NET_PLUGIN"}},
    {"a rank that runs was followed by its own environment",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       loaded_by_ranks(w);
       w.cluster.job.unresolved["LD_LIBRARY_PATH"] = {"$X", {}};
     },
     {no_network(blocker)}},
    {"nobody looked for the plugin that is named",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       say(w, "NCCL_NET_PLUGIN", "./libnccl-net.so");
     },
     {},
     {"node0 file of NCCL_NET_PLUGIN", "node1 file of NCCL_NET_PLUGIN",
      "node2 file of NCCL_NET_PLUGIN", "node3 file of NCCL_NET_PLUGIN"}},
    {"the switches are to reduce, and there is no plugin for it",
     [](World& w) { say(w, "NCCL_COLLNET_ENABLE", "1"); },
     {everywhere({.code = "env-collnet-without-plugin",
                  .severity = notice,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says = "does nothing: there is no plugin"},
                 "NCCL_COLLNET_ENABLE",
                 "1",
                 "unset, or NVIDIA's SHARP plugin on every node")}},
    {"near miss: with a plugin, off, and where no NCCL was found",
     [](World& w) {
       say_on(w, 0, "NCCL_COLLNET_ENABLE", "1");
       say_on(w, 1, "NCCL_COLLNET_ENABLE", "0");
       say_on(w, 2, "NCCL_COLLNET_ENABLE", "1");
       plugin(w, "/opt/hpcx/libnccl-net.so");
       World::change(w.node(2).software, [](Software& software) { software = {}; });
     }},
    {"a library to be preloaded that is not there",
     [](World& w) {
       say(w, "LD_PRELOAD", "/x/libnccl.so.2");
       on_all(w, [](Software& software) {
         software.named_files = {{.variable = "LD_PRELOAD", .path = "/x/libnccl.so.2", .error = 2}};
       });
     },
     {everywhere({.code = "env-preload-not-there",
                  .severity = notice,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says = "no library /x/libnccl.so.2 was found"},
                 "LD_PRELOAD",
                 "/x/libnccl.so.2",
                 "a library that is there on every node")}},
    {"near miss: only a login says so",
     [](World& w) {
       say(w, "LD_PRELOAD", "/x.so", Source::environment);
       on_all(w, [](Software& software) {
         software.named_files = {{.variable = "LD_PRELOAD", .path = "/x.so", .error = 2}};
       });
     }},
    {"a plugin that is not there",
     [](World& w) {
       say(w, "NCCL_NET_PLUGIN", "ofi");
       on_all(w, [](Software& software) {
         software.named_files = {{.variable = "NCCL_NET_PLUGIN", .path = "ofi", .error = 2}};
       });
     },
     {everywhere({.code = "env-plugin-not-there",
                  .severity = notice,
                  .certainty = possible,
                  .symptom = Symptom::slow,
                  .says = "no library ofi was found"},
                 "NCCL_NET_PLUGIN",
                 "ofi",
                 "a library where the loader of the job looks")}},
    {"near miss: the node looked for another one",
     [](World& w) {
       say(w, "NCCL_NET_PLUGIN", "ofi");
       on_all(w, [](Software& software) {
         software.named_files = {{.variable = "NCCL_NET_PLUGIN", .path = "sharp", .error = 2}};
       });
     }},
    {"InfiniBand is off, and NVIDIA's plugin brings another one",
     [](World& w) {
       say_on(w, 1, "NCCL_IB_DISABLE", "1");
       plugin(w, "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so");
     },
     {{.code = "env-plugin-overrides",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::crash,
       .says = "turns off NCCL's own InfiniBand only",
       .blamed = {"node1"},
       .evidence = {said_row(
           "NCCL_IB_DISABLE", "1", "NCCL_NET=Socket beside it, or NCCL_NET_PLUGIN=none")},
       .fixes = {"*: NCCL_NET=Socket"}}}},
    {"near miss: and NCCL_NET says so, too",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "1");
       say(w, "NCCL_NET", "Socket");
       plugin(w, "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so");
     }},
    {"near miss: 0 disables nothing",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "0");
       plugin(w, "/opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so");
     }},
    {"near miss: a job on Gloo",
     [](World& w) {
       say(w, "NCCL_NET", "AWS Libfabric");
       w.cluster.job.nccl = Use::no;
     }},
    {"nobody looked: a gap",
     [](World& w) {
       say_on(w, 1, "NCCL_NET", "AWS Libfabric");
       w.node(1).software = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node1 software"}},
};

TEST_CASE("env/named_network") {
  run_cases("env/named_network", cases);
}

}  // namespace
}  // namespace distdoctor::testing
