#include "exam/exam.h"
#include "exam/nodes.h"
#include "exam/traffic.h"
#include "rules/predict.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

namespace distdoctor::exam {
namespace {

using namespace std::chrono_literals;

constexpr auto kForJudging = 500ms;  // of the budget: judging, rendering, closing the agents
// An ssh login with a slow directory service takes seconds; connecting alone is bounded by ssh.
constexpr auto kLongestLogin = 15s;

bool interrupted(const Options& options) {
  return options.interrupted != nullptr && options.interrupted->load();
}

// Passes a Ctrl-C on to the fleet, whose waiting calls then return with what has come.
class Interrupter {
 public:
  Interrupter(const Options& options, fleet::Fleet& fleet) {
    if (options.interrupted == nullptr) return;
    thread_ = std::jthread([&fleet, flag = options.interrupted](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (flag->load()) {
          fleet.interrupt();
          return;
        }
        std::this_thread::sleep_for(20ms);
      }
    });
  }

 private:
  std::jthread thread_;
};

class Exam {
 public:
  Exam(const Options& options, const Progress& progress)
      : options_(options),
        progress_(progress),
        deadline_(Deadline::after(options.budget - kForJudging)) {}

  Outcome run() {
    reach();
    const Interrupter interrupter(options_, *fleet_);
    collect();
    predict();
    probe();
    judge();
    tell("close", "");
    fleet_->close();
    return std::move(outcome_);
  }

 private:
  void tell(std::string_view stage, std::string_view detail) const {
    if (progress_) progress_(stage, detail);
  }
  ClusterFacts& cluster() { return outcome_.cluster; }

  void reach() {
    tell("reach", "starting agents");
    const auto login = std::max<std::chrono::nanoseconds>(options_.timeout, kLongestLogin);
    fleet_ = fleet::Fleet::open(options_.peers, options_.launch, deadline_.capped(login),
                                options_.interrupted);
    const auto states = fleet_->peers();
    cluster().nodes = nodes_of(states);
    cluster().version = DISTDOCTOR_VERSION;
    cluster().job = rules::resolve_job(options_.said, hosts(), {});
  }

  [[nodiscard]] std::vector<std::string> hosts() const {
    std::vector<std::string> names;
    for (const NodeFacts& node : outcome_.cluster.nodes) names.push_back(node.host);
    return names;
  }

  std::vector<Observed<Answer>> ask_reached(const CollectRequest& request,
                                            std::vector<std::size_t>& asked) {
    std::vector<fleet::Ask> asks;
    for (std::size_t i = 0; i < cluster().nodes.size(); ++i) {
      if (!cluster().nodes[i].reached) continue;
      asks.push_back({.host = cluster().nodes[i].host, .request = request});
      asked.push_back(i);
    }
    return fleet_->ask(asks, deadline_.capped(options_.timeout));
  }

  void collect() {
    tell("collect", "reading the nodes");
    const auto first = names_to_resolve(cluster().job);
    std::vector<std::size_t> asked;
    const auto answers = ask_reached({.names = first}, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      take_collected(answers[i], cluster().nodes[asked[i]]);
    }
    cluster().job = rules::resolve_job(options_.said, hosts(), cluster().nodes);
    const auto all = names_to_resolve(cluster().job);
    if (all != first) resolve_again(all);
  }

  // A live process or a script named a MASTER_ADDR that nobody had said before.
  void resolve_again(const std::vector<std::string>& names) {
    std::vector<std::size_t> asked;
    const auto answers = ask_reached({.collectors = {"names"}, .names = names}, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      take_names(answers[i], cluster().nodes[asked[i]]);
    }
  }

  void predict() {
    tell("predict", "what the libraries would choose");
    cluster().predicted = rules::predict(cluster());
    outcome_.plan = probe::make_plan(cluster(), {}, std::random_device{}());
  }

  void probe() {
    if (!options_.probe || interrupted(options_)) return;
    tell("probe", "test traffic between the nodes");
    send_traffic(outcome_.plan, *fleet_, deadline_, cluster());
    cluster().predicted = rules::predict(cluster());
  }

  void judge() {
    tell("judge", "");
    outcome_.diagnosis = diagnose::diagnose(cluster(), options_.expect, options_.selection);
    outcome_.diagnosis.interrupted = interrupted(options_);
  }

  const Options& options_;
  const Progress& progress_;
  Deadline deadline_;
  std::unique_ptr<fleet::Fleet> fleet_;
  Outcome outcome_;
};

// What is said today joins what the recording said, and wins.
JobSpec job_of_recording(const ClusterFacts& cluster, const Options& options) {
  std::vector<std::string> hosts = cluster.job.peers;
  if (hosts.empty()) {
    for (const NodeFacts& node : cluster.nodes) hosts.push_back(node.host);
  }
  JobSpec job = rules::resolve_job(options.said, hosts, cluster.nodes);
  job.settings.insert(cluster.job.settings.begin(), cluster.job.settings.end());
  if (job.launches.empty()) job.launches = cluster.job.launches;
  if (job.nccl == Use::maybe) job.nccl = cluster.job.nccl;
  if (job.gloo == Use::maybe) job.gloo = cluster.job.gloo;
  if (!job.ranks_per_node) job.ranks_per_node = cluster.job.ranks_per_node;
  return job;
}

}  // namespace

Outcome run(const Options& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = Exam(options, progress).run();
  outcome.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Outcome run_recorded(ClusterFacts cluster, const Options& options) {
  Outcome outcome{.cluster = std::move(cluster)};
  outcome.cluster.job = job_of_recording(outcome.cluster, options);
  outcome.cluster.predicted = rules::predict(outcome.cluster);
  outcome.diagnosis = diagnose::diagnose(outcome.cluster, options.expect, options.selection);
  return outcome;
}

}  // namespace distdoctor::exam
