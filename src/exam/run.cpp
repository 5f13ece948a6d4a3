#include <distdoctor/untested.h>

#include "base/text.h"
#include "exam/bisection.h"
#include "exam/exam.h"
#include "exam/nodes.h"
#include "exam/recorded_job.h"
#include "exam/since.h"
#include "exam/traffic.h"
#include "rules/launch/places.h"
#include "rules/predict.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <stop_token>
#include <system_error>
#include <thread>
#include <utility>

namespace distdoctor::exam {
namespace {

using namespace std::chrono_literals;

constexpr auto kForJudging = 500ms;  // of the budget: judging, rendering, closing the agents
// An ssh login with a slow directory service takes seconds; connecting alone is bounded by ssh.
constexpr auto kLongestLogin = 15s;
constexpr auto kShortestLogin = 1s;

bool interrupted(const Options& options) {
  return options.interrupted != nullptr && options.interrupted->load();
}

// Passes a Ctrl-C on to the fleet, whose waiting calls then return with what has come.
class Interrupter {
 public:
  Interrupter(const Options& options, fleet::Fleet& fleet) {
    if (options.interrupted == nullptr) return;
    try {
      thread_ = std::jthread([&fleet, flag = options.interrupted](const std::stop_token& stop) {
        watch(fleet, *flag, stop);
      });
    } catch (const std::system_error&) {
      // No thread is left: the fleet looks at the flag by itself, now and then.
    }
  }

 private:
  static void watch(fleet::Fleet& fleet,
                    const std::atomic<bool>& flag,
                    const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (flag.load()) {
        fleet.interrupt();
        return;
      }
      std::this_thread::sleep_for(20ms);
    }
  }

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
    run_collectives();
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
    fleet_ = fleet::Fleet::open(options_.peers, options_.launch, deadline_.capped(for_login()),
                                options_.interrupted);
    const auto states = fleet_->peers();
    cluster().nodes = nodes_of(states);
    cluster().version = DISTDOCTOR_VERSION;
    cluster().job = rules::resolve_job(options_.said, hosts(), {});
  }

  // One silent peer must not cost the others their facts.
  [[nodiscard]] std::chrono::nanoseconds for_login() const {
    const auto longest = std::max<std::chrono::nanoseconds>(options_.timeout, kLongestLogin);
    return std::clamp<std::chrono::nanoseconds>(options_.budget / 3, kShortestLogin, longest);
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
    return fleet_->ask(asks, deadline_.capped(time_for_asking()));
  }

  [[nodiscard]] std::chrono::nanoseconds time_for_asking() const {
    return std::min<std::chrono::nanoseconds>(options_.timeout, deadline_.remaining() / 2);
  }

  void collect() {
    tell("collect", "reading the nodes");
    const auto first = names_to_resolve(cluster().job);
    const auto places = rules::places_said(options_.said, cluster().job);
    std::vector<std::size_t> asked;
    const auto answers = ask_reached({.names = first,
                                      .also = peers_to_resolve(cluster().job),
                                      .settings = places,
                                      .checks_dir = options_.checks_dir},
                                     asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      take_collected(answers[i], cluster().nodes[asked[i]]);
    }
    if (options_.since) add_earlier(*options_.since, cluster());
    cluster().job = rules::resolve_job(options_.said, hosts(), cluster().nodes);
    auto fresh = names_to_resolve(cluster().job);
    std::erase_if(fresh, [&](const std::string& name) {
      return std::ranges::find(first, name) != first.end();
    });
    if (!fresh.empty()) resolve_again(fresh);
    look_again(places);
  }

  // A live process or a script named a MASTER_ADDR that nobody had said before.
  void resolve_again(const std::vector<std::string>& names) {
    std::vector<std::size_t> asked;
    const auto answers = ask_reached({.collectors = {"names"}, .names = names}, asked);
    for (std::size_t i = 0; i < asked.size(); ++i) {
      take_names(answers[i], cluster().nodes[asked[i]]);
    }
  }

  // A node where no rank lives went by its own environment, though another node's rank, or our own
  // environment, says where the job's libraries are.
  void look_again(const JobPlaces& sent) {
    std::vector<fleet::Ask> asks;
    std::vector<std::size_t> asked;
    for (std::size_t i = 0; i < cluster().nodes.size(); ++i) {
      const NodeFacts& node = cluster().nodes[i];
      auto places = rules::places_in_force(cluster(), node, sent);
      if (!node.reached || !node.settings.known() || places == sent) continue;
      asks.push_back({.host = node.host,
                      .request = CollectRequest{.collectors = {"software", "nccl_library"},
                                                .settings = std::move(places)}});
      asked.push_back(i);
    }
    if (asks.empty()) return;
    const auto answers = fleet_->ask(asks, deadline_.capped(time_for_asking()));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      take_software(answers[i], cluster().nodes[asked[i]]);
    }
  }

  void predict() {
    tell("predict", "what the libraries would choose");
    cluster().predicted = rules::predict(cluster());
    outcome_.plan = probe::make_plan(cluster(), {}, std::random_device{}());
  }

  void probe() {
    if (!options_.probe) return say_unprobed();
    tell("probe", "test traffic between the nodes");
    send_traffic(
        outcome_.plan, *fleet_,
        {.deadline = deadline_, .timeout = options_.timeout, .interrupted = options_.interrupted},
        cluster());
    if (hosts().size() == 1) name_no_duplicates({Why::not_collected, "one node alone"});
    cluster().predicted = rules::predict(cluster());
  }

  void run_collectives() {
    if (!options_.bisection) return;
    const Bisection& wanted = *options_.bisection;
    outcome_.tree = tree_of(cluster(), wanted);
    if (!options_.probe) return;
    if (!wanted.force) outcome_.busy = busy_with(cluster(), wanted);
    if (!outcome_.busy.empty()) {
      return leave_open("none was run, since others work there: " + join(outcome_.busy, "; "));
    }
    tell("bisect", "");
    leave_open(bisect(wanted, *fleet_, deadline_, options_.interrupted, outcome_.cluster));
  }

  void leave_open(const std::string& why) {
    if (why.empty()) return;
    cluster().untried.push_back({.what = std::string(kCollectives), .why = {Why::failed, why}});
  }

  void name_no_duplicates(const Unknown& why) {
    for (NodeFacts& node : cluster().nodes) {
      if (node.reached) node.duplicates = why;
    }
  }

  void say_unprobed() {
    const Unknown why{Why::not_collected, "none was sent: --no-probe"};
    if (hosts().size() > 1) cluster().untried = {{.what = std::string(kTestTraffic), .why = why}};
    name_no_duplicates({Why::not_collected, "no test traffic was sent"});
  }

  void judge() {
    tell("judge", "");
    const bool cut_short = interrupted(options_) || deadline_.expired();
    outcome_.diagnosis =
        diagnose::diagnose(cluster(), options_.expect, options_.selection, cut_short);
  }

  const Options& options_;
  const Progress& progress_;
  Deadline deadline_;
  std::unique_ptr<fleet::Fleet> fleet_;
  Outcome outcome_;
};

// Of the command line: what it names and nobody could read.
void tell_unread(const rules::Said& said, Diagnosis& diagnosis) {
  for (const std::string& note : said.command.notes) {
    diagnosis.gaps.push_back({.fact = "command line", .why = {Why::not_collected, note}});
  }
}

}  // namespace

Outcome run(const Options& options, const Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome = Exam(options, progress).run();
  tell_unread(options.said, outcome.diagnosis);
  outcome.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

Outcome run_recorded(ClusterFacts cluster, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Outcome outcome{.cluster = std::move(cluster)};
  if (options.since) add_earlier(*options.since, outcome.cluster);
  const JobSpec then =
      std::exchange(outcome.cluster.job, job_of_recording(outcome.cluster, options.said));
  forget_other_libraries(options.said, then, outcome.cluster);
  outcome.cluster.predicted = rules::predict(outcome.cluster);
  isolate_again(outcome.cluster);
  outcome.diagnosis = diagnose::diagnose(outcome.cluster, options.expect, options.selection);
  tell_unread(options.said, outcome.diagnosis);
  outcome.elapsed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

}  // namespace distdoctor::exam
