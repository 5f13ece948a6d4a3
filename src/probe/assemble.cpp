#include "probe/assemble.h"

#include <distdoctor/untested.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <variant>

namespace distdoctor::probe {
namespace {

// The position of a listening set in its round.
using Sets = std::map<std::string, std::size_t>;
Sets sets_of(const Round& round) {
  Sets sets;
  for (std::size_t i = 0; i < round.listens.size(); ++i) sets[round.listens[i].request.id] = i;
  return sets;
}

// A planned dial with the ports that its set listens on; no targets and `why` where none does.
struct Ready {
  const PlannedDial* plan;
  std::vector<DialTarget> targets = {};
  Unknown why = {};
};

Ready ready_fixed(const PlannedDial& plan, const ListenAnswer* answer) {
  Ready ready{&plan, {plan.target}, {}};
  // Without a listener of ours the port is the job's: nothing may be sent to it.
  if (answer == nullptr || !answer->error.empty()) ready.targets.front().nonce.reset();
  return ready;
}

Ready ready_dial(const Sets& sets, const RoundAnswers& asked, const PlannedDial& plan) {
  const auto set = sets.find(plan.listen);
  const auto* answer =
      set == sets.end() ? nullptr : answer_as<ListenAnswer>(asked.listens, set->second);
  if (plan.target.port != 0) return ready_fixed(plan, answer);
  Ready ready{&plan};
  if (answer == nullptr || !answer->error.empty() || answer->ports.empty()) {
    ready.why = answer == nullptr
                    ? why_none(asked.listens,
                               set == sets.end() ? asked.listens.size() : set->second, plan.to)
                    : Unknown{.kind = Why::failed, .text = plan.to + ": " + answer->error};
    return ready;
  }
  for (const std::uint16_t port : answer->ports) {
    ready.targets.push_back(plan.target);
    ready.targets.back().port = port;
  }
  if (answer->outside_port != 0) {
    ready.targets.push_back(plan.target);
    ready.targets.back().port = answer->outside_port;
    ready.targets.back().only_after_failure = true;
  }
  return ready;
}

// The dials of a round by the node that makes them, nodes in the order of their first dial.
struct NodeDials {
  std::string host;
  std::vector<Ready> dials = {};
};
std::vector<NodeDials> dials_by_node(const Round& round, const RoundAnswers& asked) {
  const Sets sets = sets_of(round);
  std::vector<NodeDials> nodes;
  std::map<std::string, std::size_t> known;
  for (const PlannedDial& plan : round.dials) {
    const auto [at, added] = known.emplace(plan.from, nodes.size());
    if (added) nodes.push_back({plan.from});
    nodes[at->second].dials.push_back(ready_dial(sets, asked, plan));
  }
  return nodes;
}

struct NodePaths {
  std::string host;
  std::vector<const PlannedPath*> plans = {};
  std::vector<PathTarget> targets = {};
};

// The dials that came back, each beside what was asked for.
struct Made {
  const PlannedDial* plan;
  Dial dial;
};
struct Missed {
  const PlannedDial* plan;
  Unknown why;
};
struct RoundDials {
  std::vector<Made> made = {};
  std::vector<Missed> missed = {};
};

void take_dials(const NodeDials& node,
                const DialAnswer* answer,
                const Unknown& why,
                RoundDials& all) {
  std::size_t next = 0;
  for (const Ready& ready : node.dials) {
    if (ready.targets.empty()) {
      all.missed.push_back({ready.plan, ready.why});
    } else if (answer == nullptr || next + ready.targets.size() > answer->dials.size()) {
      all.missed.push_back({ready.plan, why});
    } else {
      for (const DialTarget& target : ready.targets) {
        const std::size_t i = next++;
        if (std::ranges::find(answer->untried, i) != answer->untried.end()) continue;
        all.made.push_back({ready.plan, answer->dials[i]});
        all.made.back().dial.ours = target.nonce.has_value();
      }
    }
  }
}

RoundDials dials_of(const Round& round, const RoundAnswers& asked) {
  RoundDials all;
  std::size_t request = 0;
  for (const NodeDials& node : dials_by_node(round, asked)) {
    const bool asks =
        std::ranges::any_of(node.dials, [](const Ready& ready) { return !ready.targets.empty(); });
    const auto* answer = asks ? answer_as<DialAnswer>(asked.dials, request) : nullptr;
    const Unknown why = asks ? why_none(asked.dials, request, node.host) : Unknown{};
    take_dials(node, answer, why, all);
    if (asks) ++request;
  }
  return all;
}

std::vector<NodePaths> paths_by_node(const Round& round, const RoundAnswers& asked) {
  std::set<std::tuple<std::string, std::string, Address>> open;
  for (const Made& made : dials_of(round, asked).made) {
    if (made.dial.outcome == Outcome::ok)
      open.emplace(made.plan->from, made.plan->to, made.dial.address);
  }
  const auto sets = sets_of(round);
  std::vector<NodePaths> nodes;
  std::map<std::string, std::size_t> known;
  for (const PlannedPath& plan : round.paths) {
    const auto set = sets.find(plan.listen);
    const auto* answer =
        set == sets.end() ? nullptr : answer_as<ListenAnswer>(asked.listens, set->second);
    if (answer == nullptr || !open.contains({plan.from, plan.to, plan.target.destination}))
      continue;
    const auto [at, added] = known.emplace(plan.from, nodes.size());
    if (added) nodes.push_back({plan.from});
    NodePaths& node = nodes[at->second];
    node.plans.push_back(&plan);
    node.targets.push_back(plan.target);
    node.targets.back().udp_port = answer->udp_port;
    node.targets.back().bulk_port = answer->bulk_port;
  }
  return nodes;
}

// What is known of each set in a round when all is over.
class Reports {
 public:
  Reports(const Round& round, const RoundAnswers& asked, const std::vector<Made>& made) {
    for (std::size_t i = 0; i < round.listens.size(); ++i) {
      if (const auto* report = answer_as<ReportAnswer>(asked.reports, i)) {
        reports_[round.listens[i].request.id] = *report;
      }
    }
    for (const Made& row : made) {
      if (row.dial.source) sources_.insert(bare(*row.dial.source));
    }
  }

  void complete(const PlannedDial& plan, Dial& dial) const {
    const auto found = reports_.find(plan.listen);
    if (found == reports_.end()) {
      dial.syn_arrived = Unknown{.text = plan.listen.empty() ? "nobody watched" : "no report came"};
      return;
    }
    dial.syn_arrived = arrived(found->second, dial);
    if (const Arrival* syn = arrival_of(found->second, dial)) dial.arrived_by = syn->interface;
    // A listener that may have been gone says nothing about who refused.
    const bool gone = !found->second.closed.empty();
    if (gone && dial.outcome != Outcome::ok) dial.ours = false;
  }

 private:
  static Address bare(Address address) {
    address.zone.clear();
    return address;
  }

  static bool at_the_same_port(const Arrival& syn, const Dial& dial) {
    return syn.port == dial.port && syn.destination == bare(dial.address);
  }

  static const Arrival* arrival_of(const ReportAnswer& report, const Dial& dial) {
    if (!dial.source) return nullptr;
    const auto syn = std::ranges::find_if(report.syns, [&](const Arrival& row) {
      return at_the_same_port(row, dial) && row.source == bare(*dial.source);
    });
    return syn == report.syns.end() ? nullptr : &*syn;
  }

  Observed<bool> arrived(const ReportAnswer& report, const Dial& dial) const {
    if (dial.outcome == Outcome::ok && dial.ours) return true;
    if (!report.watching.empty()) return Unknown{.kind = Why::denied, .text = report.watching};
    if (!dial.source) return false;
    if (arrival_of(report, dial) != nullptr) return true;
    const bool stranger = std::ranges::any_of(report.syns, [&](const Arrival& syn) {
      return at_the_same_port(syn, dial) && !sources_.contains(syn.source);
    });
    if (stranger) {
      return Unknown{.kind = Why::failed,
                     .text = "a SYN came from an address that no peer dialled from"};
    }
    return false;
  }

  std::map<std::string, ReportAnswer> reports_;
  std::set<Address> sources_;
};

class Pairs {
 public:
  PairFacts& of(const std::string& from, const std::string& to) {
    const auto [at, added] = known_.emplace(std::pair(from, to), all_.size());
    if (added) all_.push_back({.from = from, .to = to});
    return all_[at->second];
  }
  std::vector<PairFacts> take() { return std::move(all_); }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> known_;
  std::vector<PairFacts> all_;
};

void add_dials(const Round& round, const RoundAnswers& asked, Pairs& pairs) {
  for (const PlannedDial& plan : round.dials) pairs.of(plan.from, plan.to);
  RoundDials dials = dials_of(round, asked);
  const Reports reports(round, asked, dials.made);
  for (Made& made : dials.made) {
    reports.complete(*made.plan, made.dial);
    PairFacts& pair = pairs.of(made.plan->from, made.plan->to);
    pair.dials.push_back(made.dial);
    for (const Purpose purpose : made.plan->also) {
      pair.dials.push_back(made.dial);
      pair.dials.back().purpose = purpose;
    }
  }
  for (const Missed& missed : dials.missed) {
    pairs.of(missed.plan->from, missed.plan->to).complete = missed.why;
  }
}

void add_paths(const Round& round, const RoundAnswers& asked, Pairs& pairs) {
  const auto nodes = paths_by_node(round, asked);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* answer = answer_as<PathAnswer>(asked.paths, i);
    for (std::size_t k = 0; k < nodes[i].plans.size(); ++k) {
      PairFacts& pair = pairs.of(nodes[i].host, nodes[i].plans[k]->to);
      if (answer != nullptr && k < answer->paths.size()) {
        pair.paths.push_back(answer->paths[k]);
      } else if (pair.complete.known()) {
        pair.complete = why_none(asked.paths, i, nodes[i].host);
      }
    }
  }
}

}  // namespace

Unknown why_none(std::span<const Observed<Answer>> answers, std::size_t i, const std::string& who) {
  if (i >= answers.size()) return {.text = who + " was not asked"};
  if (!answers[i].known()) {
    return {.kind = answers[i].why().kind, .text = who + ": " + answers[i].why().text};
  }
  return {.kind = Why::failed, .text = who + " gave another answer than was asked for"};
}

std::vector<HostRequest> listen_requests(const Round& round) {
  std::vector<HostRequest> requests;
  for (const PlannedListen& plan : round.listens) requests.push_back({plan.host, plan.request});
  return requests;
}

std::vector<HostRequest> dial_requests(const Round& round, const RoundAnswers& asked) {
  std::vector<HostRequest> requests;
  for (const NodeDials& node : dials_by_node(round, asked)) {
    DialRequest request{.timeout_ms = round.dial_timeout_ms};
    for (const Ready& ready : node.dials) {
      request.targets.insert(request.targets.end(), ready.targets.begin(), ready.targets.end());
    }
    if (!request.targets.empty()) requests.push_back({node.host, std::move(request)});
  }
  return requests;
}

std::vector<HostRequest> path_requests(const Round& round, const RoundAnswers& asked) {
  std::vector<HostRequest> requests;
  for (NodePaths& node : paths_by_node(round, asked)) {
    requests.push_back({node.host, PathRequest{std::move(node.targets), round.path_timeout_ms}});
  }
  return requests;
}

std::vector<HostRequest> report_requests(const Round& round) {
  std::vector<HostRequest> requests;
  for (const PlannedListen& plan : round.listens) {
    requests.push_back({plan.host, ReportRequest{plan.request.id}});
  }
  return requests;
}

std::vector<HostRequest> duplicate_requests(const ProbePlan& plan) {
  std::vector<HostRequest> requests;
  for (const PlannedDuplicates& row : plan.duplicates) requests.push_back({row.host, row.request});
  return requests;
}

std::vector<PairFacts> assemble(const ProbePlan& plan,
                                std::span<const RoundAnswers> answers,
                                const Unknown& unasked) {
  Pairs pairs;
  for (std::size_t i = 0; i < plan.rounds.size(); ++i) {
    const Round& round = plan.rounds[i];
    if (i < answers.size()) {
      add_dials(round, answers[i], pairs);
      add_paths(round, answers[i], pairs);
      continue;
    }
    for (const PlannedDial& dial : round.dials) pairs.of(dial.from, dial.to).complete = unasked;
  }
  return pairs.take();
}

void note_unbound(const ProbePlan& plan,
                  std::span<const RoundAnswers> answers,
                  std::vector<Untried>& untried) {
  for (std::size_t i = 0; i < std::min(plan.rounds.size(), answers.size()); ++i) {
    const auto& listens = plan.rounds[i].listens;
    for (std::size_t k = 0; k < listens.size(); ++k) {
      const ListenRequest& request = listens[k].request;
      const auto* answer = answer_as<ListenAnswer>(answers[i].listens, k);
      if (!request.port || request.watch_only || answer == nullptr || answer->error.empty()) {
        continue;
      }
      untried.push_back({.node = listens[k].host,
                         .what = std::string(kMasterTraffic),
                         .why = {Why::failed, answer->error}});
    }
  }
}

void take_duplicates(const ProbePlan& plan,
                     std::span<const Observed<Answer>> answers,
                     std::vector<NodeFacts>& nodes) {
  for (std::size_t i = 0; i < plan.duplicates.size(); ++i) {
    const std::string& host = plan.duplicates[i].host;
    const auto node = std::ranges::find(nodes, host, &NodeFacts::host);
    if (node == nodes.end()) continue;
    const auto* answer = answer_as<DuplicateAnswer>(answers, i);
    if (answer == nullptr) {
      node->duplicates = why_none(answers, i, host);
    } else if (!answer->duplicates.known()) {
      node->duplicates = answer->duplicates.why();
    } else {
      auto rows = *answer->duplicates;
      for (DuplicateAddress& row : rows) row.node = host;
      node->duplicates = std::move(rows);
    }
  }
}

}  // namespace distdoctor::probe
