#include "exam/experiments.h"

#include <distdoctor/run_ending.h>
#include <distdoctor/views.h>

#include "logs/run_log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

namespace distdoctor::exam {
namespace {

using namespace std::chrono_literals;

constexpr auto kForTheWay = 2s;  // of a request and its answer, on a busy machine
constexpr int kMostRounds = 8;   // in which ranks tell each other where they are; Gloo has two
constexpr std::uint64_t kSeed = 0x5eedU;

// The job's own, as the facts name it. As root only what the system's loader would take anyway: any
// user may have a process that leads to a library of his own.
std::string library_of(const ClusterFacts& cluster, const std::string& host) {
  const NodeFacts* node = find_node(cluster, host);
  if (node == nullptr || !node->nccl_library.known()) return "";
  const bool root = !node->identity.known() || node->identity->uid == 0;
  const bool system = node->nccl_library->origin == "ld.so.cache";
  return root && !system ? "" : node->nccl_library->path;
}

// What a rank of ours must not inherit from the job: files and ports that are the job's, and
// switches that would take our deadlines away.
constexpr std::array kNotForUs = {
    "NCCL_COMM_ID",    "NCCL_COMM_BLOCKING", "NCCL_TOPO_DUMP_FILE",  "NCCL_GRAPH_DUMP_FILE",
    "NCCL_DEBUG_FILE", "NCCL_RAS_ADDR",      "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING"};

class Run {
 public:
  Run(Experiment& experiment,
      const ClusterFacts& cluster,
      fleet::Fleet& fleet,
      const RunLimits& limits)
      : experiment_(experiment), cluster_(cluster), fleet_(fleet), limits_(limits) {}

  void act() {
    auto requests = first_requests();
    for (int round = 0; round < kMostRounds && !requests.empty(); ++round) {
      ask(std::exchange(requests, {}));
      if (!waiting_.empty()) requests = next_requests();
    }
    if (!requests.empty()) end_all(std::move(requests));
    judge_outcome();
  }

 private:
  using Requests = std::map<std::string, RunRequest>;

  // Initialising takes longer with more ranks.
  [[nodiscard]] std::chrono::milliseconds stage() const {
    return limits_.stage + limits_.stage * experiment_.ranks.size() / 64;
  }

  [[nodiscard]] RunRequest empty_request() const {
    return {.id = std::to_string(experiment_.number) + "/" + experiment_.what,
            .backend = experiment_.backend,
            .stage_ms = static_cast<int>(stage().count())};
  }

  Requests first_requests() {
    Requests requests;
    for (std::size_t i = 0; i < experiment_.ranks.size(); ++i) {
      RankRun& rank = experiment_.ranks[i];
      rank.rank = static_cast<int>(i);
      const std::string& node = rank.place.node;
      auto& request = requests.try_emplace(node, empty_request()).first->second;
      request.jobs.push_back(job_of(rank));
    }
    return requests;
  }

  [[nodiscard]] WorkerJob job_of(const RankRun& rank) const {
    const auto patience = std::chrono::duration<double>(stage()).count();
    const auto& own = limits_.nccl_library;
    return {.rank = rank.rank,
            .size = static_cast<int>(experiment_.ranks.size()),
            .device = std::max(rank.place.device, 0),
            .switches = switches_on(rank.place.node),
            .library = own.empty() ? library_of(cluster_, rank.place.node) : own,
            .sizes = experiment_.sizes,
            .patience_s = patience * 0.8,  // so that a rank tells of it before it is ended
            .seed = kSeed};
  }

  // The job's settings on that node, and on top of them the experiment's.
  [[nodiscard]] std::map<std::string, std::string> switches_on(const std::string& node) const {
    std::map<std::string, std::string> switches = job_switches_on(node);
    for (const char* name : kNotForUs) switches[name] = "";
    switches["NCCL_RAS_ENABLE"] = "0";
    // NVML's numbers, by which places are named.
    switches["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
    for (const auto& [name, value] : experiment_.switches) switches[name] = value;
    return switches;
  }
  [[nodiscard]] std::map<std::string, std::string> job_switches_on(const std::string& node) const {
    std::map<std::string, std::string> switches;
    const Prediction* prediction = find_prediction(cluster_, node);
    if (prediction == nullptr) return switches;
    for (const auto& [name, setting] : prediction->settings) {
      if (is_the_librarys(name)) switches[name] = setting.value;
    }
    return switches;
  }
  static bool is_the_librarys(std::string_view name) {
    return name.starts_with("NCCL_") || name.starts_with("GLOO_") || name.starts_with("CUDA_") ||
           name.starts_with("UCX_") || name.starts_with("FI_") || name.starts_with("RCCL_");
  }

  void ask(const Requests& requests) {
    std::vector<fleet::Ask> asks;
    for (const auto& [node, request] : requests) asks.push_back({.host = node, .request = request});
    // Each stage of each size has its own patience at the agent; this bounds them all.
    const auto most = stage() * (6 + experiment_.sizes.size()) + kForTheWay;
    const auto answers = fleet_.ask(asks, limits_.deadline.capped(most));
    blobs_.clear();
    waiting_.clear();
    for (std::size_t i = 0; i < asks.size(); ++i) take(asks[i].host, answers[i]);
  }

  void take(const std::string& node, const Observed<Answer>& answer) {
    const auto* run = answer.known() ? std::get_if<RunAnswer>(&*answer) : nullptr;
    if (run == nullptr) {
      lost(node, answer.known() ? "its agent answered something else" : answer.why().text);
      return;
    }
    for (const RankRun& rank : run->ranks) keep(rank);
    for (const WorkerLog& log : run->logs) read_log(log);
    if (run->blobs.empty()) return;
    waiting_.insert(node);
    blobs_.insert(blobs_.end(), run->blobs.begin(), run->blobs.end());
  }

  // Ranks that still wait go: they have memory and a device.
  void end_all(Requests requests) {
    for (auto& [node, request] : requests) {
      request.over = true;
      request.blobs.clear();
    }
    ask(requests);
  }

  // Null: an agent told of a rank that there is not.
  RankRun* rank_numbered(int number) {
    const auto found = std::ranges::find(experiment_.ranks, number, &RankRun::rank);
    return found == experiment_.ranks.end() ? nullptr : &*found;
  }

  void keep(const RankRun& told) {
    RankRun* rank = rank_numbered(told.rank);
    if (rank == nullptr) return;
    RunPlace place = std::move(rank->place);
    *rank = told;
    rank->place = std::move(place);
    ended_.insert(told.rank);
  }

  void lost(const std::string& node, const std::string& why) {
    for (RankRun& rank : experiment_.ranks) {
      if (rank.place.node != node || ended_.contains(rank.rank)) continue;
      rank.outcome = RunOutcome::not_run;
      rank.error = limits_.deadline.expired() ? std::string(kCutByBudget) : why;
      ended_.insert(rank.rank);
      channel_lost_ = true;
    }
  }

  void read_log(const WorkerLog& told) {
    RankRun* rank = rank_numbered(told.rank);
    if (rank == nullptr) return;
    const auto log = logs::read_run_log(told.lines);
    rank->transports = log.transports;
    if (!log.interfaces.empty()) rank->interfaces = log.interfaces;
    if (experiment_.backend != RunBackend::nccl || rank->reached < RunStage::comm_init) return;
    for (const auto& [name, value] : experiment_.switches) {
      if (!heeded(log, name, value)) unheeded_.insert(name);
    }
  }

  // NCCL prints most variables that it reads, but not NCCL_NET: there the network in use tells.
  static bool heeded(const logs::RunLog& log, const std::string& name, const std::string& value) {
    if (name == "NCCL_NET") return value.empty() || log.network == value;
    const auto found = log.variables.find(name);
    if (value.empty()) return found == log.variables.end();
    return found != log.variables.end() && found->second == value;
  }

  // All that was published goes to every node where a rank waits; when a rank has ended already,
  // the others would wait for ever.
  Requests next_requests() {
    Requests requests;
    for (const std::string& node : waiting_) {
      RunRequest request = empty_request();
      request.over = !ended_.empty();
      if (!request.over) request.blobs = blobs_;
      requests.emplace(node, std::move(request));
    }
    return requests;
  }

  void judge_outcome() {
    lost_all();
    const RankRun* const worst = &*std::ranges::max_element(
        experiment_.ranks, {}, [](const RankRun& rank) { return badness(rank); });
    // What the others suffered when an agent was lost says nothing of the cluster.
    experiment_.outcome = channel_lost_ ? RunOutcome::not_run : worst->outcome;
    experiment_.unheeded.assign(unheeded_.begin(), unheeded_.end());
  }
  void lost_all() {
    for (RankRun& rank : experiment_.ranks) {
      if (ended_.contains(rank.rank)) continue;
      rank.outcome = RunOutcome::not_run;
      rank.error = kStillLooking;
    }
  }

  Experiment& experiment_;
  const ClusterFacts& cluster_;
  fleet::Fleet& fleet_;
  const RunLimits& limits_;
  std::vector<WorkerBlob> blobs_;
  std::set<std::string> waiting_;  // nodes
  std::set<int> ended_;            // ranks
  std::set<std::string> unheeded_;
  bool channel_lost_ = false;
};

}  // namespace

void run_experiment(Experiment& experiment,
                    const ClusterFacts& cluster,
                    fleet::Fleet& fleet,
                    const RunLimits& limits) {
  const auto start = std::chrono::steady_clock::now();
  Run(experiment, cluster, fleet, limits).act();
  experiment.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace distdoctor::exam
