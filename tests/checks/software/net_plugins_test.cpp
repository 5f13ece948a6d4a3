#include "checks/software/nodes.h"

#include <map>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

const std::string kPath = "/opt/ofi/libnccl-net.so";

void plugin(Software& software) {
  software.plugins = {{.path = kPath,
                       .kind = "net",
                       .exports = {"ncclNetPlugin_v9", "ncclNetPlugin_v8"},
                       .origin = "ld.so.cache",
                       .version = "aws-ofi-nccl 1.13.2"}};
}
void on_three(World& w) {
  on_all(w, plugin);
  on(w, 2, [](Software& software) { software.plugins.clear(); });
}

Verdict missing(Severity severity, Certainty certainty) {
  const std::string text = kPath + ", aws-ofi-nccl 1.13.2 (ld.so.cache)";
  return {.code = "software-plugin-missing",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = "1 of 4 nodes have no network plugin for NCCL, while node0 has " + kPath,
          .blamed = {"node2"},
          .evidence = {"node2 NCCL network plugin: no network plugin, not " + text +
                           "; ldconfig -p | grep libnccl-net; echo \"$LD_LIBRARY_PATH\"",
                       "node0 NCCL network plugin: " + text +
                           ", not the same on all nodes; ls -l " + kPath},
          .fixes = {"*: (manual)", "*: NCCL_NET_PLUGIN=none"}};
}

const std::vector<CheckCase> cases = {
    {"healthy, without any", [](World&) {}},
    {"healthy, with one", [](World& w) { on_all(w, plugin); }},
    {"ranks of one node have none",
     [](World& w) {
       on_three(w);
       running(w);
     },
     {missing(blocker, likely)}},
    {"a login would find none on one node: a notice",
     [](World& w) {
       on_three(w);
       seen_by_ssh(w);
     },
     {missing(notice, possible)}},
    {"ranks of two jobs: a notice",
     [](World& w) {
       on_three(w);
       running(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         TrainingProcess rank{.pid = 7};
         rank.env = std::map<std::string, std::string>{{"MASTER_PORT", i == 2 ? "1" : "2"}};
         w.node(i).processes = std::vector{rank};
       }
     },
     {missing(notice, possible)}},
    {"in the job's own containers", on_three, {missing(blocker, possible)}},
    {"near miss: NCCL's own InfiniBand is wanted",
     [](World& w) {
       on_three(w);
       running(w);
       w.set("NCCL_NET", "IB");
     }},
    {"near miss: no plugin is wanted",
     [](World& w) {
       on_three(w);
       running(w);
       w.set("NCCL_NET_PLUGIN", "none");
     }},
    {"near miss: no NCCL was found on that node",
     [](World& w) {
       on_three(w);
       on(w, 2, no_nccl);
     }},
    {"near miss: only a tuner is missing",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) {
         software.plugins.push_back({.path = "/opt/libnccl-tuner.so", .kind = "tuner"});
       });
     }},
    {"another version",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins[0].version = "aws-ofi-nccl 1.9.1"; });
     },
     {{.code = "software-plugin-version-differs",
       .severity = notice,
       .certainty = possible,
       .symptom = Symptom::hang,
       .says = "1 of 4 nodes have another network plugin than aws-ofi-nccl 1.13.2",
       .blamed = {"node1"},
       .evidence = {"node1 NCCL network plugin: " + kPath +
                    ", aws-ofi-nccl 1.9.1 (ld.so.cache), not aws-ofi-nccl 1.13.2; strings " +
                    kPath + " | grep -m 1 'aws-ofi-nccl [0-9]'"},
       .fixes = {"*: (manual)"}}}},
    {"near miss: one does not say its version",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins[0].version = ""; });
     }},
    {"a plugin from before this NCCL",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins[0].exports = {"ncclNetPlugin_v5"}; });
       running(w);
     },
     {{.code = "software-plugin-refused",
       .severity = degraded,
       .certainty = likely,
       .symptom = Symptom::slow,
       .says = "NCCL 2.28.9 of node1 loads no interface of the plugin " + kPath,
       .blamed = {"node1"},
       .evidence = {"node1 NCCL network plugin: " + kPath +
                    " exports ncclNetPlugin_v5, not ncclNetPlugin_v6 to v11; nm -D " + kPath +
                    " | grep ncclNetPlugin"},
       .fixes = {"node1: (manual)"}}}},
    {"near miss: nobody knows what that NCCL asks for",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) {
         software.plugins[0].exports = {"ncclNetPlugin_v5"};
         software.nccl[0].version = "2.99.1";
       });
     }},
    {"near miss: its symbols could not be read",
     [](World& w) {
       on_all(w, plugin);
       on(w, 1, [](Software& software) { software.plugins[0].exports.clear(); });
     }},
    {"near miss: a job on Gloo",
     [](World& w) {
       on_three(w);
       w.cluster.job.nccl = Use::no;
     }},
    {"nobody looked: a gap",
     [](World& w) { w.node(1).software = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 software"}},
};

TEST_CASE("software/net_plugins") {
  run_cases("software/net_plugins", cases);
}

}  // namespace
}  // namespace distdoctor::testing
