#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr const char* kIstio =
    " ports of a sidecar: 15001, 15006 and 15021 listen, not none of the kind; ss -ltn 'sport = "
    ":15001 or sport = :15006'";

void join(World& w, const char* mesh) {
  for (std::size_t i : {1U, 2U}) w.node(i).world = distdoctor::World{.service_mesh = mesh};
}
void answer(World& w, std::size_t from, std::size_t to, Outcome outcome) {
  for (Dial& dial : w.pair(from, to).dials) {
    if (dial.purpose == Purpose::nccl_bootstrap) dial.outcome = outcome;
  }
}

Verdict caught(Severity severity, std::vector<std::string> rows) {
  Verdict verdict{.code = "net-service-mesh",
                  .severity = severity,
                  .certainty = rows.empty() ? possible : likely,
                  .symptom = Symptom::hang,
                  .says = rows.empty() ? "; what was tried went through it"
                                       : "were answered by another than was meant",
                  .blamed = {"node1", "node2"},
                  .evidence = {std::string("node1") + kIstio, std::string("node2") + kIstio},
                  .fixes = {"*: (manual)"}};
  for (auto& row : rows) verdict.evidence.push_back(row);
  return verdict;
}
std::string dial(const char* outcome) {
  return std::string("node1 dial 10.20.0.12 of node2: ") + outcome +
         " on port 32768, not an answer from there; nc -vz -w 3 10.20.0.12 32768";
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a sidecar that lets all through: a notice",
     [](World& w) { join(w, "istio"); },
     {caught(notice, {})}},
    {"resets",
     [](World& w) {
       join(w, "istio");
       answer(w, 1, 2, Outcome::reset);
     },
     {caught(blocker, {dial("reset")})}},
    {"another answer",
     [](World& w) {
       join(w, "istio");
       answer(w, 1, 2, Outcome::wrong_answer);
     },
     {caught(blocker, {dial("wrong answer")})}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       join(w, "istio");
       answer(w, 1, 2, Outcome::no_answer);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {[] {
       auto row = caught(notice, {dial("no answer")});
       return row;
     }()}},
    {"near miss: a filter is another check's", [](World& w) { answer(w, 1, 2, Outcome::reset); }},
    {"near miss: time-outs are no sidecar's",
     [](World& w) {
       join(w, "istio");
       answer(w, 1, 2, Outcome::timed_out);
     },
     {caught(notice, {})}},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"}},
};

TEST_CASE("net/service_mesh") {
  run_cases("net/service_mesh", cases);
}

}  // namespace
}  // namespace distdoctor::testing
