#include "checks/net/route_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

std::string line(const std::string& seen,
                 const char* to = "10.20.0.10",
                 const char* peer = "node0") {
  return std::string("node1 route to ") + to + ": " + seen + ", not a route to " + peer +
         "; ip route get " + to;
}

// node1 sends what is for node0's eth1 to a router, which does not answer.
void detour(World& w) {
  add_route(w, 1,
            {.destination = addr("10.20.0.10"),
             .prefix = 32,
             .interface = "eth0",
             .gateway = addr("10.10.0.1")});
}
void router_is_dead(World& w) {
  each_dial(w, 1, 0, [&](Dial& dial) {
    if (dial.address != addr(fast(0))) return;
    fail(dial, Outcome::host_unreachable, false, true);
    dial.error = "connect: EHOSTUNREACH";
    dial.route = {.interface = "eth0", .gateway = addr("10.10.0.1"), .source = addr(mgmt(1))};
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a route by a dead router, though a link is in that network",
     [](World& w) {
       detour(w);
       router_is_dead(w);
       unanswered(w, 0, 1);
     },
     {[] {
       Verdict made = routing(
           "net-no-route",
           "node1 sends what is for 10.20.0.10 (node0) to the router 10.10.0.1, which does not "
           "answer: route 10.20.0.10/32 via 10.10.0.1 dev eth0, though eth1 is in that network",
           "node1",
           {"node1 route to 10.20.0.10: 10.20.0.10/32 via 10.10.0.1 dev eth0, not the route of "
            "eth1; ip route get 10.20.0.10; ip neigh show 10.10.0.1"},
           {"node1: ip route del 10.20.0.10/32 via 10.10.0.1 dev eth0"});
       made.certainty = likely;
       return made;
     }()}},
    {"near miss: that router hands on", detour},
    {"near miss: no answer, but the router is alive",
     [](World& w) {
       detour(w);
       unanswered(w, 0, 1);
     }},
    {"near miss: a rule by port forbids it, and the route is there: net/policy_rule",
     [](World& w) {
       add_rule(w, 1, {.priority = 100, .action = RuleAction::other});
       at_once(w, 1, 0, Outcome::local_error, {"EINVAL", ""});
     }},
    {"near miss: a broadcast address: rendezvous/master_addr",
     [](World& w) {
       add_route(w, 1,
                 {.destination = addr("10.20.0.10"), .prefix = 32, .kind = RouteKind::broadcast});
       at_once(w, 1, 0, Outcome::local_error, {"EACCES", ""});
     }},
    {"no rule leads to the main table",
     [](World& w) {
       World::change(w.node(1).rules, [](std::vector<PolicyRule>& rules) {
         rules = {{.priority = 0, .table = 255}, {.priority = 32767, .table = 253}};
       });
       at_once(w, 1, 0, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     },
     {routing("net-no-route",
              "node1 has no route to 10.20.0.10 (node0)",
              "node1",
              {line("Network is unreachable")},
              {"node1: ip rule add pref 32766 lookup main"})}},
    {"the route of the link is gone",
     [](World& w) {
       drop_route(w, 1, "10.20.0.0");
       at_once(w, 1, 0, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     },
     {routing("net-no-route",
              "node1 has no route to 10.20.0.10 (node0)",
              "node1",
              {line("Network is unreachable")},
              {"node1: ip route add 10.20.0.0/24 dev eth1 src 10.20.0.11"})}},
    {"several peers, one route to put back",
     [](World& w) {
       drop_route(w, 1, "10.20.0.0");
       for (const std::size_t to : {0U, 2U})
         at_once(w, 1, to, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     },
     {routing(
         "net-no-route",
         "node1 has no route to 10.20.0.10 (node0), 10.20.0.12 (node2)",
         "node1",
         {line("Network is unreachable"), line("Network is unreachable", "10.20.0.12", "node2")},
         {"node1: ip route add 10.20.0.0/24 dev eth1 src 10.20.0.11"})}},
    {"an unreachable route",
     [](World& w) {
       add_route(w, 1,
                 {.destination = addr("10.20.0.10"), .prefix = 32, .kind = RouteKind::unreachable});
       at_once(w, 1, 0, Outcome::host_unreachable, {"EHOSTUNREACH", "No route to host"});
     },
     {routing("net-no-route",
              "node1 has no route to 10.20.0.10 (node0): a route of its own forbids it",
              "node1",
              {line("No route to host: unreachable 10.20.0.10/32")},
              {"node1: ip route del unreachable 10.20.0.10/32"})}},
    {"a black hole",
     [](World& w) {
       add_route(w, 1,
                 {.destination = addr("10.20.0.0"), .prefix = 28, .kind = RouteKind::blackhole});
       at_once(w, 1, 0, Outcome::local_error, {"EINVAL", "Invalid argument"});
     },
     {routing("net-no-route",
              "a route of its own forbids it",
              "node1",
              {line("Invalid argument: blackhole 10.20.0.0/28")},
              {"node1: ip route del blackhole 10.20.0.0/28"})}},
    {"a prohibiting one",
     [](World& w) {
       add_route(w, 1,
                 {.destination = addr("10.20.0.10"), .prefix = 32, .kind = RouteKind::prohibit});
       at_once(w, 1, 0, Outcome::local_error, {"EACCES", "Permission denied"});
     },
     {routing("net-no-route",
              "a route of its own forbids it",
              "node1",
              {line("Permission denied: prohibit 10.20.0.10/32")},
              {"node1: ip route del prohibit 10.20.0.10/32"})}},
    {"another network without a router",
     [](World& w) {
       World::change(w.node(1).routes, [](std::vector<Route>& routes) { routes.resize(1); });
       w.change_link(1, "eth1", [](Link& link) { link.addresses[0].address = addr("10.30.0.11"); });
       at_once(w, 1, 0, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     },
     {routing("net-no-route",
              "node1 has no route to 10.20.0.10 (node0)",
              "node1",
              {line("Network is unreachable")},
              {"node1: (manual)"})}},
    {"only its answers have no way: seen from the peer",
     [](World& w) {
       drop_route(w, 1, "10.20.0.0");
       unanswered(w, 0, 1);
     },
     {[] {
       Verdict made = routing("net-no-route", "node1 has no route to 10.20.0.10 (node0)", "node1",
                              {line("an answer has no way out")},
                              {"node1: ip route add 10.20.0.0/24 dev eth1 src 10.20.0.11"});
       made.certainty = likely;
       return made;
     }()}},
    {"MASTER_ADDR is nobody's, and there is no way to it",
     [](World& w) {
       PairFacts pair{.from = "node1", .to = ""};
       pair.dials.push_back(good_dial(Purpose::master, "192.0.2.7", 29500, mgmt(1)));
       Dial& dial = pair.dials[0];
       fail(dial, Outcome::net_unreachable, false, false);
       dial.error = "connect: ENETUNREACH, at once";
       w.cluster.pairs.push_back(pair);
       drop_route(w, 1, "192.0.2.0");
     },
     {routing("net-no-route",
              "node1 has no route to 192.0.2.7",
              "node1",
              {line("connect: ENETUNREACH, at once", "192.0.2.7", "192.0.2.7")},
              {"node1: (manual)"})}},
    {"facts unseen: the kernel's words are enough",
     [](World& w) {
       w.node(1).routes = Unknown{.kind = Why::denied};
       w.node(1).links = Unknown{.kind = Why::denied};
       at_once(w, 1, 0, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     },
     {routing("net-no-route",
              "node1 has no route to 10.20.0.10 (node0)",
              "node1",
              {line("Network is unreachable")},
              {"node1: (manual)"})}},

    {"near miss: no address of that family at all: another check's",
     [](World& w) {
       for (const char* link : {"eth0", "eth1"}) {
         w.change_link(1, link, [](Link& changed) {
           changed.addresses = {{.address = addr("fd00:20::11"), .prefix = 64}};
         });
       }
       w.node(1).routes = std::vector<Route>{};
       at_once(w, 1, 0, Outcome::net_unreachable, {"ENETUNREACH", "Network is unreachable"});
     }},
    {"near miss: a policy rule forbids it",
     [](World& w) {
       add_rule(w, 1, {.priority = 100, .table = 100, .to = addr("10.20.0.0"), .to_prefix = 24});
       add_route(w, 1,
                 {.destination = addr("0.0.0.0"), .kind = RouteKind::blackhole, .table = 100});
       at_once(w, 1, 0, Outcome::local_error, {"EINVAL", "Invalid argument"});
     }},
    {"near miss: the address is not there to bind",
     [](World& w) { at_once(w, 1, 0, Outcome::local_error, {"EADDRNOTAVAIL", ""}); }},
    {"near miss: a router says so",
     [](World& w) {
       each_dial(w, 1, 0, [](Dial& dial) {
         fail(dial, Outcome::net_unreachable, false, true);
         dial.error = "ICMP 3/0 from 10.10.0.1";
       });
     }},
    {"near miss: dropped, with a way back", [](World& w) { unanswered(w, 0, 1); }},
};

TEST_CASE("net/no_route") {
  run_cases("net/no_route", cases);
}

}  // namespace
}  // namespace distdoctor::testing
