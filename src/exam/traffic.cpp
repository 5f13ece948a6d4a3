#include "exam/traffic.h"

#include "probe/assemble.h"

#include <utility>
#include <vector>

namespace distdoctor::exam {
namespace {

using probe::HostRequest;
using Answers = std::vector<Observed<Answer>>;

std::vector<fleet::Ask> asks_of(std::vector<HostRequest> requests) {
  std::vector<fleet::Ask> asks;
  for (HostRequest& request : requests) {
    asks.push_back({.host = std::move(request.host), .request = std::move(request.request)});
  }
  return asks;
}

Answers ask(fleet::Fleet& fleet, std::vector<HostRequest> requests, Deadline deadline) {
  if (requests.empty()) return {};
  return fleet.ask(asks_of(std::move(requests)), deadline);
}

probe::RoundAnswers act(const probe::Round& round, fleet::Fleet& fleet, Deadline deadline) {
  probe::RoundAnswers asked;
  asked.listens = ask(fleet, probe::listen_requests(round), deadline);
  asked.dials = ask(fleet, probe::dial_requests(round, asked), deadline);
  asked.paths = ask(fleet, probe::path_requests(round, asked), deadline);
  asked.reports = ask(fleet, probe::report_requests(round), deadline);
  return asked;
}

}  // namespace

void send_traffic(const probe::ProbePlan& plan,
                  fleet::Fleet& fleet,
                  Deadline deadline,
                  ClusterFacts& cluster) {
  const Answers duplicates = ask(fleet, probe::duplicate_requests(plan), deadline);
  probe::take_duplicates(plan, duplicates, cluster.nodes);
  std::vector<probe::RoundAnswers> answers;
  for (const probe::Round& round : plan.rounds) {
    if (deadline.expired()) break;
    answers.push_back(act(round, fleet, deadline));
  }
  cluster.pairs = probe::assemble(plan, answers);
}

}  // namespace distdoctor::exam
