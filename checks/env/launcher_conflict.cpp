// One launcher numbers the ranks; the variables of another one do not contradict it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "ranks.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;

// What torch reads, and what Slurm or MPI say for the same thing.
struct Pair {
  std::string torch;
  std::string other;
};
const std::array<Pair, 7> kPairs = {{{"RANK", "SLURM_PROCID"},
                                     {"RANK", "OMPI_COMM_WORLD_RANK"},
                                     {"RANK", "PMI_RANK"},
                                     {"WORLD_SIZE", "SLURM_NTASKS"},
                                     {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"},
                                     {"WORLD_SIZE", "PMI_SIZE"},
                                     {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"}}};

struct Conflict {
  Pair names;
  std::string torch;
  std::string other;
};

// `value` gives a variable, or none. The rest of a batch script's own step is no launcher: there
// SLURM_PROCID is 0 for whatever the script starts by itself.
template <class Value>
std::vector<Conflict> conflicts(const Value& value) {
  std::vector<Conflict> all;
  for (const Pair& pair : kPairs) {
    const auto torch = value(pair.torch);
    const auto other = value(pair.other);
    if (torch && other && *torch != *other) all.push_back({pair, *torch, *other});
  }
  return all;
}

bool several_tasks(const TrainingProcess& process) {
  const bool slurm = number(process, "SLURM_NTASKS").value_or(0) > 1 &&
                     variable(process, "SLURM_STEP_ID").has_value();
  const bool mpi = number(process, "OMPI_COMM_WORLD_SIZE").value_or(0) > 1 ||
                   number(process, "PMI_SIZE").value_or(0) > 1;
  return slurm || mpi;
}

Finding conflict_finding(const std::string& who, const Conflict& first) {
  return {.code = "env-launcher-conflict",
          .severity = Severity::blocker,
          .certainty = Certainty::likely,
          .symptom = Symptom::hang,
          .summary = fmt::format("{} has {}={}, but {}={}: two launchers number the ranks", who,
                                 first.names.torch, first.torch, first.names.other, first.other)};
}

Fix keep_one() {
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text =
              "let one launcher number the ranks: under srun export RANK=$SLURM_PROCID, "
              "LOCAL_RANK=$SLURM_LOCALID and WORLD_SIZE=$SLURM_NTASKS inside the task, or "
              "start torchrun once a node"};
}

// Processes of a step that bring their own RANK. Where their numbers are fine nonetheless, torch is
// content, and only a library that asks Slurm first is not. That some are not there proves nothing:
// they may be on a node that was not named, or still to come.
void judge_processes(const std::vector<Rank>& ranks, Judge& judge) {
  std::vector<std::pair<Rank, Conflict>> odd;
  for (const Rank& rank : ranks) {
    const auto found =
        conflicts([&](const std::string& name) { return variable(*rank.process, name); });
    if (!rank.elastic && several_tasks(*rank.process) && !found.empty()) {
      odd.emplace_back(rank, found.front());
    }
  }
  if (odd.empty()) return;
  const Rank& first = odd.front().first;
  Finding finding = conflict_finding(
      fmt::format("pid {} on {}", first.process->pid, first.node->host), odd.front().second);
  if (!numbers_clash(ranks)) finding.severity = Severity::notice;
  for (const auto& [rank, conflict] : odd) {
    finding.evidence.push_back(
        {.node = rank.node->host,
         .fact = fmt::format("pid {} {}", rank.process->pid, conflict.names.torch),
         .observed = conflict.torch,
         .expected = fmt::format("{} as {}", conflict.other, conflict.names.other),
         .context = std::string(slug(rank.node->context)),
         .command =
             fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep -E '(RANK|PROCID|SIZE|NTASKS)='",
                         rank.process->pid)});
    auto& nodes = finding.subjects.nodes;
    if (std::ranges::find(nodes, rank.node->host) == nodes.end()) nodes.push_back(rank.node->host);
    finding.subjects.ranks.push_back(rank.rank);
  }
  finding.fix = {keep_one()};
  judge.report(std::move(finding));
}

std::optional<std::string> said(const JobSpec& job, const std::string& name) {
  for (const Settings* settings : {&job.rank_settings, &job.settings}) {
    const auto found = settings->find(name);
    if (found != settings->end() && is_the_jobs_own(found->second.origin.source)) {
      return found->second.value;
    }
  }
  return std::nullopt;
}

// One rank alone does not show whether the others make a whole with it.
void judge_command_line(const Case& c, Judge& judge) {
  const bool torchrun = std::ranges::any_of(c.cluster.job.launches, [](const Launch& launch) {
    return launch.kind != LauncherKind::python && launch.kind != LauncherKind::script;
  });
  const auto found = conflicts([&](const std::string& name) { return said(c.cluster.job, name); });
  if (torchrun || found.empty() || c.cluster.nodes.empty() ||
      said(c.cluster.job, "TORCHELASTIC_RUN_ID")) {
    return;
  }
  Finding finding = conflict_finding("the command line", found.front());
  finding.severity = Severity::notice;
  finding.certainty = Certainty::possible;
  for (const Conflict& conflict : found) {
    finding.evidence.push_back(
        {.node = c.cluster.nodes.front().host,
         .fact = conflict.names.torch,
         .observed = conflict.torch,
         .expected = fmt::format("{} as {}", conflict.other, conflict.names.other),
         .command = "env | grep -E '(RANK|PROCID|SIZE|NTASKS)='"});
  }
  finding.fix = {keep_one()};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<Rank> ranks;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "processes", node.processes) == nullptr) continue;
    add_ranks(c.cluster.nodes, node, ranks);
  }
  ranks = without_rests(ranks);
  for (const auto& [job, members] : jobs_of(ranks)) judge_processes(members, judge);
  judge_command_line(c, judge);
}

constexpr Page kPage{
    .meaning =
        "RANK or WORLD_SIZE, which torch reads, contradicts what Slurm or MPI tell the same "
        "process. A RANK exported once in a batch script reaches every task of srun; a "
        "library that asks Slurm first (Lightning, Accelerate) sees other ranks than torch.",
    .confirm = "`srun env | grep -E '(RANK|PROCID|WORLD_SIZE|NTASKS)='` in the job.",
    .fix =
        "Let one launcher number the ranks: derive RANK from SLURM_PROCID inside the task, or "
        "start torchrun once a node (`srun --ntasks-per-node=1`) and unset RANK.",
    .verify = "In every worker's environment RANK equals SLURM_PROCID, or torchrun set it."};
constexpr std::string_view kCauses[] = {"env-rank-duplicate", "env-rank-missing",
                                        "env-rank-out-of-range", "env-world-size-differs"};
constexpr Code kCodes[] = {{.id = "env-launcher-conflict",
                            .fault_class = FaultClass::slurm_env_conflict,
                            .worst = Severity::blocker,
                            .title = "Two launchers number the ranks",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_launcher_conflict{
    .title = "One launcher numbers the ranks", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
