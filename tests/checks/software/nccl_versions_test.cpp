#include "support/check_cases.h"

#include <map>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void load(World& w, std::size_t node, const char* version, const char* origin = "mapped by pid 7") {
  w.node(node).nccl_library =
      NcclLibrary{.path = "/opt/libnccl.so.2", .version = version, .origin = origin};
}
void load_all(World& w, const char* version, const char* origin = "mapped by pid 7") {
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) load(w, i, version, origin);
}

Verdict differs(Severity severity,
                Certainty certainty,
                const std::string& says,
                const std::vector<std::string>& versions,
                const char* origin = "mapped by pid 7") {
  Verdict verdict{.code = "software-nccl-version-differs",
                  .severity = severity,
                  .certainty = certainty,
                  .symptom = Symptom::crash,
                  .says = says,
                  .blamed = {"node2"},
                  .fixes = {"*: (manual)"}};
  for (std::size_t i = 0; i < versions.size(); ++i) {
    verdict.evidence.push_back("node" + std::to_string(i) + " NCCL (" + origin +
                               "): " + versions[i] +
                               ", not the same on all nodes; strings -n 12 /opt/libnccl.so.2 | "
                               "grep -m 1 'NCCL version'");
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy and running", [](World& w) { load_all(w, "2.27.3"); }},
    {"a running rank has another one",
     [](World& w) {
       load_all(w, "2.27.3");
       load(w, 2, "2.21.5");
     },
     {differs(blocker,
              likely,
              "node2 has 2.21.5, while 2.27.3 is usual: NCCL refuses",
              {"2.27.3", "2.27.3", "2.21.5", "2.27.3"})}},
    {"a shell would load another one: a notice",
     [](World& w) {
       load_all(w, "2.27.3", "ld.so.cache");
       load(w, 2, "2.21.5", "ld.so.cache");
     },
     {differs(notice,
              possible,
              "need not be the copies that one job loads",
              {"2.27.3", "2.27.3", "2.21.5", "2.27.3"},
              "ld.so.cache")}},
    {"near miss: the ranks that run agree, an idle node's system has another one",
     [](World& w) {
       load_all(w, "2.27.3");
       load(w, 2, "2.21.5", "ld.so.cache");
     }},
    {"ranks of two jobs: a notice",
     [](World& w) {
       load_all(w, "2.27.3");
       load(w, 2, "2.21.5");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         TrainingProcess rank{.pid = 7};
         rank.env = std::map<std::string, std::string>{{"MASTER_PORT", i == 2 ? "1" : "2"}};
         w.node(i).processes = std::vector{rank};
       }
     },
     {differs(notice, possible, "node2 has 2.21.5", {"2.27.3", "2.27.3", "2.21.5", "2.27.3"})}},
    {"near miss: no copy, or one without a version",
     [](World& w) {
       w.node(1).nccl_library = NcclLibrary{};
       load(w, 2, "");
     }},
    {"near miss: a job on Gloo",
     [](World& w) {
       w.cluster.job.nccl = Use::no;
       load(w, 2, "2.21.5");
     }},
    {"nobody looked: a gap",
     [](World& w) { w.node(1).nccl_library = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 nccl_library"}},
};

TEST_CASE("software/nccl_versions") {
  run_cases("software/nccl_versions", cases);
}

}  // namespace
}  // namespace distdoctor::testing
