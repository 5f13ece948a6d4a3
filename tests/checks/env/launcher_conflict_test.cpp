#include "checks/env/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

std::string row(int node, const std::string& seen, const std::string& want) {
  const std::string pid = std::to_string(1000 + 100 * node);
  return "node" + std::to_string(node) + " pid " + pid + " RANK: " + seen + ", not " + want +
         " as SLURM_PROCID; tr '\\0' '\\n' < /proc/" + pid +
         "/environ | grep -E '(RANK|PROCID|SIZE|NTASKS)='";
}

Verdict conflict(Severity severity, Certainty certainty, const std::string& says) {
  return {.code = "env-launcher-conflict",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says,
          .fixes = {"*: (manual)"}};
}

// Tasks of one srun, with RANK as the row sets it.
void in_a_step(World& w, const std::vector<std::string>& ranks) {
  run_job(w, {{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}});
  for (std::size_t i = 0; i < 4; ++i) {
    set_variable(w, i, {{"SLURM_PROCID", std::to_string(i)}, {"RANK", ranks[i]}});
  }
}

void say(World& w, const Variables& variables) {
  for (const auto& [name, value] : variables) {
    w.cluster.job.rank_settings[name] = {value, {.source = Source::command_line}};
  }
}

std::string said(const std::string& name, const std::string& seen, const std::string& want) {
  return "node0 " + name + ": " + seen + ", not " + want +
         "; env | grep -E '(RANK|PROCID|SIZE|NTASKS)='";
}

Verdict exported_once() {
  Verdict verdict = conflict(blocker, likely, "pid 1100 on node1 has RANK=0, but SLURM_PROCID=1");
  verdict.blamed = {"node1", "node2", "node3"};
  verdict.evidence = {row(1, "0", "1"), row(2, "0", "2"), row(3, "0", "3")};
  return verdict;
}

Verdict other_order() {
  Verdict verdict = conflict(notice, likely, "pid 1100 on node1 has RANK=2, but SLURM_PROCID=1");
  verdict.blamed = {"node1", "node2"};
  verdict.evidence = {row(1, "2", "1"), row(2, "1", "2")};
  return verdict;
}

Verdict command_line() {
  Verdict verdict = conflict(notice, possible, "the command line has RANK=0, but SLURM_PROCID=1");
  verdict.evidence = {said("RANK", "0", "1 as SLURM_PROCID"),
                      said("WORLD_SIZE", "2", "4 as SLURM_NTASKS")};
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"nothing runs", [](World&) {}},
    {"no other launcher", [](World& w) { run_job(w); }},
    {"both agree", [](World& w) { in_a_step(w, {"0", "1", "2", "3"}); }},
    {"a RANK that was exported once",
     [](World& w) { in_a_step(w, {"0", "0", "0", "0"}); },
     {exported_once()}},
    {"another order, but complete: odd, no more",
     [](World& w) { in_a_step(w, {"0", "2", "1", "3"}); },
     {other_order()}},
    {"another order, and one node was not named or has not started: odd, no more",
     [](World& w) {
       in_a_step(w, {"0", "2", "1", "3"});
       w.node(3).processes = std::vector<TrainingProcess>{};
     },
     {other_order()}},
    {"near miss: torchrun below srun numbers by itself",
     [](World& w) {
       in_a_step(w, {"3", "2", "1", "0"});
       for (std::size_t i = 0; i < 4; ++i) set_variable(w, i, {{"TORCHELASTIC_RUN_ID", "x"}});
     }},
    {"near miss: a batch script starts them by itself",
     [](World& w) {
       run_job(w, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_JOB_ID", "7"}});
     }},
    {"the command line says both",
     [](World& w) {
       say(w, {{"RANK", "0"}, {"SLURM_PROCID", "1"}});
       w.set("WORLD_SIZE", "2", Source::command_line);
       w.set("SLURM_NTASKS", "4", Source::command_line);
     },
     {command_line()}},
    {"near miss: the command line agrees with itself",
     [](World& w) { say(w, {{"RANK", "1"}, {"SLURM_PROCID", "1"}}); }},
    {"near miss: torchrun reads neither",
     [](World& w) {
       say(w, {{"RANK", "0"}, {"SLURM_PROCID", "1"}});
       add_launch(w, said_launch(LauncherKind::torchrun, 4));
     }},
    {"near miss: a login shell is not the job",
     [](World& w) {
       say(w, {{"RANK", "0"}, {"SLURM_PROCID", "1"}});
       w.cluster.job.rank_settings["RANK"].origin.source = Source::environment;
     }},
    {"unseen processes are a gap",
     [](World& w) { w.node(1).processes = Unknown{.kind = Why::denied, .text = "EACCES"}; },
     {},
     {"node1 processes"}},
    {"no node",
     [](World& w) {
       say(w, {{"RANK", "0"}, {"SLURM_PROCID", "1"}});
       w.cluster.nodes.clear();
     }},
};

TEST_CASE("env/launcher_conflict") {
  run_cases("env/launcher_conflict", cases);
}

}  // namespace
}  // namespace distdoctor::testing
