#include "exam/traffic.h"

#include "probe/assemble.h"
#include "probe/plan_wire.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace distdoctor::exam {
namespace {

using namespace std::chrono_literals;
using probe::HostRequest;
using Answers = std::vector<Observed<Answer>>;

constexpr auto kForTheWay = 2s;  // of a request and its answer, on a busy machine
constexpr auto kToOpen = 6s;     // RDMA devices, by as many processes as a node has ends
// As many dials are under way at once on a node with few descriptors (probe/dial.cpp).
constexpr std::size_t kDialsAtOnce = 256;

struct RdmaAnswers {
  Answers opened = {};
  Answers sent = {};
};

class Traffic {
 public:
  Traffic(fleet::Fleet& fleet, const TrafficLimits& limits) : fleet_(fleet), limits_(limits) {}

  // Nodes are quick to do these, and the steps after it need their time.
  Answers ask_quick(std::vector<HostRequest> requests) {
    return ask(std::move(requests), std::min<Deadline::Clock::duration>(
                                        limits_.timeout, limits_.deadline.remaining() / 3));
  }

  probe::RoundAnswers act(const probe::Round& round) {
    probe::RoundAnswers asked;
    asked.listens = ask_quick(probe::listen_requests(round));
    auto dials = probe::dial_requests(round, asked);
    const auto for_dials = std::chrono::milliseconds(round.dial_timeout_ms) * waves(dials);
    asked.dials = ask(std::move(dials), for_dials + kForTheWay);
    asked.paths = ask(probe::path_requests(round, asked),
                      std::chrono::milliseconds(round.path_timeout_ms) + kForTheWay);
    asked.reports = ask_quick(probe::report_requests(round));
    return asked;
  }

  RdmaAnswers send_rdma(const probe::ProbePlan& plan) {
    RdmaAnswers answers{.opened = ask(probe::rdma_open_requests(plan), kToOpen)};
    const auto& request = plan.rdma.front().sender;
    answers.sent = ask(probe::rdma_send_requests(plan, answers.opened),
                       std::chrono::milliseconds(request.timeout_ms) + kForTheWay);
    return answers;
  }

  void measure(const probe::Round& round, ClusterFacts& cluster) {
    probe::RoundAnswers asked;
    asked.listens = ask_quick(probe::listen_requests(round));
    asked.paths = ask(probe::wire_requests(round, asked.listens),
                      std::chrono::milliseconds(round.path_timeout_ms) + kForTheWay);
    ask_quick(probe::report_requests(round));
    probe::take_wires(round, asked, cluster);
  }

  [[nodiscard]] bool over() const { return interrupted() || limits_.deadline.expired(); }
  [[nodiscard]] Unknown why_over() const {
    if (interrupted()) return {Why::not_collected, "interrupted before it was tried"};
    return {Why::timed_out, "the budget was used up before it was tried"};
  }

 private:
  [[nodiscard]] bool interrupted() const {
    return limits_.interrupted != nullptr && limits_.interrupted->load();
  }

  static int waves(const std::vector<HostRequest>& requests) {
    std::size_t most = 0;
    for (const HostRequest& request : requests) {
      const auto* dial = std::get_if<DialRequest>(&request.request);
      if (dial != nullptr) most = std::max(most, dial->targets.size());
    }
    return static_cast<int>(1 + most / kDialsAtOnce);
  }

  Answers ask(std::vector<HostRequest> requests, std::chrono::nanoseconds patience) {
    Answers answers(requests.size(), Unknown{Why::timed_out, "gave no answer before"});
    std::vector<fleet::Ask> asks;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (silent_.contains(requests[i].host)) continue;
      asks.push_back({std::move(requests[i].host), std::move(requests[i].request)});
      places.push_back(i);
    }
    if (asks.empty()) return answers;
    auto came = fleet_.ask(asks, limits_.deadline.capped(patience));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const bool late = !came[i].known() && came[i].why().kind == Why::timed_out;
      if (late) silent_.insert(asks[i].host);
      answers[places[i]] = std::move(came[i]);
    }
    return answers;
  }

  fleet::Fleet& fleet_;
  const TrafficLimits limits_;
  std::set<std::string> silent_;
};

// What broke is tried once more, where there is time; the first try says what could not be tried.
void send_rdma(const probe::ProbePlan& plan, Traffic& traffic, ClusterFacts& cluster) {
  const auto [opened, sent] = traffic.over() ? RdmaAnswers{} : traffic.send_rdma(plan);
  cluster.rdma_paths = probe::assemble_rdma(plan, opened, sent, cluster.untried);
  const auto again = probe::rdma_again(plan, cluster.rdma_paths);
  if (again.rdma.empty() || traffic.over()) return;
  const auto [reopened, resent] = traffic.send_rdma(again);
  std::vector<Untried> known;
  std::ranges::move(probe::assemble_rdma(again, reopened, resent, known),
                    std::back_inserter(cluster.rdma_paths));
}

}  // namespace

void send_traffic(const probe::ProbePlan& plan,
                  fleet::Fleet& fleet,
                  const TrafficLimits& limits,
                  ClusterFacts& cluster) {
  Traffic traffic(fleet, limits);
  cluster.untried = plan.left_out;
  if (!traffic.over()) {
    probe::take_duplicates(plan, traffic.ask_quick(probe::duplicate_requests(plan)), cluster.nodes);
  }
  std::vector<probe::RoundAnswers> answers;
  for (const probe::Round& round : plan.rounds) {
    if (traffic.over()) break;
    answers.push_back(traffic.act(round));
  }
  cluster.pairs = probe::assemble(plan, answers, traffic.why_over());
  probe::note_unbound(plan, answers, cluster.untried);
  if (!plan.rdma.empty()) send_rdma(plan, traffic, cluster);
}

void measure_wires(const std::vector<probe::Round>& rounds,
                   fleet::Fleet& fleet,
                   const TrafficLimits& limits,
                   ClusterFacts& cluster) {
  Traffic traffic(fleet, limits);
  for (const bool again : {false, true}) {
    for (const probe::Round& round : again ? probe::confirm_wires(cluster, rounds) : rounds) {
      if (traffic.over()) return;
      traffic.measure(round, cluster);
    }
  }
}

}  // namespace distdoctor::exam
