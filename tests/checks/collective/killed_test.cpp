// FAKE runs: a rank on node1 that a signal ended.
#include "support/fake_isolations.h"

namespace distdoctor::testing {
namespace {

void killed(World& world, int number, const std::string& signal) {
  Experiment run = fake_run(number, "baseline", RunOutcome::failed, 0);
  for (RankRun& rank : run.ranks) rank.error = "Connection closed by peer";
  run.outcome = RunOutcome::crashed;
  run.ranks[2].outcome = RunOutcome::crashed;
  run.ranks[2].error = "run gloo_allreduce rank: killed by " + signal;
  world.cluster.experiments.push_back(run);
}

void sound(World& world, int number) {
  world.cluster.experiments.push_back(fake_run(number, "baseline", RunOutcome::ok, 1));
}

constexpr const char* kLook = "; dmesg -T | grep -iE 'out of memory|killed process'";

std::string row(int number, const std::string& signal) {
  return "node1 rank 2 of run " + std::to_string(number) + " (baseline): killed by " + signal +
         " after comm_init, not ends by itself" + kLook;
}

TEST_CASE("collective/killed") {
  run_cases(
      "collective/killed",
      {{.name = "no run was made", .change = [](World&) {}},
       {.name = "once is a notice",
        .change =
            [](World& world) {
              sound(world, 0);
              killed(world, 1, "SIGKILL");
              sound(world, 2);
            },
        .findings = {{.code = "collective-rank-killed",
                      .severity = Severity::notice,
                      .certainty = Certainty::proved,
                      .symptom = Symptom::crash,
                      .says = "rank 2 on node1 was killed by SIGKILL in run 1: somebody else",
                      .blamed = {"node1"},
                      .evidence = {row(1, "SIGKILL")},
                      .fixes = {"node1: (manual)"}}}},
       {.name = "twice, and sound once",
        .change =
            [](World& world) {
              killed(world, 0, "SIGTERM");
              sound(world, 1);
              killed(world, 2, "SIGTERM");
            },
        .findings = {{.code = "collective-rank-killed",
                      .severity = Severity::degraded,
                      .certainty = Certainty::proved,
                      .symptom = Symptom::crash,
                      .says = "killed by SIGTERM in run 0 and 1 more",
                      .blamed = {"node1"},
                      .evidence = {row(0, "SIGTERM"), row(2, "SIGTERM")},
                      .fixes = {"node1: (manual)"}}}},
       {.name = "each time, and the kernel says that it did it",
        .change =
            [](World& world) {
              killed(world, 0, "SIGKILL");
              killed(world, 1, "SIGKILL");
              world.cluster.nodes[1].kernel_log =
                  KernelLog{.lines = {{.text = "Killed process 7 (python3) total-vm:1kB"},
                                      {.text = "Killed process 9 (gloo_allreduce) total-vm:1kB"}}};
            },
        .findings = {{.code = "collective-rank-killed",
                      .severity = Severity::blocker,
                      .certainty = Certainty::proved,
                      .symptom = Symptom::crash,
                      .says = "the kernel did it for want of memory",
                      .blamed = {"node1"},
                      .evidence = {row(0, "SIGKILL"), row(1, "SIGKILL"),
                                   std::string("node1 kernel log: Killed process 9 "
                                               "(gloo_allreduce) total-vm:1kB, not nothing of the "
                                               "kind") +
                                       kLook},
                      .fixes = {"node1: (manual)"}}}},
       {.name = "what the kernel killed yesterday, and names like ours, say nothing",
        .change =
            [](World& world) {
              killed(world, 0, "SIGKILL");
              sound(world, 1);
              world.cluster.nodes[1].kernel_log = KernelLog{
                  .lines = {{.uptime_s = 100, .text = "Killed process 9 (gloo_allreduce) total"},
                            {.uptime_s = 90'000, .text = "Killed process 8 (vendor-agent) total"}},
                  .now_s = 90'001};
            },
        .findings = {{.code = "collective-rank-killed",
                      .severity = Severity::notice,
                      .certainty = Certainty::proved,
                      .symptom = Symptom::crash,
                      .says = "somebody else ended that process",
                      .blamed = {"node1"},
                      .evidence = {row(0, "SIGKILL")},
                      .fixes = {"node1: (manual)"}}}},
       {.name = "a library's own abort is no kill",
        .change = [](World& world) { killed(world, 0, "SIGABRT"); }}});
}

}  // namespace
}  // namespace distdoctor::testing
