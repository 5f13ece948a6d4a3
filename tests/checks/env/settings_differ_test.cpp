#include "checks/env/jobs.h"
#include "checks/env/variables.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void set_on(
    World& w, std::size_t node, const std::string& name, const std::string& value, Source source) {
  w.prediction(node).settings[name] = {
      value,
      {.source = source,
       .node = w.node(node).host,
       .where = source == Source::system_config ? "/etc/nccl.conf:2" : "--env"}};
}

Verdict differs(Severity severity,
                Certainty certainty,
                const std::string& says,
                const std::string& row,
                const std::string& fix) {
  return {.code = "env-settings-differ",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node2"},
          .evidence = {row},
          .fixes = {fix}};
}

const std::string kGrep = "; printenv NCCL_ALGO; grep NCCL_ALGO ~/.nccl.conf /etc/nccl.conf";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"one value for all", [](World& w) { w.set("NCCL_ALGO", "Ring"); }},
    {"one node's nccl.conf says something else",
     [](World& w) {
       w.set("NCCL_ALGO", "Ring");
       set_on(w, 2, "NCCL_ALGO", "Tree", Source::system_config);
     },
     {differs(degraded,
              likely,
              "NCCL_ALGO differs: 1 of 4 nodes do not have Ring",
              "node2 NCCL_ALGO: Tree (/etc/nccl.conf:2), not Ring" + kGrep,
              "*: NCCL_ALGO=Ring")}},
    {"one node alone sets it",
     [](World& w) { set_on(w, 2, "NCCL_ALGO", "Tree", Source::system_config); },
     {differs(degraded,
              possible,
              "1 of 4 nodes set it, where most do not",
              "node2 NCCL_ALGO: Tree (/etc/nccl.conf:2), not unset" + kGrep,
              "*: NCCL_ALGO unset")}},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       w.set("NCCL_ALGO", "Ring");
       set_on(w, 2, "NCCL_ALGO", "Tree", Source::system_config);
     },
     {differs(notice,
              likely,
              "NCCL_ALGO differs",
              "node2 NCCL_ALGO: Tree (/etc/nccl.conf:2), not Ring" + kGrep,
              "*: NCCL_ALGO=Ring")}},
    {"near miss: jobs of one node each need not agree",
     [](World& w) {
       run_one_node_job(w, 0, {{"NCCL_PROTO", "LL"}});
       run_one_node_job(w, 1);
       run_one_node_job(w, 2, {{"NCCL_PROTO", "Simple"}});
     }},
    {"near miss: nor need two jobs of two nodes",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         add_rank(w, node,
                  {{"RANK", node % 2 == 0 ? "0" : "1"},
                   {"WORLD_SIZE", "2"},
                   {"MASTER_ADDR", node < 2 ? "node0" : "node2"},
                   {"NCCL_PROTO", node < 2 ? "LL" : "Simple"}});
       }
       for (const std::size_t node : {2U, 3U}) w.node(node).settings = Settings{};
     }},
    {"live workers differ",
     [](World& w) {
       run_job(w, {{"NCCL_PROTO", "LL"}});
       set_variable(w, 2, {{"NCCL_PROTO", "Simple"}});
     },
     {differs(degraded,
              likely,
              "NCCL_PROTO differs: 1 of 4 nodes do not have LL",
              "node2 NCCL_PROTO: Simple (pid 1200), not LL; tr '\\0' '\\n' < /proc/1200/environ | "
              "grep NCCL_",
              "*: NCCL_PROTO=LL")}},
    {"what NCCL reads is compared, and its default is as good as unset",
     [](World& w) {
       w.set("NCCL_COLLNET_ENABLE", "0");
       say_on(w, 1, "NCCL_COLLNET_ENABLE", "false");
       say_on(w, 2, "NCCL_COLLNET_ENABLE", "0x0");
       w.prediction(3).settings.erase("NCCL_COLLNET_ENABLE");
       say_on(w, 0, "NCCL_COLLNET_ENABLE", "0");
       say(w, "NCCL_IB_TC", "106");
       say_on(w, 2, "NCCL_IB_TC", "0x6a");
     }},
    {"a word that NCCL reads as 0",
     [](World& w) {
       say(w, "NCCL_CUMEM_ENABLE", "1");
       say_on(w, 2, "NCCL_CUMEM_ENABLE", "true");
     },
     {differs(degraded,
              likely,
              "NCCL_CUMEM_ENABLE differs: 1 of 4 nodes do not have 1",
              "node2 NCCL_CUMEM_ENABLE: true (--env), not 1; printenv NCCL_CUMEM_ENABLE; grep "
              "NCCL_CUMEM_ENABLE ~/.nccl.conf /etc/nccl.conf",
              "*: NCCL_CUMEM_ENABLE=1")}},
    {"ranks of one node differ",
     [](World& w) {
       run_job(w, {{"WORLD_SIZE", "6"}, {"NCCL_P2P_LEVEL", "NVL"}});
       add_rank(w, 2, {{"RANK", "4"}, {"WORLD_SIZE", "6"}, {"NCCL_P2P_LEVEL", "NVL"}});
       add_rank(w, 2, {{"RANK", "5"}, {"WORLD_SIZE", "6"}, {"NCCL_P2P_LEVEL", "SYS"}});
     },
     {differs(degraded,
              likely,
              "NCCL_P2P_LEVEL differs: 1 of 3 ranks do not have NVL",
              "node2 NCCL_P2P_LEVEL: SYS (pid 1202), not NVL; tr '\\0' '\\n' < "
              "/proc/1202/environ | grep NCCL_",
              "*: NCCL_P2P_LEVEL=NVL")}},
    {"near miss: nodes may differ in what holds inside a node",
     [](World& w) {
       run_job(w, {{"NCCL_P2P_LEVEL", "NVL"}});
       set_variable(w, 2, {{"NCCL_P2P_LEVEL", "SYS"}});
     }},
    {"near miss: interfaces, HCAs and debug output may differ",
     [](World& w) {
       for (const char* name : {"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX",
                                "NCCL_DEBUG", "NCCL_TOPO_FILE", "NCCL_HOSTID"}) {
         set_on(w, 2, name, "x", Source::system_config);
       }
     }},
    {"near miss: a login shell's value is not the job's",
     [](World& w) {
       w.set("NCCL_ALGO", "Ring");
       set_on(w, 2, "NCCL_ALGO", "Tree", Source::environment);
     }},
    {"near miss: Gloo reads none of them",
     [](World& w) {
       w.cluster.job.nccl = Use::no;
       w.set("NCCL_ALGO", "Ring");
       set_on(w, 2, "NCCL_ALGO", "Tree", Source::system_config);
     }},
    {"an unseen node is a gap, and no difference",
     [](World& w) {
       w.set("NCCL_ALGO", "Ring");
       w.prediction(2).settings.erase("NCCL_ALGO");
       w.node(2).settings = Unknown{.text = "no answer"};
     },
     {},
     {"node2 settings"}},
    {"one node", [](World& w) { w.cluster.nodes.resize(1); }},
};

TEST_CASE("env/settings_differ") {
  run_cases("env/settings_differ", cases);
}

}  // namespace
}  // namespace distdoctor::testing
