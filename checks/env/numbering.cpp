// The ranks of a job are numbered 0 to WORLD_SIZE - 1, each once, and all agree on WORLD_SIZE.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include "launches.h"
#include "ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;

Finding blocker(const char* code, const std::vector<Rank>& about, std::string summary) {
  Finding finding{.code = code,
                  .severity = Severity::blocker,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = nodes_of(about)},
                  .summary = std::move(summary)};
  for (const Rank& rank : about) finding.subjects.ranks.push_back(rank.rank);
  return finding;
}

void add_evidence(const Rank& rank,
                  const std::string& name,
                  std::string observed,
                  std::string expected,
                  Finding& finding) {
  finding.evidence.push_back({.node = rank.node->host,
                              .fact = fmt::format("pid {} {}", rank.process->pid, name),
                              .observed = std::move(observed),
                              .expected = std::move(expected),
                              .context = std::string(slug(rank.node->context)),
                              .command = environ_of(*rank.process)});
}

// --- WORLD_SIZE ---

// What as many ranks as are there would need, else what most say.
int right_world(const std::vector<Rank>& ranks) {
  const int count = static_cast<int>(ranks.size());
  const auto first = ranks.front().world;
  if (odd_ones_out(ranks, first, &Rank::world).empty()) return first.value_or(0);
  const bool said =
      std::ranges::any_of(ranks, [&](const Rank& rank) { return rank.world == count; });
  return said ? count : usual_value(ranks, &Rank::world)->value.value_or(count);
}

void judge_world(const std::vector<Rank>& ranks, Judge& judge) {
  std::vector<Rank> with;
  std::ranges::copy_if(ranks, std::back_inserter(with),
                       [](const Rank& rank) { return rank.world && !rank.elastic; });
  if (with.empty() || odd_ones_out(with, with.front().world, &Rank::world).empty()) return;
  const int wanted = right_world(with);
  const auto odd = odd_ones_out(with, std::optional(wanted), &Rank::world);
  Finding finding =
      blocker("env-world-size-differs", odd,
              fmt::format("ranks of one job disagree about WORLD_SIZE: {} of {} do not say {}",
                          odd.size(), with.size(), wanted));
  for (const Rank& rank : odd) {
    add_evidence(rank, "WORLD_SIZE", fmt::to_string(*rank.world), fmt::to_string(wanted), finding);
  }
  for (const std::string& node : finding.subjects.nodes) {
    finding.fix.push_back({.node = node,
                           .kind = Fix::Kind::env,
                           .env = {{"WORLD_SIZE", fmt::to_string(wanted)}},
                           .text = "the number of all ranks on all nodes; start the job again"});
  }
  judge.report(std::move(finding));
}

// --- RANK ---

// Ranks that meet at one port: two of them cannot have one number.
bool judge_duplicates(const std::vector<Rank>& ranks, Judge& judge) {
  std::map<std::pair<std::string, int>, std::vector<Rank>> by_number;
  for (const Rank& rank : ranks) by_number[{rank.meeting(), rank.rank}].push_back(rank);
  std::vector<Rank> twice;
  std::set<int> numbers;
  for (const auto& [number, same] : by_number) {
    if (same.size() < 2) continue;
    twice.insert(twice.end(), same.begin(), same.end());
    numbers.insert(number.second);
  }
  if (twice.empty()) return false;
  Finding finding = blocker("env-rank-duplicate", twice,
                            fmt::format("{} processes of one job share rank {}", twice.size(),
                                        listed({numbers.begin(), numbers.end()})));
  for (const Rank& rank : twice) {
    add_evidence(rank, "RANK", fmt::to_string(rank.rank), "a number of its own", finding);
  }
  finding.fix = {by_hand(
      "give each process its own RANK: node rank times processes per node, plus local rank; "
      "or let torchrun or srun number them")};
  judge.report(std::move(finding));
  return true;
}

bool judge_range(const std::vector<Rank>& ranks, Judge& judge) {
  std::vector<Rank> outside;
  std::ranges::copy_if(ranks, std::back_inserter(outside), [](const Rank& rank) {
    return rank.world && !rank.elastic && (rank.rank < 0 || rank.rank >= *rank.world);
  });
  if (outside.empty()) return false;
  Finding finding = blocker("env-rank-out-of-range", outside,
                            fmt::format("rank {} of {} does not exist: ranks count from 0",
                                        outside.front().rank, *outside.front().world));
  finding.symptom = Symptom::crash;
  for (const Rank& rank : outside) {
    add_evidence(rank, "RANK", fmt::to_string(rank.rank), fmt::format("0 to {}", *rank.world - 1),
                 finding);
  }
  finding.fix = {by_hand("number the ranks from 0 to WORLD_SIZE - 1 over all nodes")};
  judge.report(std::move(finding));
  return true;
}

bool all_seen(const Case& c) {
  return std::ranges::all_of(c.cluster.nodes, [](const NodeFacts& node) {
    return node.processes.known() &&
           std::ranges::all_of(*node.processes, [](const TrainingProcess& process) {
             return process.role != ProcessRole::worker ||
                    (process.our_network && process.env.known());
           });
  });
}

constexpr double kLongWaitS = 300;  // long after one would have started the last node by hand

// A node without any rank may be about to start its own: then it is early to speak of a fault.
bool may_still_come(const Case& c, const std::vector<Rank>& ranks) {
  const bool all_run = nodes_of(ranks).size() == c.cluster.nodes.size();
  const bool waited =
      std::ranges::all_of(ranks, [](const Rank& rank) { return rank.process->age_s > kLongWaitS; });
  return !all_run && !waited;
}

constexpr int kMostRanks = 1 << 20;  // a WORLD_SIZE beyond it is a slip of the pen

std::vector<int> numbers_of(const std::vector<Rank>& ranks) {
  std::set<int> numbers;
  for (const Rank& rank : ranks) numbers.insert(rank.rank);
  return {numbers.begin(), numbers.end()};
}

std::vector<int> missing_of(const std::vector<int>& present, int world) {
  std::vector<int> missing;
  for (int number = 0; number < std::min(world, kMostRanks); ++number) {
    if (!std::ranges::binary_search(present, number)) missing.push_back(number);
  }
  return missing;
}

Evidence who_runs(const NodeFacts& node, const std::vector<Rank>& ranks, int world) {
  std::vector<Rank> here;
  std::ranges::copy_if(ranks, std::back_inserter(here),
                       [&](const Rank& rank) { return rank.node == &node; });
  return {.node = node.host,
          .fact = "ranks that run",
          .observed = here.empty() ? "none" : listed(numbers_of(here)),
          .expected = fmt::format("all of 0 to {} over the nodes", world - 1),
          .context = std::string(slug(node.context)),
          .command = "grep -lz ^RANK= /proc/[0-9]*/environ"};
}

Gap elsewhere(const std::vector<int>& missing) {
  return {.node = "",
          .fact = "ranks",
          .why = {Why::not_collected,
                  fmt::format("rank {} may run on nodes that were not named: name all nodes of the "
                              "job with --peers",
                              listed(missing))}};
}

void judge_missing(const Case& c, const std::vector<Rank>& ranks, int world, Judge& judge) {
  if (!all_seen(c) || members_elsewhere(c.cluster, ranks)) return;
  const auto present = numbers_of(ranks);
  const auto missing = missing_of(present, world);
  if (missing.empty()) return;
  if (more_nodes_than_named(c.cluster, ranks)) return judge.miss(elsewhere(missing));
  Finding finding = blocker("env-rank-missing", ranks,
                            fmt::format("of {} ranks {} run on the named nodes; missing: {}", world,
                                        present.size(), listed(missing)));
  finding.certainty = Certainty::likely;
  if (may_still_come(c, ranks) || store_unseen(c.cluster, ranks)) {
    finding.severity = Severity::notice;
    finding.certainty = Certainty::possible;
  }
  const auto named = std::min(missing.size(), std::size_t{1024});
  finding.subjects = {.ranks = missing};
  finding.subjects.ranks.resize(named);
  for (const NodeFacts& node : c.cluster.nodes) {
    finding.evidence.push_back(who_runs(node, ranks, world));
  }
  finding.fix = {by_hand(
      fmt::format("start the missing ranks, or look why they ended; a job of {} processes needs "
                  "WORLD_SIZE={}",
                  present.size(), present.size()))};
  judge.report(std::move(finding));
}

// --- RANK = NODE_RANK x LOCAL_WORLD_SIZE + LOCAL_RANK ---

std::optional<int> by_formula(const Rank& rank) {
  if (rank.elastic) return std::nullopt;  // torchrun numbers by itself; NODE_RANK is a stranger's
  const auto node = number(*rank.process, "NODE_RANK");
  const auto local = number(*rank.process, "LOCAL_RANK");
  const auto size = number(*rank.process, "LOCAL_WORLD_SIZE");
  if (!node || !local || !size || *size > 4096 || *node > 1'000'000) return std::nullopt;
  return *node * *size + *local;
}

bool one_local_size(const std::vector<Rank>& ranks) {
  return std::ranges::all_of(ranks, [&](const Rank& rank) {
    return variable(*rank.process, "LOCAL_WORLD_SIZE") ==
           variable(*ranks.front().process, "LOCAL_WORLD_SIZE");
  });
}

// Another order of numbers is no fault by itself: Slurm's cyclic distribution makes one.
void judge_formula(const std::vector<Rank>& ranks, bool broken, Judge& judge) {
  if (!one_local_size(ranks)) return;
  std::vector<Rank> odd;
  std::ranges::copy_if(ranks, std::back_inserter(odd), [](const Rank& rank) {
    return by_formula(rank).value_or(rank.rank) != rank.rank;
  });
  if (odd.empty()) return;
  Finding finding = blocker(
      "env-rank-formula", odd,
      fmt::format("{} ranks are not NODE_RANK x LOCAL_WORLD_SIZE + LOCAL_RANK", odd.size()));
  if (!broken) {
    finding.severity = Severity::notice;
    finding.certainty = Certainty::possible;
  }
  for (const Rank& rank : odd) {
    add_evidence(rank, "RANK", fmt::to_string(rank.rank), fmt::to_string(*by_formula(rank)),
                 finding);
  }
  finding.fix = {by_hand("set RANK=$((NODE_RANK * LOCAL_WORLD_SIZE + LOCAL_RANK))")};
  judge.report(std::move(finding));
}

// --- together ---

// Complete jobs are healthy; what is left over of one user and run is judged.
void judge_job(const Case& c, const std::vector<Rank>& all, Judge& judge) {
  const auto incomplete = incomplete_jobs(all);
  if (incomplete.empty()) judge_formula(all, false, judge);
  for (const auto& ranks : incomplete) {
    judge_world(ranks, judge);
    const bool duplicates = judge_duplicates(ranks, judge);
    const bool outside = judge_range(ranks, judge);
    judge_missing(c, ranks, right_world(ranks), judge);
    judge_formula(ranks, duplicates || outside, judge);
  }
}

void see_ranks(const Case& c, std::vector<Rank>& ranks, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* processes = judge.see(node, "processes", node.processes);
    if (processes == nullptr) continue;
    for (const TrainingProcess& process : *processes) {
      const auto fact = fmt::format("processes.{}.env", process.pid);
      if (process.role == ProcessRole::worker) judge.see(node, fact, process.env);
    }
    add_ranks(c.cluster.nodes, node, ranks);
  }
  ranks = without_rests(ranks);
  if (!ranks.empty()) return;
  static const Observed<int> nobody =
      Unknown{.text = "no process of the job runs, so no rank has a number yet"};
  for (const NodeFacts& node : c.cluster.nodes) {
    if (node.processes.known()) judge.see(node, "ranks", nobody);
  }
}

void run(const Case& c, Judge& judge) {
  std::vector<Rank> ranks;
  see_ranks(c, ranks, judge);
  for (const auto& [job, members] : jobs_of(ranks)) judge_job(c, members, judge);
}

// --- the catalogue ---

constexpr std::string_view kMissing[] = {"env-rank-missing", "rendezvous-not-up"};
constexpr std::string_view kFormula[] = {"env-rank-duplicate", "env-rank-out-of-range",
                                         "env-rank-missing"};
constexpr std::string_view kWorld[] = {"env-rank-missing", "env-rank-out-of-range"};
constexpr std::string_view kNotUp[] = {"rendezvous-not-up"};

constexpr std::string_view kConfirm =
    "`tr '\\0' '\\n' < /proc/PID/environ | grep -E '(RANK|WORLD_SIZE)='` for each worker, on every "
    "node.";
constexpr std::string_view kVerify =
    "The same command shows each of 0 to WORLD_SIZE - 1 once, and one WORLD_SIZE.";

constexpr Page kFormulaPage{
    .meaning =
        "A process's RANK does not follow from its node and local rank. Alone that is only "
        "another order of numbers; with ranks missing or given twice it is the reason.",
    .confirm = kConfirm,
    .fix = "Set RANK to NODE_RANK x LOCAL_WORLD_SIZE + LOCAL_RANK, or start with torchrun.",
    .verify = kVerify};
constexpr Page kDuplicatePage{
    .meaning =
        "Two processes of one job have the same RANK. Both register as that rank, another "
        "one never comes, and all wait until their time-out.",
    .confirm = kConfirm,
    .fix =
        "Give each process its own RANK. A RANK that is exported once in a batch script reaches "
        "every task: let srun or torchrun set it.",
    .verify = kVerify};
constexpr Page kMissingPage{
    .meaning =
        "WORLD_SIZE announces more ranks than run on the named nodes. The others wait for "
        "them: init_process_group hangs, and says nothing until its time-out.",
    .confirm = kConfirm,
    .fix =
        "Start the missing ranks, or find in their own logs why they ended. Where WORLD_SIZE is "
        "too large, set it to the number of processes.",
    .verify = kVerify};
constexpr Page kRangePage{
    .meaning =
        "A RANK is not between 0 and WORLD_SIZE - 1, for instance since the ranks were "
        "counted from 1. Then rank 0, which holds the store, does not exist.",
    .confirm = kConfirm,
    .fix = "Number the ranks from 0.",
    .verify = kVerify};
constexpr Page kWorldPage{
    .meaning =
        "Processes of one job have different WORLD_SIZEs. Those with the larger one wait "
        "for ranks that nobody starts, or Gloo refuses addresses of another size.",
    .confirm = kConfirm,
    .fix = "Set WORLD_SIZE to the number of all processes, on every node.",
    .verify = kVerify};
constexpr Code kCodes[] = {
    {.id = "env-rank-formula",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "RANK does not follow from node and local rank",
     .causes = kFormula,
     .page = kFormulaPage},
    {.id = "env-rank-duplicate",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "Two processes have the same rank",
     .causes = kMissing,
     .page = kDuplicatePage},
    {.id = "env-rank-missing",
     .fault_class = FaultClass::rank_missing,
     .worst = Severity::blocker,
     .title = "Ranks are missing",
     .causes = kNotUp,
     .page = kMissingPage},
    {.id = "env-rank-out-of-range",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "A rank is not between 0 and WORLD_SIZE - 1",
     .causes = kMissing,
     .page = kRangePage},
    {.id = "env-world-size-differs",
     .fault_class = FaultClass::world_size_mismatch,
     .worst = Severity::blocker,
     .title = "Ranks disagree about WORLD_SIZE",
     .causes = kWorld,
     .page = kWorldPage},
};

}  // namespace

extern const Check env_numbering{
    .title = "Ranks are numbered once each", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
