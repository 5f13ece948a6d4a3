#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Launch torchrun(int nnodes) {
  return {.kind = LauncherKind::torchrun,
          .origin = {.source = Source::command_line, .where = "train.sh:3"},
          .nnodes_min = nnodes,
          .nnodes_max = nnodes};
}

void say_nothing(World& w) {
  w.cluster.job.settings = {};
  w.cluster.predicted.master = {};
}
void by_hand(World& w, const std::map<std::string, std::string>& said) {
  say_nothing(w);
  for (const auto& [name, value] : said) {
    auto& settings = name == "RANK" ? w.cluster.job.rank_settings : w.cluster.job.settings;
    settings[name] = {value, {.source = Source::command_line, .where = "train.sh:7"}};
  }
}

Verdict no_addr(const char* says, const std::string& evidence, const std::string& fix) {
  return {.code = "rendezvous-addr-missing",
          .severity = blocker,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = says,
          .evidence = {evidence},
          .fixes = {fix}};
}
const std::string kDefault =
    "node0 torchrun.master_addr: not given (train.sh:3), not an address of rank 0's node; "
    "grep -n torchrun train.sh";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"near miss: nothing was said and nothing runs: a gap of the settings, not a fault",
     [](World& w) { say_nothing(w); },
     {},
     {" MASTER_ADDR"}},
    {"near miss: only the job's shell knows",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.unresolved["MASTER_ADDR"] = {"$(hostname)", {}};
     }},
    {"torchrun for four nodes without a master",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.launches = {torchrun(4)};
     },
     {no_addr("torchrun for 4 nodes got neither", kDefault, "*: (manual)")}},
    {"an exported MASTER_ADDR does not help torchrun",
     [](World& w) {
       by_hand(w, {{"MASTER_ADDR", "node0"}});
       w.cluster.job.launches = {torchrun(4)};
     },
     {no_addr("(it ignores MASTER_ADDR)", kDefault, "*: (manual)")}},
    {"near miss: torchrun reads PET_MASTER_ADDR",
     [](World& w) {
       by_hand(w, {{"PET_MASTER_ADDR", "node0"}});
       w.cluster.job.launches = {torchrun(4)};
     }},
    {"near miss: torchrun with a master",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.launches = {torchrun(4)};
       w.cluster.job.launches[0].master_addr = "$HEAD";
     }},
    {"near miss: torchrun with an endpoint",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.launches = {torchrun(4)};
       w.cluster.job.launches[0].rdzv_endpoint = "node0:29400";
     }},
    {"near miss: torchrun on one node",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.launches = {torchrun(1)};
     }},
    {"near miss: --standalone",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.launches = {torchrun(2)};
       w.cluster.job.launches[0].standalone = true;
     }},
    {"ranks by hand without MASTER_ADDR",
     [](World& w) { by_hand(w, {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_PORT", "29500"}}); },
     {no_addr("RANK and WORLD_SIZE are set, MASTER_ADDR is not",
              "node0 MASTER_ADDR: not set beside RANK=0 (train.sh:7), not an address of rank 0's "
              "node; grep -n MASTER_ADDR train.sh",
              "*: MASTER_ADDR=10.10.0.10")}},
    {"ranks by hand without MASTER_PORT",
     [](World& w) { by_hand(w, {{"RANK", "0"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node0"}}); },
     {{.code = "rendezvous-port-missing",
       .severity = blocker,
       .certainty = likely,
       .symptom = Symptom::crash,
       .says = "MASTER_PORT is not",
       .evidence = {"node0 MASTER_PORT: not set beside MASTER_ADDR=node0 (train.sh:7), not one "
                    "port for all nodes; grep -n MASTER_PORT train.sh"},
       .fixes = {"*: MASTER_PORT=29500"}}}},
    {"near miss: the shell works MASTER_ADDR and MASTER_PORT out",
     [](World& w) {
       by_hand(w, {{"RANK", "0"}, {"WORLD_SIZE", "4"}});
       w.cluster.job.unresolved["MASTER_ADDR"] = {"$(scontrol show hostnames | head -1)", {}};
       w.cluster.job.unresolved["MASTER_PORT"] = {"$((20000 + SLURM_JOB_ID % 9000))", {}};
     }},
    {"near miss: a login shell's RANK is not the job's",
     [](World& w) {
       say_nothing(w);
       w.cluster.job.rank_settings["RANK"] = {"0", {.source = Source::environment}};
       w.cluster.job.settings["WORLD_SIZE"] = {"4", {.source = Source::environment}};
     },
     {},
     {" MASTER_ADDR"}},
    {"near miss: deepspeed sets both",
     [](World& w) {
       by_hand(w, {{"RANK", "0"}, {"WORLD_SIZE", "4"}});
       w.cluster.job.launches = {torchrun(4)};
       w.cluster.job.launches[0].kind = LauncherKind::deepspeed;
     }},
    {"near miss: one node alone",
     [](World& w) {
       by_hand(w, {{"RANK", "0"}, {"WORLD_SIZE", "4"}});
       w.cluster.nodes.resize(1);
     }},
};

TEST_CASE("rendezvous/master_missing") {
  run_cases("rendezvous/master_missing", cases);
}

}  // namespace
}  // namespace distdoctor::testing
