// The ranks of a node have a GPU each.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include "devices.h"
#include "stock.h"
#include "visible_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// --- what a rank sees ---

struct Worker {
  const TrainingProcess* process;
  int rank;
  std::string variable = {};  // the one that lists its devices; empty: all of the node
  std::string list = {};
};

Worker worker_of(const TrainingProcess& process, int rank) {
  Worker worker{.process = &process, .rank = rank};
  for (const char* name : kLists) {
    const auto list = variable(process, name);
    if (!list) continue;
    worker.variable = name;
    worker.list = *list;
    break;
  }
  return worker;
}

// Ranks of one job that one process started: they surely count the same devices.
using Siblings = std::map<std::string, std::vector<Worker>>;

Siblings siblings_on(const NodeFacts& node) {
  Siblings families;
  const auto& all = *node.processes;
  for (const TrainingProcess& process : all) {
    const auto rank = number(process, "RANK");
    const bool counts = process.role == ProcessRole::worker && process.our_network && rank &&
                        !process.orphan && process.state != "Z" && process.state != "X";
    if (!counts || inherited(all, process)) continue;
    const auto family = fmt::format("{} {} {}", process.parent, process.uid,
                                    variable(process, "MASTER_PORT").value_or(""));
    families[family].push_back(worker_of(process, *rank));
  }
  return families;
}

bool says(const TrainingProcess& process, const char* name) {
  return variable(process, name).has_value();
}

// A task of Slurm's may have a device cgroup of its own, in which every device is number 0. What
// torchrun starts below one task is in that task's.
bool counts_for_itself(const Worker& worker) {
  const bool slurm = says(*worker.process, "SLURM_PROCID");
  return slurm && !says(*worker.process, "TORCHELASTIC_RUN_ID") &&
         worker.list.find_first_not_of("0123456789") == std::string::npos;
}

// --- how many there are ---

std::size_t usable_gpus(const NodeFacts& node) {
  return static_cast<std::size_t>(std::ranges::count_if(
      node.gpu->gpus, [](const Gpu& gpu) { return gpu.node_usable || !gpu.node_there; }));
}

bool one_list(const std::vector<Worker>& workers) {
  return std::ranges::all_of(workers, [&](const Worker& worker) {
    return worker.variable == workers.front().variable && worker.list == workers.front().list;
  });
}

// None where that cannot be told.
std::optional<std::size_t> devices_for(const NodeFacts& node, const std::vector<Worker>& workers) {
  const Worker& first = workers.front();
  if (!one_list(workers)) return std::nullopt;
  if (counts_for_itself(first) && !first.variable.empty()) {
    const auto granted = number(*first.process, "SLURM_GPUS_ON_NODE");
    return granted && *granted > 0 ? std::optional(static_cast<std::size_t>(*granted))
                                   : std::nullopt;
  }
  const std::size_t count = first.variable.empty() ? usable_gpus(node) : length_of(first.list);
  return count > 0 ? std::optional(count) : std::nullopt;
}

// --- findings ---

Severity severity_for(const Case& c) {
  return surely_uses_gpus(c.cluster.job) ? Severity::blocker : Severity::notice;
}

void add_worker(const NodeFacts& node,
                const Worker& worker,
                std::string expected,
                Finding& finding) {
  const std::string name = worker.variable.empty() ? kLists.front() : worker.variable;
  finding.subjects.ranks.push_back(worker.rank);
  finding.evidence.push_back(
      {.node = node.host,
       .fact = fmt::format("pid {} {}", worker.process->pid, name),
       .observed = worker.variable.empty() ? "not set" : worker.list,
       .expected = std::move(expected),
       .context = std::string(slug(node.context)),
       .command = fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep -E '(RANK|DEVICES|GPUS)'",
                              worker.process->pid)});
}

void report_shared(const Case& c,
                   const NodeFacts& node,
                   const std::vector<Worker>& sharing,
                   Judge& judge) {
  Finding finding{
      .code = "gpu-shared-by-ranks",
      .severity = severity_for(c),
      .certainty = Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("{} ranks on {} see one and the same GPU ({}={})", sharing.size(),
                             node.host, sharing.front().variable, sharing.front().list)};
  for (const Worker& worker : sharing) add_worker(node, worker, "a GPU of its own", finding);
  finding.fix = {by_hand(
      node, fmt::format("do not set {} for all ranks: leave it out and let each rank take the "
                        "device LOCAL_RANK (torch.cuda.set_device), or start fewer ranks",
                        sharing.front().variable))};
  judge.report(std::move(finding));
}

void report_too_few(const Case& c,
                    const NodeFacts& node,
                    const std::vector<Worker>& workers,
                    std::size_t devices,
                    Judge& judge) {
  const bool slurm = says(*workers.front().process, "SLURM_JOB_ID");
  Finding finding{.code = slurm ? "gpu-slurm-too-few" : "gpu-too-few",
                  .severity = severity_for(c),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} ranks of one job on {} have {} to share",
                                         workers.size(), node.host, plural(devices, "GPU"))};
  const auto wanted = fmt::format("{}, one for each rank", plural(workers.size(), "GPU"));
  add_worker(node, workers.front(), wanted, finding);
  for (const Worker& worker : workers) {
    if (&worker != &workers.front()) finding.subjects.ranks.push_back(worker.rank);
  }
  finding.fix = {by_hand(
      node, slurm ? fmt::format("ask Slurm for as many GPUs as ranks (--gpus-per-node={} or "
                                "--gres=gpu:{}), and let no --gpu-bind hide them from torchrun",
                                workers.size(), workers.size())
                  : fmt::format("start {} on {}, or give it more GPUs", plural(devices, "rank"),
                                node.host))};
  judge.report(std::move(finding));
}

// Each GPU that several ranks with a list of one name.
void judge_lists(const Case& c,
                 const NodeFacts& node,
                 const std::vector<Worker>& workers,
                 Judge& judge) {
  std::map<std::string, std::vector<Worker>> by_device;
  for (const Worker& worker : workers) {
    const bool one = !worker.variable.empty() && length_of(worker.list) == 1;
    if (one && !counts_for_itself(worker)) by_device[worker.list].push_back(worker);
  }
  for (const auto& [device, sharing] : by_device) {
    if (sharing.size() > 1) report_shared(c, node, sharing, judge);
  }
}

void judge_family(const Case& c,
                  const NodeFacts& node,
                  const std::vector<Worker>& workers,
                  Judge& judge) {
  // From NCCL 2.30 on several ranks may share a GPU when they say so.
  if (number(*workers.front().process, "NCCL_MULTI_RANK_GPU_ENABLE").value_or(0) != 0) return;
  judge_lists(c, node, workers, judge);
  const auto devices = devices_for(node, workers);
  const bool listed = devices == std::size_t{1} && !counts_for_itself(workers.front()) &&
                      !workers.front().variable.empty();
  if (devices && !listed && workers.size() > *devices) {
    report_too_few(c, node, workers, *devices, judge);
  }
}

// --- a job that is only going to start ---

// Nodes on which the ranks cannot have a GPU each, for one and the same reason.
struct Plan {
  Severity severity;
  Certainty certainty;
  std::string why;  // "which has 4 GPUs"
  std::string fix;
  std::vector<Evidence> evidence;
  std::vector<const NodeFacts*> nodes;
};

// An instance of MIG may count for one.
Plan plan_of(const Case& c, const NodeFacts& node, std::string why, std::string fix) {
  const bool split = node.nvml.known() && std::ranges::any_of(node.nvml->gpus, [](const auto& gpu) {
                       return gpu.mig == true;
                     });
  const bool sure = surely_uses_gpus(c.cluster.job) && !split;
  return {.severity = sure ? Severity::blocker : Severity::notice,
          .certainty = sure ? Certainty::likely : Certainty::possible,
          .why = std::move(why),
          .fix = std::move(fix),
          .evidence = {},
          .nodes = {&node}};
}

Plan plan_of_count(const Case& c, const NodeFacts& node, int ranks) {
  const std::size_t gpus = usable_gpus(node);
  Plan plan = plan_of(c, node, fmt::format("which has {}", plural(gpus, "GPU")),
                      fmt::format("start {} there (--nproc-per-node)", plural(gpus, "rank")));
  // What this login may not open the job may.
  plan.severity = std::cmp_greater(ranks, node.gpu->gpus.size())
                      ? capped_by_container(plan.severity, node)
                      : capped_by_context(plan.severity, node.context);
  plan.evidence = {stock_row(node, fmt::format("{}, one for each rank", ranks))};
  plan.evidence.back().observed = fmt::to_string(gpus);
  return plan;
}

std::optional<Plan> plan_of_list(const Case& c,
                                 const NodeFacts& node,
                                 const Listed& listed,
                                 int ranks) {
  const std::string& list = listed.setting->value;
  const std::size_t shown = shown_by(list, node.gpu->gpus.size());
  if (shown == 0 || std::cmp_less_equal(ranks, shown)) return std::nullopt;
  const std::string where = listed.setting->origin.where;
  Plan plan = plan_of(c, node,
                      fmt::format("but {}={} shows them {}: `invalid device ordinal`, or two ranks "
                                  "on one GPU",
                                  listed.name, list, plural(shown, "GPU")),
                      fmt::format("take {} out of the launch, or start {} there (--nproc-per-node)",
                                  listed.name, plural(shown, "rank")));
  if (!listed.of_the_job) plan.severity = capped_by_context(plan.severity, node.context);
  plan.evidence = {{.node = node.host,
                    .fact = fmt::format("{}{}{}", listed.name, where.empty() ? "" : " of ", where),
                    .observed = list,
                    .expected = fmt::format("{} GPUs, one for each rank", ranks),
                    .context = std::string(slug(node.context)),
                    .command = fmt::format("echo ${}; nvidia-smi -L", listed.name)}};
  return plan;
}

std::optional<Plan> plan_on(const Case& c, const NodeFacts& node) {
  const auto ranks = c.cluster.job.ranks_per_node;
  const std::size_t gpus = usable_gpus(node);
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const Setting* shared =
      prediction == nullptr ? nullptr : find_setting(*prediction, "NCCL_MULTI_RANK_GPU_ENABLE");
  if (!ranks || gpus == 0) return std::nullopt;
  if (shared != nullptr && number(shared->value).value_or(0) != 0) return std::nullopt;
  if (std::cmp_greater(*ranks, gpus)) return plan_of_count(c, node, *ranks);
  const auto listed = listed_for(c.cluster.job, node);
  if (!listed || !is_plain(listed->setting->value)) return std::nullopt;
  return plan_of_list(c, node, *listed, *ranks);
}

void add_plan(Plan plan, std::vector<Plan>& all) {
  const auto same = std::ranges::find_if(all, [&](const Plan& other) {
    return other.severity == plan.severity && other.certainty == plan.certainty &&
           other.why == plan.why;
  });
  if (same == all.end()) return all.push_back(std::move(plan));
  same->nodes.push_back(plan.nodes.front());
  same->evidence.push_back(std::move(plan.evidence.front()));
}

void report_plan(int ranks, Plan plan, Judge& judge) {
  const bool one = plan.nodes.size() == 1;
  const auto where =
      one ? plan.nodes.front()->host : fmt::format("each of {} nodes", plan.nodes.size());
  Finding finding{.code = "gpu-too-few",
                  .severity = plan.severity,
                  .certainty = plan.certainty,
                  .symptom = Symptom::crash,
                  .summary = fmt::format("{} ranks are to run on {}, {}", ranks, where, plan.why),
                  .evidence = std::move(plan.evidence)};
  for (const NodeFacts* node : plan.nodes) finding.subjects.nodes.push_back(node->host);
  finding.fix = {{.node = one ? plan.nodes.front()->host : "*",
                  .kind = Fix::Kind::manual,
                  .text = std::move(plan.fix)}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return judge.skip("the job does not use NCCL");
  const auto ranks = c.cluster.job.ranks_per_node;
  bool looked = ranks.has_value();
  std::vector<Plan> plans;
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* gpus = judge.see(node, "gpu", node.gpu);
    const auto* processes = judge.see(node, "processes", node.processes);
    if (gpus == nullptr || processes == nullptr || gpus->gpus.empty()) continue;
    const Siblings families = siblings_on(node);
    looked = looked || !families.empty();
    for (const auto& [parent, workers] : families) judge_family(c, node, workers, judge);
    if (!families.empty()) continue;
    if (auto plan = plan_on(c, node)) add_plan(*std::move(plan), plans);
  }
  for (Plan& plan : plans) report_plan(*ranks, std::move(plan), judge);
  if (!looked) judge.skip("no rank runs, and nobody says how many are to");
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`tr '\\0' '\\n' < /proc/PID/environ | grep -E '(RANK|DEVICES|GPUS)'` for each worker of the "
    "node; `nvidia-smi` shows which GPU each process uses.";
constexpr std::string_view kVerify = "`nvidia-smi` shows one worker on each GPU.";
constexpr Page kSharedPage{
    .meaning =
        "Several ranks see a single GPU, the same one: a CUDA_VISIBLE_DEVICES that was meant for "
        "one rank reaches all. NCCL refuses it, `Duplicate GPU detected`, or hangs.",
    .confirm = kConfirm,
    .fix =
        "Leave CUDA_VISIBLE_DEVICES to the launcher, and call `torch.cuda.set_device(int(os.environ"
        "[\"LOCAL_RANK\"]))` in each rank before anything else touches the GPU.",
    .verify = kVerify};
constexpr Page kFewPage{
    .meaning =
        "More ranks run on the node than it has GPUs to show them: `invalid device ordinal` where "
        "each takes the device LOCAL_RANK, else `Duplicate GPU detected`.",
    .confirm = kConfirm,
    .fix = "As many ranks as GPUs: `torchrun --nproc-per-node=gpu`.",
    .verify = kVerify};
constexpr Page kSlurmPage{
    .meaning =
        "Slurm granted the job's step fewer GPUs on this node than it has ranks there, or binds "
        "one GPU to the task below which torchrun starts all ranks.",
    .confirm =
        "`srun --overlap --jobid JOB nvidia-smi -L` shows what a task sees; "
        "`scontrol show job JOB -d | grep -i gres` what was granted.",
    .fix =
        "With torchrun one task a node that has all GPUs: `--ntasks-per-node=1 --gpus-per-node=N`, "
        "no --gpu-bind and no --gpus-per-task=1.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "gpu-shared-by-ranks",
                            .fault_class = FaultClass::dup_gpu,
                            .worst = Severity::blocker,
                            .title = "Several ranks share one GPU",
                            .causes = {},
                            .page = kSharedPage},
                           {.id = "gpu-too-few",
                            .fault_class = FaultClass::dup_gpu,
                            .worst = Severity::blocker,
                            .title = "More ranks than GPUs",
                            .causes = {},
                            .page = kFewPage},
                           {.id = "gpu-slurm-too-few",
                            .fault_class = FaultClass::slurm_gpu_binding,
                            .worst = Severity::blocker,
                            .title = "Slurm grants fewer GPUs than ranks",
                            .causes = {},
                            .page = kSlurmPage}};

}  // namespace

extern const Check gpu_visible_devices{
    .title = "Ranks have a GPU each", .codes = kCodes, .run = run, .needs = Needs::gpus};

}  // namespace distdoctor::checks
