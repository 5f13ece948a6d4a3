// From the plan to requests, and from the answers to facts; pure. For each round of the plan:
//   asked.listens = ask(listen_requests(round))
//   asked.dials   = ask(dial_requests(round, asked))
//   asked.paths   = ask(path_requests(round, asked))
//   asked.reports = ask(report_requests(round))
// then assemble() over all rounds. Answers stand in the order of their requests.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/plan.h>

#include "probe/plan.h"

#include <cstddef>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor::probe {

struct HostRequest {
  std::string host;
  Request request;
};

struct RoundAnswers {
  std::vector<Observed<Answer>> listens = {};
  std::vector<Observed<Answer>> dials = {};
  std::vector<Observed<Answer>> paths = {};
  std::vector<Observed<Answer>> reports = {};
};

// What answers[i] is, or null; and then why.
template <class T>
const T* answer_as(std::span<const Observed<Answer>> answers, std::size_t i) {
  if (i >= answers.size() || !answers[i].known()) return nullptr;
  return std::get_if<T>(&*answers[i]);
}
Unknown why_none(std::span<const Observed<Answer>> answers, std::size_t i, const std::string& who);

std::vector<HostRequest> listen_requests(const Round& round);
// One for each node that has something to dial: ports and addresses of sets that listen.
std::vector<HostRequest> dial_requests(const Round& round, const RoundAnswers& asked);
// Only between nodes of which a dial went well: nothing is measured where nothing passes.
std::vector<HostRequest> path_requests(const Round& round, const RoundAnswers& asked);
std::vector<HostRequest> report_requests(const Round& round);
std::vector<HostRequest> duplicate_requests(const ProbePlan& plan);

// One for each ordered pair of the plan, in its order. `answers` as plan.rounds; the pairs of a
// round that was not acted out are not complete, which is `unasked`.
std::vector<PairFacts> assemble(const ProbePlan& plan,
                                std::span<const RoundAnswers> answers,
                                const Unknown& unasked);

// The master's own listener could not be opened at MASTER_PORT, nor could rank 0's: dials to it
// went on without.
void note_unbound(const ProbePlan& plan,
                  std::span<const RoundAnswers> answers,
                  std::vector<Untried>& untried);

// Both ends of each connection, the sender's first. The answers name the ends.
std::vector<HostRequest> rdma_open_requests(const ProbePlan& plan);
// The same with the other end's name, of the connections whose ends are both there.
std::vector<HostRequest> rdma_send_requests(const ProbePlan& plan,
                                            std::span<const Observed<Answer>> opened);
// A path for each connection that was tried, or of which an end could not be opened; of the others
// the reason is added to `untried`.
std::vector<RdmaPath> assemble_rdma(const ProbePlan& plan,
                                    std::span<const Observed<Answer>> opened,
                                    std::span<const Observed<Answer>> sent,
                                    std::vector<Untried>& untried);

// The connections that broke, to be tried once more: one try may meet with a busy peer.
ProbePlan rdma_again(const ProbePlan& plan, const std::vector<RdmaPath>& paths);

// Of a round of plan_wires(): one for each path whose sink listens.
std::vector<HostRequest> wire_requests(const Round& round,
                                       std::span<const Observed<Answer>> listens);
// Adds what was measured to the known paths; of a path without any figure the reason why not.
void take_wires(const Round& round, const RoundAnswers& asked, ClusterFacts& cluster);

// Puts the answers to duplicate_requests() into the nodes' facts.
void take_duplicates(const ProbePlan& plan,
                     std::span<const Observed<Answer>> answers,
                     std::vector<NodeFacts>& nodes);

}  // namespace distdoctor::probe
