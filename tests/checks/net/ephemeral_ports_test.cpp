#include "checks/net/path_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict verdict(const char* code, Certainty certainty, const char* says) {
  return {.code = code,
          .severity = blocker,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .says = says};
}

// node0's ports fail for node1, as `how` says; MASTER_PORT is on another address of node0.
Verdict dropped(Certainty certainty,
                const char* says,
                const std::string& seen,
                const std::vector<std::string>& blamed,
                const std::vector<std::string>& fixes) {
  Verdict made = verdict("net-ephemeral-dropped", certainty, says);
  made.blamed = blamed;
  made.evidence = {dialled(1, 0, "timed out on 8 of 8 ephemeral ports (32768 to 60999)" + seen)};
  made.fixes = fixes;
  return made;
}

std::string open_out() {
  const Opening opening{.node = "node1",
                        .peers = {addr(fast(0))},
                        .ports = {32768, 60999},
                        .interface = "eth1",
                        .way = Way::out};
  return "node1: " + open_port_fix(opening).front().command;
}

void only_gloo(World& w) {
  w.cluster.job.nccl = Use::no;
  w.cluster.job.gloo = Use::yes;
}
void fail_gloo(World& w, std::size_t from, std::size_t to) {
  each_dial(w, from, to, [](Dial& dial) {
    if (dial.purpose == Purpose::gloo) fail_at(dial, Outcome::timed_out, Seen::arrived);
  });
  Dial master = good_dial(Purpose::master, mgmt(to), 29500, mgmt(from));
  if (to != 0) w.pair(from, to).dials.push_back(master);
}
Verdict gloo_dropped(int from, int to, Severity severity) {
  Opening opening{.node = "node" + std::to_string(to),
                  .peers = {addr(mgmt(static_cast<std::size_t>(from)))},
                  .ports = {32768, 60999},
                  .interface = "eth0"};
  Verdict made = verdict("net-ephemeral-dropped", proved, "are dropped by");
  made.severity = severity;
  made.blamed = {opening.node};
  made.evidence = {"node" + std::to_string(from) + " dial " + mgmt(static_cast<std::size_t>(to)) +
                   ": timed out on 8 of 8 ephemeral ports (32768 to 60999); the first packet "
                   "arrived there, not a connection on each; nc -vz -w 3 " +
                   mgmt(static_cast<std::size_t>(to)) + " 32768"};
  made.fixes = {opening.node + ": " + open_port_fix(opening).front().command};
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"dropped by node0, another port passes",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
     },
     {dropped(proved,
              "connections from node1 to the ephemeral ports (32768-60999) of node0 are dropped by "
              "node0 itself; port 16896 passes",
              "; the first packet arrived there",
              {"node0"},
              {open_data(0, {1})})}},
    {"dropped between the two",
     [](World& w) {
       fail_data(w, 1, 0, {.seen = Seen::left});
       try_outside(w, 1, 0, {});
     },
     {dropped(likely,
              "dropped between node1 and node0",
              "; the first packet did not arrive there",
              {"node0", "node1"},
              {"node0: (manual)"})}},
    {"dropped between two pods: a policy may be the reason",
     [](World& w) {
       fail_data(w, 1, 0, {.seen = Seen::left});
       try_outside(w, 1, 0, {});
       World::change(w.node(0).identity, [](Identity& me) { me.container = "kubernetes"; });
     },
     {dropped(likely,
              "dropped between node1 and node0",
              "; the first packet did not arrive there",
              {"node0", "node1"},
              {"node0: (manual)", "node0: (manual)"})}},
    {"dropped on its way out of node1",
     [](World& w) {
       fail_data(w, 1, 0, {.seen = Seen::kept});
       try_outside(w, 1, 0, {});
     },
     {dropped(likely,
              "dropped on node1 already",
              "; the first packet did not leave",
              {"node1"},
              {open_out()})}},
    {"nobody could watch: the text says what may lie between",
     [](World& w) {
       fail_data(w, 1, 0, {.seen = Seen::unwatched});
       try_outside(w, 1, 0, {});
     },
     {dropped(
         likely,
         "by a filter on node0, or on the way there (security group, NetworkPolicy, switch ACL)",
         "",
         {"node0", "node1"},
         {open_data(0, {1}), "node0: (manual)"})}},
    {"nobody could watch, and the rules of node0 say which one drops a part of the range",
     [](World& w) {
       fail_data(w, 1, 0, {.seen = Seen::unwatched, .first = 40000, .last = 60999});
       w.node(0).firewall = Firewall{
           .chains = {{.tool = FilterTool::iptables_legacy,
                       .family = "ip",
                       .table = "filter",
                       .name = "INPUT",
                       .hook = "input",
                       .rules = {{.conditions = {{.field = FilterField::destination_port,
                                                  .values = {"40000-60999"}}},
                                  .verdict = FilterVerdict::drop,
                                  .number = 3,
                                  .text = "-A INPUT -p tcp -m tcp --dport 40000:60999 -j DROP"}}}}};
     },
     {[] {
       Verdict made = verdict("net-ephemeral-dropped", proved,
                              "dropped by node0 itself (rule \"-A INPUT -p tcp -m tcp --dport "
                              "40000:60999 -j DROP\" in chain filter INPUT of iptables-legacy)");
       made.blamed = {"node0"};
       made.evidence = {
           dialled(1, 0, "timed out on 6 of 8 ephemeral ports (40834 to 60999)", 40834),
           "node0 iptables-legacy chain filter INPUT, rule 3: -A INPUT -p tcp -m tcp --dport "
           "40000:60999 -j DROP, not a rule before it that accepts node1; iptables-legacy -vnL "
           "INPUT "
           "--line-numbers"};
       made.fixes = {
           "node0: iptables-legacy -I INPUT 3 -s 10.20.0.11,10.20.0.10 -p tcp --dport 32768:60999 "
           "-j ACCEPT"};
       return made;
     }()}},
    {"no other port was tried",
     [](World& w) { fail_data(w, 1, 0, {}); },
     {dropped(proved,
              "dropped by node0 itself",
              "; the first packet arrived there",
              {"node0"},
              {open_data(0, {1})})}},
    {"rules with marks on node0 may be the reason, too: likely, and a gap",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
       w.node(0).rules = std::vector<PolicyRule>{{.priority = 5210, .table = 52, .mark = 0x80000},
                                                 {.priority = 32766, .table = 254}};
     },
     {dropped(likely,
              "dropped by node0 itself; port 16896 passes",
              "; the first packet arrived there; not excluded: policy rules (marks or other "
              "selectors) of node0",
              {"node0"},
              {open_data(0, {1})})},
     {"node0 dial.reason"}},
    {"the range of ports of node0 is not known: no figure, and nothing to paste",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
       w.node(0).kernel = Unknown{.kind = Why::denied};
     },
     {[] {
       Verdict made = dropped(likely,
                              "the ephemeral ports from 32768 to 60999 of node0 are dropped by "
                              "node0 itself",
                              "", {"node0"}, {"node0: (manual)"});
       made.evidence = {
           dialled(1, 0,
                   "timed out on 8 of 9 ephemeral ports (32768 to 60999); the first packet arrived "
                   "there; not excluded: the connection tracking table of node0")};
       return made;
     }()},
     {"node0 dial.reason"}},
    {"for several nodes at once",
     [](World& w) {
       for (const std::size_t from : {1U, 2U, 3U}) {
         fail_data(w, from, 0, {});
         try_outside(w, from, 0, {});
       }
     },
     {[] {
       Verdict made = dropped(proved, "connections from node1, node2, node3 to the ephemeral ports",
                              "", {"node0"}, {open_data(0, {1, 2, 3})});
       made.evidence.clear();
       for (const std::size_t from : {1U, 2U, 3U}) {
         made.evidence.push_back(dialled(from, 0,
                                         "timed out on 8 of 8 ephemeral ports (32768 to 60999); "
                                         "the first packet arrived there"));
       }
       return made;
     }()}},
    {"the upper part of the range", [](World& w) { fail_data(w, 1, 0, {.first = 40000}); }, {[] {
       Verdict made = verdict(
           "net-ephemeral-dropped", proved,
           "ephemeral ports from 40834 to 60999 (of 32768-60999) of node0 are dropped by node0");
       made.blamed = {"node0"};
       made.evidence = {dialled(
           1, 0,
           "timed out on 6 of 8 ephemeral ports (40834 to 60999); the first packet arrived there",
           40834)};
       made.fixes = {open_data(0, {1})};
       return made;
     }()}},
    {"rejected by a reset though we listened",
     [](World& w) { fail_data(w, 1, 0, {.outcome = Outcome::refused}); },
     {[] {
       Verdict made = verdict("net-ephemeral-rejected", proved, "are rejected by node0 itself");
       made.blamed = {"node0"};
       made.evidence = {dialled(
           1, 0,
           "refused on 8 of 8 ephemeral ports (32768 to 60999); the first packet arrived there")};
       made.fixes = {open_data(0, {1})};
       return made;
     }()}},
    {"prohibited by a router",
     [](World& w) {
       fail_data(w, 1, 0, {.outcome = Outcome::prohibited, .seen = Seen::left});
       each_dial(w, 1, 0, [](Dial& dial) {
         if (dial.outcome == Outcome::prohibited) dial.error = "ICMP 3/13 from 10.20.0.1";
       });
     },
     {[] {
       Verdict made =
           verdict("net-ephemeral-rejected", proved, "are rejected between node1 and node0");
       made.blamed = {"node0", "node1"};
       made.evidence = {dialled(
           1, 0,
           "prohibited (ICMP 3/13 from 10.20.0.1) on 8 of 8 ephemeral ports (32768 to 60999); "
           "the first packet did not arrive there")};
       made.fixes = {"node0: (manual)"};
       return made;
     }()}},
    {"Gloo alone, which the job may do without: a notice",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       each_dial(w, 1, 0, [](Dial& dial) {
         if (dial.purpose == Purpose::gloo) fail_at(dial, Outcome::timed_out, Seen::arrived);
       });
     },
     {[] {
       Verdict made = gloo_dropped(1, 0, notice);
       made.says = "; a blocker if the job uses Gloo (say --backend gloo)";
       return made;
     }()}},

    {"near miss: every port is dropped one way",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, Failing{});
     }},
    {"near miss: one port was lost by chance",
     [](World& w) { fail_data(w, 1, 0, {.first = 36801, .last = 36801}); }},
    {"near miss: two ports apart from each other",
     [](World& w) {
       fail_data(w, 1, 0, {.first = 36801, .last = 36801});
       fail_data(w, 1, 0, {.first = 48900, .last = 48900});
     }},
    {"near miss: the path loses a third of all packets",
     [](World& w) {
       fail_data(w, 1, 0, {.first = 36801, .last = 40834});
       w.pair(1, 0).paths[0].loss = Loss{1000, 650, 1000, 670};
     }},
    {"near miss: the connection tracking table is full",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
       World::change(w.node(0).kernel,
                     [](KernelNet& k) { k.conntrack_count = k.conntrack_max = 65536; });
     }},
    {"near miss: node0 has no way to answer",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
       w.node(0).routes = std::vector<Route>{};
     }},
    {"near miss: strict rp_filter",
     [](World& w) {
       fail_data(w, 1, 0, {});
       try_outside(w, 1, 0, {});
       World::change(w.node(0).kernel, [](KernelNet& k) { k.conf["all"].rp_filter = 1; });
       World::change(w.node(0).routes,
                     [](std::vector<Route>& routes) { routes[1].interface = "eth0"; });
     }},
    {"Gloo, the way that it does not connect: node0 has the smaller address and only listens",
     [](World& w) {
       only_gloo(w);
       fail_gloo(w, 0, 1);
     },
     {gloo_dropped(0, 1, notice)}},
    {"Gloo, the way that it connects",
     [](World& w) {
       only_gloo(w);
       fail_gloo(w, 1, 0);
     },
     {gloo_dropped(1, 0, blocker)}},
    {"near miss: nobody listens any more, and nobody rejects",
     [](World& w) {
       fail_data(w, 1, 0, {.outcome = Outcome::refused});
       each_dial(w, 1, 0, [](Dial& dial) { dial.ours = false; });
     }},
    {"near miss: a loopback address is announced",
     [](World& w) {
       each_dial(w, 1, 0, [](Dial& dial) {
         if (dial.purpose == Purpose::gloo) {
           dial.address = addr("127.0.1.1");
           dial.outcome = Outcome::refused;
         }
       });
     }},
    {"what has no outcome is a gap",
     [](World& w) {
       w.pair(1, 0).complete = Unknown{.kind = Why::timed_out, .text = "node0 is silent"};
     },
     {},
     {"node1 test traffic"}},
};

TEST_CASE("net/ephemeral_ports") {
  run_cases("net/ephemeral_ports", cases);
}

}  // namespace
}  // namespace distdoctor::testing
