#include <distdoctor/firewall_fix.h>
#include <distdoctor/reading.h>

#include "checks/rendezvous/jobs.h"
#include "support/alone.h"
#include "support/check_cases.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

using Nodes = std::vector<std::size_t>;

Dial& master_dial(World& w, std::size_t from) {
  for (Dial& dial : w.pair(from, 0).dials) {
    if (dial.purpose == Purpose::master) return dial;
  }
  throw std::logic_error("no dial to the master");
}
// The dials of these nodes to MASTER_PORT fail so.
void fail(World& w, const Nodes& nodes, Outcome outcome, void (*more)(Dial&) = [](Dial&) {}) {
  for (const std::size_t from : nodes) {
    Dial& dial = master_dial(w, from);
    dial.outcome = outcome;
    dial.ours = outcome != Outcome::refused;
    dial.seen_as = {};
    dial.syn_arrived = {};
    dial.route = {.interface = "eth0"};
    more(dial);
  }
}

struct Says {
  const char* code;
  const char* summary;
  std::vector<std::string> blamed;
  std::string seen;  // of each that fails
  Certainty certainty = proved;
};
std::string from(std::size_t node, const std::string& seen, const char* address = "10.10.0.10") {
  const std::string a = address;
  return "node" + std::to_string(node) + " dial " + a + ":29500: " + seen +
         ", not a connection; nc -vz -w 3 " + a + " 29500";
}
Verdict verdict(const Says& says, const Nodes& nodes, const std::vector<std::string>& fixes) {
  Verdict made{.code = says.code,
               .severity = blocker,
               .certainty = says.certainty,
               .symptom = Symptom::hang,
               .says = says.summary,
               .blamed = says.blamed,
               .fixes = fixes};
  for (const std::size_t node : nodes) made.evidence.push_back(from(node, says.seen));
  return made;
}

// What opens node0's port for the eth0 addresses of these nodes.
std::string open_for(const Nodes& nodes) {
  Opening opening{
      .node = "node0", .peers = {addr(mgmt(0))}, .ports = {29500, 29500}, .interface = "eth0"};
  for (const std::size_t node : nodes) opening.peers.push_back(addr(mgmt(node)));
  return "node0: " + open_port_fix(opening).front().command;
}
std::string open_out(std::size_t node) {
  const Opening opening{.node = "node" + std::to_string(node),
                        .peers = {addr("10.10.0.10")},
                        .ports = {29500, 29500},
                        .interface = "eth0",
                        .way = Way::out};
  return opening.node + ": " + open_port_fix(opening).front().command;
}
const std::string kAsk = "node0: (manual)";

void arrived(Dial& dial) {
  dial.syn_left = true;
  dial.syn_arrived = true;
}
void lost(Dial& dial) {
  dial.syn_left = true;
  dial.syn_arrived = false;
}
void kept(Dial& dial) {
  dial.syn_left = false;
  dial.syn_arrived = false;
}
void icmp_from_master(Dial& dial) {
  dial.error = "ICMP 3/13 from 10.10.0.10";
}

// A rule of node0 about its MASTER_PORT.
void rules_of_node0(World& w, FilterVerdict verdict) {
  w.node(0).firewall = Firewall{
      .chains = {
          {.family = "inet",
           .table = "filter",
           .name = "input",
           .hook = "input",
           .rules = {{.conditions = {{.field = FilterField::destination_port, .values = {"29500"}}},
                      .verdict = verdict,
                      .packets = 4,
                      .number = 7,
                      .text = "tcp dport 29500 counter packets 4 bytes 240 " +
                              std::string(slug(verdict))}}}}};
}
void rules_let_pass(World& w) {
  for (std::size_t i = 0; i < 4; ++i) w.node(i).firewall = Firewall{};
}
// All are let in, but for what node0 sends to itself.
void no_loopback(World& w) {
  w.node(0).firewall = Firewall{
      .chains = {
          {.family = "inet",
           .table = "filter",
           .name = "input",
           .hook = "input",
           .policy = FilterVerdict::drop,
           .rules = {
               {.conditions = {{.field = FilterField::state, .values = {"established"}}},
                .verdict = FilterVerdict::accept,
                .number = 3},
               {.conditions = {{.field = FilterField::in_interface, .values = {"eth0", "eth1"}}},
                .verdict = FilterVerdict::accept,
                .number = 4}}}}};
}
std::string rule_row(const char* verb, const char* whom) {
  return std::string(
             "node0 nft chain inet filter input, handle 7: tcp dport 29500 counter packets "
             "4 bytes 240 ") +
         verb + " (4 packets when it was read), not a rule before it that accepts " + whom +
         "; nft -a list chain inet filter input";
}
const char* kInsert =
    "node0: nft insert rule inet filter input position 7 ip saddr { 10.10.0.10, 10.10.0.11, "
    "10.10.0.12, 10.10.0.13 } tcp dport 29500 accept";

// The notice that the way is free.
Verdict not_up(Severity severity,
               const std::string& says,
               const Nodes& nodes,
               const std::vector<std::string>& fixes = {}) {
  Verdict made = verdict({"rendezvous-not-up", "", {"node0"}, "refused", likely}, nodes, fixes);
  made.severity = severity;
  made.says = says;
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing was said", [](World& w) { w.cluster.predicted.master = {}; }, {}, {" MASTER_ADDR"}},
    {"healthy: a worker's node alone", [](World& w) { look_at_only(w, 1); }},
    {"healthy: the master's node alone", [](World& w) { look_at_only(w, 0); }},

    {"the master's node was not reached for a login either",
     [](World& w) {
       fail(w, {1}, Outcome::timed_out);
       for (PairFacts& pair : w.cluster.pairs) {
         if (pair.from == "node1" && pair.to == "node0") pair.to.clear();
       }
       std::erase_if(w.cluster.pairs, [](const PairFacts& pair) { return pair.from != "node1"; });
       w.node(0) = {.host = "node0", .not_reached = "port 22: Connection timed out"};
       w.cluster.nodes.resize(2);
     },
     {verdict({"rendezvous-port-dropped",
               "; node0 was not reached for a login either (port 22: Connection timed out)",
               {"node1"},
               "timed out while our own listener was there",
               likely},
              {1},
              {"node0: (manual)"})}},
    {"a worker's node alone, and no answer",
     [](World& w) {
       fail(w, {1}, Outcome::timed_out);
       look_at_only(w, 1);
       for (PairFacts& pair : w.cluster.pairs) {
         for (Dial& dial : pair.dials) dial.ours = false;
       }
     },
     {verdict({"rendezvous-port-dropped",
               "connections from node1 to MASTER_PORT 29500 are dropped by a filter on 10.10.0.10",
               {"node1"},
               "timed out",
               likely},
              {1},
              {"node1: (manual)"})}},
    {"near miss: a job of that node alone",
     [](World& w) {
       fail(w, {1}, Outcome::timed_out);
       look_at_only(w, 1);
       w.cluster.job.launches = {{.kind = LauncherKind::torchrun, .standalone = true}};
     }},

    {"dropped by the master: its packets were seen to arrive",
     [](World& w) { fail(w, {1, 2, 3}, Outcome::timed_out, arrived); },
     {verdict({"rendezvous-port-dropped",
               "connections from node1, node2, node3 to MASTER_PORT 29500 are dropped by node0 "
               "itself",
               {"node0"},
               "timed out while our own listener was there; the first packet arrived there"},
              {1, 2, 3},
              {open_for({1, 2, 3})})}},
    {"dropped by the master for one node only",
     [](World& w) { fail(w, {2}, Outcome::timed_out, arrived); },
     {verdict({"rendezvous-port-dropped",
               "dropped by node0 itself",
               {"node0"},
               "timed out while our own listener was there; the first packet arrived there"},
              {2},
              {open_for({2})})}},
    {"dropped before it left the sender",
     [](World& w) { fail(w, {2}, Outcome::timed_out, kept); },
     {verdict({"rendezvous-port-dropped",
               "dropped on node2 already",
               {"node2"},
               "timed out while our own listener was there; the first packet did not leave",
               likely},
              {2},
              {open_out(2)})}},
    {"the master answers, and the sender drops the answer",
     [](World& w) {
       fail(w, {2}, Outcome::timed_out, arrived);
       for (Dial& dial : w.pair(2, 0).dials) {
         if (dial.purpose == Purpose::master) dial.error = kAnswerDropped;
       }
     },
     {verdict({"rendezvous-port-dropped",
               "dropped on node2 already",
               {"node2"},
               "timed out while our own listener was there; the answer came, and was dropped here"},
              {2},
              {"node2: (manual)"})}},
    {"dropped by the master, as far as was seen: nobody watched for its answer",
     [](World& w) {
       fail(w, {2}, Outcome::timed_out, arrived);
       for (Dial& dial : w.pair(2, 0).dials) dial.syn_left = Unknown{.kind = Why::denied};
     },
     {verdict({"rendezvous-port-dropped",
               "dropped by node0 itself",
               {"node0"},
               "timed out while our own listener was there; the first packet arrived there",
               likely},
              {2},
              {open_for({2})})}},
    {"dropped between",
     [](World& w) { fail(w, {1, 2, 3}, Outcome::timed_out, lost); },
     {verdict({"rendezvous-port-dropped",
               "dropped between node1, node2, node3 and node0",
               {"node0"},
               "timed out while our own listener was there; the first packet did not arrive there",
               likely},
              {1, 2, 3},
              {kAsk})}},
    {"dropped, nobody could watch, and the rules of node0 say which one drops",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::timed_out);
       rules_of_node0(w, FilterVerdict::drop);
     },
     {[] {
       Verdict made = verdict(
           {"rendezvous-port-dropped",
            "dropped by node0 itself (rule \"tcp dport 29500 counter packets 4 bytes 240 drop\" in "
            "chain inet filter input of nft)",
            {"node0"},
            "timed out while our own listener was there"},
           {1, 2, 3}, {kInsert});
       made.evidence.push_back(rule_row("drop", "node1, node2, node3"));
       return made;
     }()}},
    {"connections open, and a rule of node0 drops their data",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::reset, [](Dial& d) { d.error = "recv: ECONNRESET"; });
       rules_of_node0(w, FilterVerdict::drop);
       World::change(w.node(0).firewall, [](Firewall& filter) {
         filter.chains[0].rules[0].conditions.push_back(
             {.field = FilterField::other, .values = {std::string(kTcpFlags), "psh/psh"}});
       });
     },
     {[] {
       Verdict made = verdict({"rendezvous-port-dropped",
                               "connections from node1, node2, node3 to MASTER_PORT 29500 open, "
                               "then their data is dropped by node0 itself (rule \"tcp dport 29500",
                               {"node0"},
                               "reset (recv: ECONNRESET) while our own listener was there"},
                              {1, 2, 3}, {kInsert});
       made.evidence.push_back(rule_row("drop", "node1, node2, node3"));
       return made;
     }()}},
    {"a reset, where a rule of node0 sends the port elsewhere: no filter is opened for that",
     [](World& w) {
       rules_let_pass(w);
       fail(w, {1, 2, 3}, Outcome::refused, [](Dial& d) {
         d.ours = true;
         arrived(d);
       });
       w.node(0).firewall =
           Firewall{.chains = {{.family = "ip",
                                .table = "nat",
                                .name = "prerouting",
                                .hook = "prerouting",
                                .rules = {{.conditions = {{.field = FilterField::destination_port,
                                                           .values = {"29500"}}},
                                           .verdict = FilterVerdict::other,
                                           .number = 4,
                                           .text = "tcp dport 29500 redirect to :1"}}}}};
     },
     {verdict(
         {"rendezvous-port-rejected",
          "rejected by node0 itself, by rule \"tcp dport 29500 redirect to :1\" of chain ip nat "
          "prerouting perhaps, which sends them elsewhere",
          {"node0"},
          "refused while our own listener was there; the first packet arrived there",
          likely},
         {1, 2, 3},
         {"node0: (manual)"})}},
    {"connections open, then nothing, and no rule is to blame",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::reset, [](Dial& d) { d.error = "recv: ECONNRESET"; });
       rules_let_pass(w);
     },
     {verdict({"rendezvous-port-rejected",
               "open, then nothing comes through: by a filter on node0 or on the way that lets the "
               "handshake pass",
               {"node0"},
               "reset (recv: ECONNRESET) while our own listener was there",
               likely},
              {1, 2, 3},
              {kAsk})}},
    {"it looks like a closed port, and a rule of node0 sends the resets",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       rules_of_node0(w, FilterVerdict::reject);
     },
     {[] {
       Verdict made = verdict({"rendezvous-port-rejected",
                               "rejected by node0 itself (rule \"tcp dport 29500 counter packets 4 "
                               "bytes 240 reject\" in chain inet filter input of nft)",
                               {"node0"},
                               "refused"},
                              {1, 2, 3}, {kInsert});
       made.evidence.push_back(rule_row("reject", "node1, node2, node3"));
       return made;
     }()}},
    {"the packets never came to node0: its rules are not to blame, whatever they say",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::timed_out, lost);
       rules_of_node0(w, FilterVerdict::drop);
     },
     {verdict({"rendezvous-port-dropped",
               "dropped between node1, node2, node3 and node0",
               {"node0"},
               "timed out while our own listener was there; the first packet did not arrive there",
               likely},
              {1, 2, 3},
              {kAsk})}},
    {"the rules of all let them pass: something lies between",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::timed_out);
       rules_let_pass(w);
     },
     {verdict({"rendezvous-port-dropped",
               "dropped between node1, node2, node3 and node0",
               {"node0"},
               "timed out while our own listener was there",
               likely},
              {1, 2, 3},
              {kAsk})}},
    {"they arrive, and the rules let them pass: another filter on node0",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::timed_out, arrived);
       rules_let_pass(w);
     },
     {verdict({"rendezvous-port-dropped",
               "dropped by node0 itself, though its nftables and iptables rules let them pass (an "
               "eBPF program",
               {"node0"},
               "timed out while our own listener was there; the first packet arrived there"},
              {1, 2, 3},
              {"node0: (manual)"})}},
    {"dropped, and nobody could watch: the text says what may lie between",
     [](World& w) { fail(w, {1, 2, 3}, Outcome::timed_out); },
     {verdict({"rendezvous-port-dropped",
               "by a filter on node0, or dropped on the way there (security group, NetworkPolicy",
               {"node0"},
               "timed out while our own listener was there",
               likely},
              {1, 2, 3},
              {open_for({1, 2, 3}), kAsk})}},
    {"of one pair nothing tells the ends apart",
     [](World& w) { fail(w, {1}, Outcome::timed_out); },
     {verdict({"rendezvous-port-dropped",
               "from node1",
               {"node1", "node0"},
               "timed out while our own listener was there",
               likely},
              {1},
              {open_for({1}), kAsk})}},

    {"rejected with ICMP by the master",
     [](World& w) { fail(w, {1, 2, 3}, Outcome::prohibited, icmp_from_master); },
     {verdict({"rendezvous-port-rejected",
               "are rejected by node0 itself",
               {"node0"},
               "prohibited (ICMP 3/13 from 10.10.0.10) while our own listener was there"},
              {1, 2, 3},
              {open_for({1, 2, 3})})}},
    {"host unreachable, says the host itself",
     [](World& w) {
       fail(w, {1}, Outcome::host_unreachable,
            [](Dial& d) { d.error = "ICMP 3/1 from 10.10.0.10"; });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected by node0 itself",
               {"node0"},
               "host unreachable (ICMP 3/1 from 10.10.0.10) while our own listener was there"},
              {1},
              {open_for({1})})}},
    {"port unreachable is no TCP stack's answer",
     [](World& w) {
       fail(w, {1}, Outcome::refused, [](Dial& d) { d.error = "ICMP 3/3 from 10.10.0.10"; });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected by node0 itself",
               {"node0"},
               "refused (ICMP 3/3 from 10.10.0.10)"},
              {1},
              {open_for({1})})}},
    {"rejected by a router between",
     [](World& w) {
       fail(w, {1}, Outcome::prohibited, [](Dial& d) { d.error = "ICMP 3/10 from 10.10.0.1"; });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected between node1 and node0",
               {"node1", "node0"},
               "prohibited (ICMP 3/10 from 10.10.0.1) while our own listener was there"},
              {1},
              {kAsk})}},
    {"rejected by the sender's own filter",
     [](World& w) {
       fail(w, {2}, Outcome::prohibited, [](Dial& d) { d.error = "ICMP 3/13 from 10.10.0.12"; });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected on node2 already",
               {"node2"},
               "prohibited (ICMP 3/13 from 10.10.0.12) while our own listener was there"},
              {2},
              {open_out(2)})}},
    {"a reset though our listener was there",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused, [](Dial& d) {
         d.ours = true;
         arrived(d);
       });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected by node0 itself",
               {"node0"},
               "refused while our own listener was there; the first packet arrived there"},
              {1, 2, 3},
              {open_for({1, 2, 3})})}},
    {"a reset though rank 0 listens",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_rank(w, 0, 0);
       World::change(w.node(0).sockets, [](SocketFacts& s) {
         s.listeners.push_back({.address = addr("::"), .port = 29500, .backlog = 128});
       });
     },
     {verdict({"rendezvous-port-rejected",
               "rejected by a filter on node0",
               {"node0"},
               "refused",
               likely},
              {1, 2, 3},
              {open_for({1, 2, 3}), kAsk})}},

    {"nobody answers for the address",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::host_unreachable,
            [](Dial& d) { d.error = "no ARP answer from 10.10.0.10"; });
     },
     [] {
       auto made = verdict(
           {"rendezvous-port-unreachable",
            "node1, node2, node3 cannot reach MASTER_ADDR 10.10.0.10: no ARP answer from "
            "10.10.0.10",
            {"node0"},
            "host unreachable (no ARP answer from 10.10.0.10) while our own listener was there"},
           {1, 2, 3}, {"node1: (manual)", "node2: (manual)", "node3: (manual)"});
       const std::string before = "nc -vz -w 3 10.10.0.10 29500";
       for (std::string& row : made.evidence) {
         row.replace(row.find(before), before.size(),
                     "ip route get 10.10.0.10; ping -c 1 10.10.0.10; ip neigh show 10.10.0.10");
       }
       return std::vector<Verdict>{made};
     }()},

    {"somebody else answers",
     [](World& w) {
       fail(w, {2}, Outcome::wrong_answer,
            [](Dial& d) { d.error = "another listener of ours answered"; });
     },
     {verdict({"rendezvous-wrong-service",
               "something else than node0 answers node2 at 10.10.0.10:29500",
               {"node2", "node0"},
               "wrong answer (another listener of ours answered) while our own listener was there"},
              {2},
              {"node2: (manual)"})}},

    {"the path is good, nobody listens yet",
     [](World& w) { fail(w, {1, 2, 3}, Outcome::refused); },
     {not_up(notice,
             "node0 answers at MASTER_PORT 29500 with a reset: reachable, nobody listens there yet",
             {1, 2, 3})}},
    {"something listens on loopback alone: no filter's reset",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       World::change(w.node(0).sockets, [](SocketFacts& s) {
         s.listeners.push_back({.address = addr("127.0.0.1"), .port = 29500, .backlog = 128});
       });
     },
     {not_up(notice,
             "with a reset: what listens there is bound to loopback and takes connections of node0 "
             "itself only",
             {1, 2, 3})}},
    {"rank 0 is still starting",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_rank(w, 0, 0);
       add_rank(w, 1, 1);
     },
     {not_up(notice, "nobody listens there yet (pid 4000 has not opened it)", {1, 2, 3})}},
    {"the others have just started",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_rank(w, 1, 1, {}, [](TrainingProcess& p) { p.age_s = 8; });
     },
     {not_up(notice, "nobody listens there yet", {1, 2, 3})}},
    {"rank 0 is not up while the others wait",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_rank(w, 1, 1);
     },
     {not_up(blocker,
             "rank 0 is not up: rank 1 on node1 waits for 120 s, nobody on node0 opens port 29500",
             {1, 2, 3},
             {"node0: (manual)"})}},
    {"jobs for one node run at the same port, and wait for nobody",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_one_node_job(w, 1, true);
       add_one_node_job(w, 2, false);
     },
     {not_up(notice, "nobody listens there yet", {1, 2, 3})}},
    {"so does a rank that waits for another master",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       add_rank(w, 3, 1, {{"MASTER_ADDR", "node2"}});
     },
     {not_up(notice, "nobody listens there yet", {1, 2, 3})}},
    {"whether somebody listens there is unseen: a gap, and no finding",
     [](World& w) {
       fail(w, {1, 2, 3}, Outcome::refused);
       w.node(0).sockets = Unknown{.kind = Why::denied, .text = "sock_diag: EPERM"};
     },
     {},
     {"node0 sockets"}},
    {"near miss: refused by a machine that is no peer",
     [](World& w) {
       set_master(w, "10.10.0.99");
       dial_master(w, 1, "", "10.10.0.99", Outcome::refused).ours = false;
     },
     {},
     {"node0 test traffic", "node2 test traffic", "node3 test traffic"}},

    {"near miss: the master's own name has a dead address beside its own",
     [](World& w) { dial_master(w, 0, "", "fd00:dead::10", Outcome::net_unreachable); }},
    {"near miss: one of two addresses answers",
     [](World& w) {
       Dial second = master_dial(w, 1);
       second.address = addr("fd00:10::10");
       second.outcome = Outcome::net_unreachable;
       auto& dials = w.pair(1, 0).dials;
       dials.insert(dials.begin(), second);
     }},
    {"rank 0's node does not let its own connections in",
     [](World& w) {
       rules_let_pass(w);
       no_loopback(w);
       arrived(dial_master(w, 0, "node0", "10.10.0.10", Outcome::timed_out));
     },
     {[] {
       Verdict made = verdict({"rendezvous-port-dropped",
                               "connections from node0 to its own MASTER_PORT 29500 are dropped by "
                               "node0 itself (the policy of chain inet filter input of nft)",
                               {"node0"},
                               "timed out while our own listener was there; the first packet "
                               "arrived there"},
                              {0}, {"node0: nft add rule inet filter input iifname lo accept"});
       made.evidence.push_back(
           "node0 nft chain inet filter input, policy: policy drop, not a rule before it that "
           "accepts node0; nft -a list chain inet filter input");
       return made;
     }()}},
    {"neither itself nor its peers, by one rule: one rule lets all in",
     [](World& w) {
       rules_let_pass(w);
       rules_of_node0(w, FilterVerdict::drop);
       fail(w, {1, 2, 3}, Outcome::timed_out, arrived);
       arrived(dial_master(w, 0, "node0", "10.10.0.10", Outcome::timed_out));
     },
     {[] {
       Verdict made = verdict({"rendezvous-port-dropped",
                               "connections from node1, node2, node3, node0 to MASTER_PORT 29500 "
                               "are dropped by node0 itself (rule",
                               {"node0"},
                               "timed out while our own listener was there; the first packet "
                               "arrived there"},
                              {1, 2, 3, 0}, {kInsert});
       made.evidence.push_back(rule_row("drop", "node1, node2, node3, node0"));
       return made;
     }()}},
    {"its loopback link is down",
     [](World& w) {
       World::change(w.node(0).links, [](std::vector<Link>& links) {
         links.push_back({.name = "lo", .index = 1, .kind = LinkKind::loopback});
       });
       dial_master(w, 0, "node0", "10.10.0.10", Outcome::timed_out);
     },
     {[] {
       Verdict made =
           verdict({"rendezvous-port-unreachable",
                    "node0 cannot reach MASTER_ADDR 10.10.0.10: the loopback link lo of node0 is "
                    "down",
                    {"node0"},
                    "",
                    likely},
                   {}, {"node0: (manual)"});
       made.evidence = {
           "node0 dial 10.10.0.10:29500: timed out while our own listener was there, not a "
           "connection; ip route get 10.10.0.10; ping -c 1 10.10.0.10; ip neigh show 10.10.0.10"};
       return made;
     }()}},
    {"near miss: nobody listens yet, as it sees itself",
     [](World& w) { dial_master(w, 0, "node0", "10.10.0.10", Outcome::refused).ours = false; }},
    {"a rule that nobody can follow may be the one: it is named, and accepted before",
     [](World& w) {
       rules_let_pass(w);
       rules_of_node0(w, FilterVerdict::drop);
       World::change(w.node(0).firewall, [](Firewall& filter) {
         filter.chains[0].rules[0].conditions.push_back({.field = FilterField::other});
       });
       fail(w, {1, 2, 3}, Outcome::timed_out, arrived);
     },
     {[] {
       Verdict made = verdict({"rendezvous-port-dropped",
                               "dropped by node0 itself, perhaps by rule \"tcp dport 29500 counter "
                               "packets 4 bytes 240 drop\" in chain inet filter input of nft",
                               {"node0"},
                               "timed out while our own listener was there; the first packet "
                               "arrived there"},
                              {1, 2, 3}, {kInsert});
       made.evidence.push_back(rule_row("drop", "node1, node2, node3"));
       return made;
     }()}},
    {"what listens there takes IPv6 alone: no filter's reset",
     [](World& w) {
       rules_let_pass(w);
       fail(w, {1, 2, 3}, Outcome::refused);
       World::change(w.node(0).sockets, [](SocketFacts& s) {
         s.listeners.push_back({.address = addr("::"), .port = 29500, .backlog = 128});
       });
     },
     {[] {
       Verdict made = not_up(notice,
                             "what listens there takes IPv6 only while MASTER_ADDR leads to "
                             "10.10.0.10, or came or went meanwhile",
                             {1, 2, 3}, {"node0: (manual)"});
       made.certainty = possible;
       return made;
     }()}},
    {"an outcome that is missing is a gap",
     [](World& w) {
       std::erase_if(w.pair(1, 0).dials,
                     [](const Dial& d) { return d.purpose == Purpose::master; });
       w.pair(1, 0).complete = Unknown{.kind = Why::timed_out, .text = "no answer to the request"};
     },
     {},
     {"node1 test traffic"}},
    {"near miss: one node alone",
     [](World& w) {
       fail(w, {1}, Outcome::timed_out);
       w.cluster.nodes.resize(1);
     }},
};

TEST_CASE("rendezvous/port_reachable") {
  run_cases("rendezvous/port_reachable", cases);
}

// Silence that is not a filter's: the same packets, another reason.
struct Excluded {
  const char* name;
  void (*change)(World&);
  const char* says;
};
const std::vector<Excluded> excluded = {
    {"full accept queue",
     [](World& w) {
       World::change(w.node(0).sockets, [](SocketFacts& s) {
         s.listeners.push_back({.address = addr("::"), .port = 29500, .queued = 2, .backlog = 1});
       });
     },
     "the accept queue of the listener on node0 is full"},
    {"full connection tracking table",
     [](World& w) {
       World::change(w.node(0).kernel, [](KernelNet& k) {
         k.conntrack_count = 65536;
         k.conntrack_max = 65536;
       });
     },
     "the connection tracking table of node0 is full"},
    {"full connection tracking table of the sender",
     [](World& w) {
       World::change(w.node(1).kernel, [](KernelNet& k) {
         k.conntrack_count = 65536;
         k.conntrack_max = 65536;
       });
     },
     "the connection tracking table of node1 is full"},
    {"strict rp_filter",
     [](World& w) {
       World::change(w.node(0).kernel, [](KernelNet& k) { k.conf["all"].rp_filter = 1; });
       World::change(w.node(0).routes, [](std::vector<Route>& routes) {
         routes.push_back({.destination = addr("10.10.0.11"), .prefix = 32, .interface = "eth1"});
       });
     },
     "strict rp_filter on node0 drops what comes in by eth0, since it would answer by eth1"},
};

TEST_CASE("what else is silent is no firewall") {
  const Check& check = find_check("rendezvous/port_reachable");
  for (const auto& [name, change, says] : excluded) {
    CAPTURE(name);
    World world;
    fail(world, {1}, Outcome::timed_out, arrived);
    change(world);
    Judge judge(check.codes);
    check.run({.cluster = world.cluster, .expect = world.expect}, judge);
    REQUIRE(judge.findings().size() == 1);
    CHECK(judge.findings()[0].code == "rendezvous-port-unreachable");
    CHECK_MESSAGE(judge.findings()[0].summary.find(says) != std::string::npos,
                  judge.findings()[0].summary);
  }
}

TEST_CASE("each sender has its own reason, and its own fix") {
  const Check& check = find_check("rendezvous/port_reachable");
  World world;
  fail(world, {1, 2}, Outcome::timed_out);
  fail(world, {3}, Outcome::host_unreachable);
  for (const std::size_t node : {1U, 2U}) {
    World::change(world.node(node).kernel, [](KernelNet& k) {
      k.conntrack_count = 65536;
      k.conntrack_max = 65536;
    });
  }
  Judge judge(check.codes);
  check.run({.cluster = world.cluster, .expect = world.expect}, judge);
  REQUIRE(judge.findings().size() == 3);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"node3 cannot reach MASTER_ADDR 10.10.0.10: host unreachable", "node3"},
      {"node1 cannot reach MASTER_ADDR 10.10.0.10: the connection tracking table of node1",
       "node1"},
      {"node2 cannot reach MASTER_ADDR 10.10.0.10: the connection tracking table of node2",
       "node2"}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Finding& finding = judge.findings()[i];
    CHECK_MESSAGE(finding.summary.starts_with(expected[i].first), finding.summary);
    REQUIRE(finding.fix.size() == 1);
    CHECK(finding.fix[0].node == expected[i].second);
  }
}

TEST_CASE("near misses of those other reasons") {
  const Check& check = find_check("rendezvous/port_reachable");
  World world;
  fail(world, {1}, Outcome::timed_out, arrived);
  World::change(world.node(0).kernel, [](KernelNet& k) {
    k.conf["all"].rp_filter = 1;  // strict, but the answer leaves by the same link
    k.conntrack_count = 60000;
    k.conntrack_max = 65536;
  });
  World::change(world.node(0).sockets, [](SocketFacts& s) {
    s.listeners.push_back({.address = addr("::"), .port = 29500, .queued = 0, .backlog = 0});
  });
  Judge judge(check.codes);
  check.run({.cluster = world.cluster, .expect = world.expect}, judge);
  REQUIRE(judge.findings().size() == 1);
  CHECK(judge.findings()[0].code == "rendezvous-port-dropped");
}

}  // namespace
}  // namespace distdoctor::testing
