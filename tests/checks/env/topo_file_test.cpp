#include "checks/env/variables.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr const char* kTopology = "NCCL_TOPO_FILE";
constexpr const char* kGraph = "NCCL_GRAPH_FILE";
constexpr const char* kPath = "/opt/topo.xml";

void lies_on(
    World& w, std::size_t node, const char* variable, int error, const std::string& begins) {
  World::change(w.node(node).software, [&](Software& software) {
    software.named_files = {
        {.variable = variable, .path = kPath, .error = error, .bytes = 9, .begins = begins}};
  });
}
void lies(World& w, const char* variable, int error, const std::string& begins) {
  say(w, variable, kPath);
  for (std::size_t i = 0; i < w.cluster.nodes.size(); ++i) lies_on(w, i, variable, error, begins);
}

Verdict bad(const char* variable,
            Severity severity,
            const std::string& says,
            const std::string& seen,
            const std::vector<std::string>& nodes = {"node0", "node1", "node2", "node3"}) {
  Verdict verdict{.code = "env-topo-file-bad",
                  .severity = severity,
                  .certainty = severity == blocker ? likely : possible,
                  .symptom = severity == blocker ? Symptom::crash : Symptom::slow,
                  .says = says,
                  .blamed = nodes};
  for (const auto& node : nodes) {
    verdict.evidence.push_back(node + " " + variable + ": /opt/topo.xml (--env) " + seen +
                               ", not a file that NCCL reads; head -c 80 /opt/topo.xml");
  }
  if (nodes.size() == 4) {
    verdict.fixes = {"*: " + std::string(variable) + " unset"};
  } else {
    for (const auto& node : nodes) verdict.fixes.push_back(node + ": " + variable + " unset");
  }
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a topology file as its maker ships it",
     [](World& w) { lies(w, kTopology, 0, "<system version=\"1\"> <cpu numaid=\"0\""); }},
    {"a comment before it",
     [](World& w) { lies(w, kTopology, 0, "<!-- ND A100 v4 --> <system version=\"1\">"); }},
    {"a long comment: what follows is not known",
     [](World& w) { lies(w, kTopology, 0, "<!-- This topology file was copied from a very"); }},
    {"a long first tag", [](World& w) { lies(w, kTopology, 0, "<system name=\"x\" ver"); }},
    {"a graph file", [](World& w) { lies(w, kGraph, 0, "<graphs version=\"1\">"); }},
    {"a file that only the job's shell can name",
     [](World& w) { w.cluster.job.unresolved[kTopology] = {"$X/topo.xml", {}}; },
     {},
     {"node0 NCCL_TOPO_FILE", "node1 NCCL_TOPO_FILE", "node2 NCCL_TOPO_FILE",
      "node3 NCCL_TOPO_FILE"}},
    {"no topology file: ignored",
     [](World& w) { lies(w, kTopology, 2, ""); },
     {bad(kTopology, notice, "does not exist on all nodes; NCCL goes on", "does not exist")}},
    {"no topology file on one node",
     [](World& w) {
       lies(w, kTopology, 0, "<system version=\"1\">");
       lies_on(w, 2, kTopology, 2, "");
     },
     {bad(kTopology, degraded, "does not exist on node2", "does not exist", {"node2"})}},
    {"no graph file: NCCL stops",
     [](World& w) { lies(w, kGraph, 2, ""); },
     {bad(kGraph, blocker, "NCCL stops with `Could not open XML graph file`", "does not exist")}},
    {"nobody may read the graph file",
     [](World& w) { lies(w, kGraph, 13, ""); },
     {bad(kGraph, blocker, "cannot be read", "cannot be read")}},
    {"an XML declaration, which other programs like",
     [](World& w) { lies(w, kTopology, 0, "<?xml version=\"1.0\"?> <system version=\"1\">"); },
     {bad(kTopology, blocker, "XML declaration", "begins with an XML declaration")}},
    {"a byte order mark",
     [](World& w) { lies(w, kTopology, 0, "\xef\xbb\xbf<system version=\"1\">"); },
     {bad(kTopology, blocker, "XML Parse error", "is no XML")}},
    {"JSON",
     [](World& w) { lies(w, kTopology, 0, "{"); },
     {bad(kTopology, blocker, "is no XML", "is no XML")}},
    {"the graph file's root in the topology file",
     [](World& w) { lies(w, kTopology, 0, "<graphs version=\"1\">"); },
     {bad(kTopology, notice, "goes on", "begins with <graphs, not with <system")}},
    {"no version",
     [](World& w) { lies(w, kTopology, 0, "<system> <cpu>"); },
     {bad(kTopology, blocker, "wrong version", "has no version=\"1\" in its <system")}},
    {"an empty file",
     [](World& w) { lies(w, kTopology, 0, ""); },
     {bad(kTopology, notice, "goes on", "is empty, or a folder")}},
    {"a login shell's: a notice",
     [](World& w) {
       lies(w, kGraph, 2, "");
       say(w, kGraph, kPath, Source::environment);
       for (NodeFacts& node : w.cluster.nodes) node.context = Context::ssh;
     },
     {[] {
       auto verdict = bad(kGraph, notice, "NCCL stops", "does not exist");
       verdict.certainty = likely;
       verdict.symptom = Symptom::crash;
       return verdict;
     }()}},
    {"near miss: the node looked at another path: a gap",
     [](World& w) {
       lies(w, kTopology, 2, "");
       say_on(w, 1, kTopology, "/other.xml");
       say_on(w, 0, kTopology, "/other.xml");
       say_on(w, 2, kTopology, "/other.xml");
       say_on(w, 3, kTopology, "/other.xml");
     },
     {},
     {"node0 file of NCCL_TOPO_FILE", "node1 file of NCCL_TOPO_FILE",
      "node2 file of NCCL_TOPO_FILE", "node3 file of NCCL_TOPO_FILE"}},
    {"near miss: a job on Gloo",
     [](World& w) {
       lies(w, kGraph, 2, "");
       w.cluster.job.nccl = Use::no;
     }},
    {"nobody looked: a gap",
     [](World& w) {
       lies(w, kTopology, 0, "<system version=\"1\">");
       w.node(1).software = Unknown{.kind = Why::timed_out};
     },
     {},
     {"node1 software"}},
};

TEST_CASE("env/topo_file") {
  run_cases("env/topo_file", cases);
}

}  // namespace
}  // namespace distdoctor::testing
