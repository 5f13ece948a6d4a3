#include "probe/assemble.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace probe;

// Two nodes whose every probe goes well, played by hand; a row spoils one answer.
struct Played {
  ProbePlan plan;
  std::vector<RoundAnswers> answers;

  Played() {
    ClusterFacts cluster = healthy_cluster(2);
    cluster.job.gloo = Use::no;
    plan = make_plan(cluster, {.ports_per_address = 2}, 1);
    for (const Round& round : plan.rounds) answers.push_back(play(round));
  }
  std::vector<PairFacts> pairs() const { return assemble(plan, answers, {.text = "interrupted"}); }

  template <class T>
  T& at(std::vector<Observed<Answer>>& list, std::size_t i) {
    // Answers are values: a copy is changed and put back by the caller of change().
    kept = *list.at(i);
    return std::get<T>(kept);
  }
  template <class T, class Change>
  void change(std::vector<Observed<Answer>>& list, std::size_t i, Change how) {
    how(at<T>(list, i));
    list[i] = kept;
  }
  Answer kept;

 private:
  static std::string own(const std::string& host, const Address& towards) {
    const std::size_t i = host == "node0" ? 0 : 1;
    return towards.text().starts_with("10.20") ? fast(i) : mgmt(i);
  }
  static RoundAnswers play(const Round& round) {
    RoundAnswers asked;
    for (const HostRequest& row : listen_requests(round)) {
      const auto& request = std::get<ListenRequest>(row.request);
      ListenAnswer answer{.ports = {32768, 60999}, .udp_port = 7, .bulk_port = 8};
      if (request.port) answer.ports = {*request.port};
      asked.listens.emplace_back(answer);
    }
    for (const HostRequest& row : dial_requests(round, asked)) {
      DialAnswer answer;
      for (const DialTarget& target : std::get<DialRequest>(row.request).targets) {
        Dial dial = good_dial(target.purpose, target.address.text(), target.port,
                              own(row.host, target.address));
        dial.syn_arrived = Unknown{};
        answer.dials.push_back(dial);
      }
      asked.dials.emplace_back(answer);
    }
    for (const HostRequest& row : path_requests(round, asked)) {
      PathAnswer answer;
      for (const PathTarget& target : std::get<PathRequest>(row.request).targets) {
        answer.paths.push_back(
            {.purpose = target.purpose, .source = {}, .destination = target.destination});
      }
      asked.paths.emplace_back(answer);
    }
    for (std::size_t i = 0; i < round.listens.size(); ++i)
      asked.reports.emplace_back(ReportAnswer{});
    return asked;
  }
};

const PairFacts& pair_of(const std::vector<PairFacts>& pairs, const char* from, const char* to) {
  for (const PairFacts& pair : pairs) {
    if (pair.from == from && pair.to == to) return pair;
  }
  FAIL("no such pair");
  return pairs.front();
}

TEST_CASE("all goes well: ports are filled in and each dial comes back in its pair") {
  Played played;
  const auto requests = dial_requests(played.plan.rounds[1], played.answers[1]);
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].host == "node0");
  const auto& targets = std::get<DialRequest>(requests[0].request).targets;
  REQUIRE(targets.size() == 2);
  CHECK(targets[0].port == 32768);
  CHECK(targets[1].port == 60999);
  CHECK(targets[0].nonce == played.plan.rounds[1].listens[1].request.nonce);
  const auto paths = path_requests(played.plan.rounds[1], played.answers[1]);
  REQUIRE(paths.size() == 2);
  CHECK(std::get<PathRequest>(paths[0].request).targets.at(0).bulk_port == 8);
  CHECK(report_requests(played.plan.rounds[0]).size() == 1);

  const auto pairs = played.pairs();
  REQUIRE(pairs.size() == 3);  // node0 to its own port, and each way
  const PairFacts& pair = pair_of(pairs, "node1", "node0");
  CHECK(pair.complete == Observed<bool>(true));
  REQUIRE(pair.dials.size() == 1 + 2 * 2);  // MASTER_PORT; two ports for bootstrap and for data
  CHECK(pair.dials[0].purpose == Purpose::master);
  CHECK(pair.dials[0].ours);
  CHECK(pair.dials[1].purpose == Purpose::nccl_bootstrap);
  CHECK(pair.dials[2].purpose == Purpose::nccl_data);
  CHECK(pair.dials[2].port == pair.dials[1].port);
  for (const Dial& dial : pair.dials) CHECK(dial.syn_arrived == Observed<bool>(true));
  CHECK(pair.paths.size() == 1);
  CHECK(pair_of(pairs, "node0", "node0").dials.size() == 1);
}

// The master dial of node1, which timed out or was refused, and what is said about it.
struct Row {
  const char* name;
  void (*change)(Dial&, ReportAnswer&);
  Observed<bool> arrived;
  bool ours;
};

TEST_CASE("an outside port is a target of its own, and no dial when it was not tried") {
  Played played;
  played.change<ListenAnswer>(played.answers[1].listens, 0,
                              [](ListenAnswer& answer) { answer.outside_port = 16896; });
  const auto requests = dial_requests(played.plan.rounds[1], played.answers[1]);
  const auto& targets = std::get<DialRequest>(requests.at(1).request).targets;
  REQUIRE(targets.size() == 3);
  CHECK(targets[2].port == 16896);
  CHECK(targets[2].only_after_failure);
  CHECK_FALSE(targets[1].only_after_failure);
  for (const bool tried : {false, true}) {
    played.change<DialAnswer>(played.answers[1].dials, 1, [&](DialAnswer& answer) {
      answer.dials.resize(3, answer.dials[0]);
      answer.untried = tried ? std::vector<std::uint32_t>{} : std::vector<std::uint32_t>{2};
    });
    CHECK(pair_of(played.pairs(), "node1", "node0").dials.size() == (tried ? 7 : 5));
  }
}

TEST_CASE("whether the SYN arrived, and whether our listener was there") {
  const Unknown unwatched{.kind = Why::denied, .text = "EPERM"};
  const Unknown strange{.kind = Why::failed,
                        .text = "a SYN came from an address that no peer dialled from"};
  const Row rows[] = {
      {"never seen", [](Dial&, ReportAnswer&) {}, false, true},
      {"seen",
       [](Dial& dial, ReportAnswer& report) {
         report.syns = {{*dial.source, dial.address, dial.port, "eth0"}};
       },
       true, true},
      {"another port was seen",
       [](Dial& dial, ReportAnswer& report) {
         report.syns = {{*dial.source, dial.address, 1, "eth0"}};
       },
       false, true},
      {"the other node's was seen",
       [](Dial& dial, ReportAnswer& report) {
         report.syns = {{addr(mgmt(0)), dial.address, dial.port, "lo"}};
       },
       false, true},
      {"a stranger's was seen: NAT",
       [](Dial& dial, ReportAnswer& report) {
         report.syns = {{addr("192.0.2.1"), dial.address, dial.port, "eth0"}};
       },
       strange, true},
      {"nobody watched", [](Dial&, ReportAnswer& report) { report.watching = "EPERM"; }, unwatched,
       true},
      {"the listener was gone",
       [](Dial&, ReportAnswer& report) { report.closed = "a foreign client"; }, false, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Played played;
    ReportAnswer report;
    played.change<DialAnswer>(played.answers[0].dials, 1, [&](DialAnswer& answer) {
      answer.dials[0].outcome = Outcome::timed_out;
      row.change(answer.dials[0], report);
    });
    played.answers[0].reports[0] = Answer(report);
    const Dial dial = pair_of(played.pairs(), "node1", "node0").dials.at(0);
    CHECK(dial.syn_arrived == row.arrived);
    CHECK(dial.arrived_by == (row.arrived == Observed<bool>(true) ? "eth0" : ""));
    CHECK(dial.ours == row.ours);
  }
}

TEST_CASE("what has no outcome is not complete, and the reason is kept") {
  struct Hole {
    const char* name;
    void (*spoil)(Played&);
    const char* why;
  };
  const Hole holes[] = {
      {"the listener's node is gone",
       [](Played& p) {
         p.answers[1].listens[0] = Unknown{.kind = Why::timed_out, .text = "node0 is silent"};
       },
       "node0: node0 is silent"},
      {"it could not listen",
       [](Played& p) {
         p.change<ListenAnswer>(p.answers[1].listens, 0, [](ListenAnswer& answer) {
           answer = {.error = "bind: EADDRNOTAVAIL"};
         });
         p.answers[1].dials.erase(p.answers[1].dials.begin() + 1);
       },
       "node0: bind: EADDRNOTAVAIL"},
      {"the dialler is gone", [](Played& p) { p.answers[1].dials[1] = Unknown{.text = "killed"}; },
       "node1: killed"},
      {"the dialler answers rubbish",
       [](Played& p) { p.answers[1].dials[1] = Answer(ReportAnswer{}); },
       "node1 gave another answer than was asked for"},
      {"too few dials",
       [](Played& p) {
         p.change<DialAnswer>(p.answers[1].dials, 1,
                              [](DialAnswer& answer) { answer.dials.resize(1); });
       },
       "node1 gave another answer than was asked for"},
      {"nothing was measured", [](Played& p) { p.answers[1].paths[1] = Unknown{.text = "budget"}; },
       "node1: budget"},
      {"the round was not acted out", [](Played& p) { p.answers.pop_back(); }, "interrupted"},
  };
  for (const Hole& hole : holes) {
    CAPTURE(hole.name);
    Played played;
    hole.spoil(played);
    const auto pairs = played.pairs();
    const PairFacts& pair = pair_of(pairs, "node1", "node0");
    REQUIRE_FALSE(pair.complete.known());
    CHECK(pair.complete.why().text == hole.why);
    CHECK(pair.dials.at(0).purpose == Purpose::master);  // the other round stands
  }
}

TEST_CASE("without a listener of ours nothing is sent to MASTER_PORT") {
  Played played;
  played.change<ListenAnswer>(played.answers[0].listens, 0,
                              [](ListenAnswer& answer) { answer = {.error = "bind: EADDRINUSE"}; });
  for (const HostRequest& row : dial_requests(played.plan.rounds[0], played.answers[0])) {
    CHECK_FALSE(std::get<DialRequest>(row.request).targets.at(0).nonce.has_value());
  }
  CHECK_FALSE(pair_of(played.pairs(), "node1", "node0").dials.at(0).ours);
}

TEST_CASE("nothing is measured where no dial went well") {
  Played played;
  played.change<DialAnswer>(played.answers[1].dials, 1, [](DialAnswer& answer) {
    for (Dial& dial : answer.dials) dial.outcome = Outcome::timed_out;
  });
  const auto requests = path_requests(played.plan.rounds[1], played.answers[1]);
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].host == "node0");
}

TEST_CASE("duplicates go to the node that asked") {
  const ProbePlan plan = make_plan(healthy_cluster(3), {}, 1);
  REQUIRE(duplicate_requests(plan).size() == 3);
  const DuplicateAnswer found{
      std::vector<DuplicateAddress>{{"", "eth1", addr(fast(0)), "02:00:00:00:00:99"}}};
  const std::vector<Observed<Answer>> answers = {
      Answer(found), Answer(DuplicateAnswer{Unknown{.kind = Why::denied, .text = "EPERM"}})};
  std::vector<NodeFacts> nodes = healthy_cluster(3).nodes;
  take_duplicates(plan, answers, nodes);
  CHECK(nodes[0].duplicates->at(0).node == "node0");
  CHECK(nodes[0].duplicates->at(0).other_mac == "02:00:00:00:00:99");
  CHECK(nodes[1].duplicates.why().kind == Why::denied);
  CHECK(nodes[2].duplicates.why().text == "node2 was not asked");
}

TEST_CASE("why the master's own listener could not be opened is kept") {
  Played played;
  std::vector<Untried> untried;
  note_unbound(played.plan, played.answers, untried);
  CHECK(untried.empty());
  const auto& listens = played.plan.rounds.at(0).listens;
  for (std::size_t i = 0; i < listens.size(); ++i) {
    if (!listens[i].request.port) continue;
    played.change<ListenAnswer>(played.answers.at(0).listens, i, [](ListenAnswer& answer) {
      answer.ports.clear();
      answer.error = "bind 10.10.0.10 port 29500: Address already in use";
    });
  }
  note_unbound(played.plan, played.answers, untried);
  REQUIRE(untried.size() == 1);
  CHECK(untried[0] ==
        Untried{.node = "node0",
                .what = "MASTER_PORT",
                .why = {Why::failed, "bind 10.10.0.10 port 29500: Address already in use"}});
}

}  // namespace
}  // namespace distdoctor::testing
