#include <distdoctor/reading.h>
#include <distdoctor/routing.h>

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

// node0 of the healthy cluster, and the way that it takes from its fast address to node1's.
struct Row {
  const char* name;
  void (*change)(NodeFacts&);
  const char* way;  // "eth1", "none", "unknown", "blackhole by 100"
};

std::string text(const std::optional<WayOut>& way) {
  if (!way) return "unknown";
  std::string words = "none";
  if (way->route != nullptr) {
    words = leads_out(*way->route) ? way->route->interface : std::string(slug(way->route->kind));
  }
  if (way->rule != nullptr) words += " by " + std::to_string(way->rule->priority);
  return words;
}

void add(NodeFacts& node, const Route& route) {
  World::change(node.routes, [&](std::vector<Route>& routes) { routes.push_back(route); });
}
void rules(NodeFacts& node, const PolicyRule& rule) {
  node.rules = std::vector<PolicyRule>{
      rule, {.priority = 32766, .table = 254}, {.priority = 0, .table = 255}};
}

const Row rows[] = {
    {"the link's own route", [](NodeFacts&) {}, "eth1"},
    {"the longer prefix wins, whatever the order",
     [](NodeFacts& n) {
       add(n, {.destination = addr("10.20.0.11"), .prefix = 32, .interface = "eth0"});
     },
     "eth0"},
    {"the smaller metric wins",
     [](NodeFacts& n) {
       add(n, {.destination = addr("10.20.0.0"), .prefix = 24, .interface = "eth0", .metric = 100});
     },
     "eth1"},
    {"the default route is the last resort",
     [](NodeFacts& n) {
       World::change(n.routes, [](std::vector<Route>& r) { r.erase(r.begin() + 1); });
     },
     "eth0"},
    {"no route at all", [](NodeFacts& n) { n.routes = std::vector<Route>{}; }, "none"},
    {"a rule for the source address",
     [](NodeFacts& n) {
       rules(n, {.priority = 100, .table = 7, .from = addr("10.20.0.10"), .from_prefix = 32});
       add(n, {.destination = addr("0.0.0.0"), .interface = "eth0", .table = 7});
     },
     "eth0 by 100"},
    {"a rule for another source",
     [](NodeFacts& n) {
       rules(n, {.priority = 100, .table = 7, .from = addr("10.10.0.10"), .from_prefix = 32});
       add(n, {.destination = addr("0.0.0.0"), .interface = "eth0", .table = 7});
     },
     "eth1 by 32766"},
    {"a table without an answer passes on",
     [](NodeFacts& n) { rules(n, {.priority = 100, .table = 7}); }, "eth1 by 32766"},
    {"a table that forbids does not",
     [](NodeFacts& n) {
       rules(n, {.priority = 100, .table = 7});
       add(n, {.destination = addr("0.0.0.0"), .kind = RouteKind::blackhole, .table = 7});
     },
     "blackhole by 100"},
    {"a rule for what comes in by a link",
     [](NodeFacts& n) {
       rules(n, {.priority = 100, .action = RuleAction::blackhole, .in_interface = "eth0"});
     },
     "eth1 by 32766"},
    {"a rule of the other family",
     [](NodeFacts& n) { rules(n, {.priority = 100, .action = RuleAction::blackhole, .v6 = true}); },
     "eth1 by 32766"},
    {"marks cannot be followed", [](NodeFacts& n) { rules(n, {.priority = 100, .mark = 1}); },
     "unknown"},
    {"rules unseen", [](NodeFacts& n) { n.rules = Unknown{}; }, "unknown"},
    {"routes unseen", [](NodeFacts& n) { n.routes = Unknown{}; }, "unknown"},
};

TEST_CASE("way_out follows rules and routes as the kernel does") {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    NodeFacts node = healthy_node(0, 2);
    row.change(node);
    CHECK(text(way_out(node, addr(fast(1)), addr(fast(0)))) == row.way);
  }
}

// A dial from node1 to node0 that got no answer; where node0 saw the first packet.
TEST_CASE("where a packet came in decides, if it was seen") {
  NodeFacts from = healthy_node(1, 2);
  NodeFacts target = healthy_node(0, 2);
  World::change(target.kernel, [](KernelNet& kernel) { kernel.conf["all"].rp_filter = 1; });
  Dial dial = good_dial(Purpose::gloo, fast(0), 40000, fast(1));
  dial.outcome = Outcome::timed_out;
  using enum RoutingTrouble::Kind;
  CHECK(routing_trouble(from, target, dial).kind == none);
  dial.arrived_by = "eth0";
  CHECK(routing_trouble(from, target, dial).kind == strict_at_target);
  CHECK(other_reason(from, &target, dial).found ==
        "strict rp_filter on node0 drops what comes in by eth0, since it would answer by eth1");
  SUBCASE("a bridge's port stands for the bridge") {
    World::change(target.links, [](std::vector<Link>& links) {
      Link port = links[1];
      port.name = "port1";
      port.master = "eth1";
      port.addresses.clear();
      links.push_back(port);
    });
    dial.arrived_by = "port1";
    CHECK(routing_trouble(from, target, dial).kind == none);
  }
  SUBCASE("a link without addresses of its own says nothing") {
    dial.arrived_by = "eth7";
    CHECK(routing_trouble(from, target, dial).kind == none);
  }
  SUBCASE("IPv6 has no rp_filter") {
    dial.address = addr("fd00::1");
    dial.source = addr("fd00::2");
    CHECK(routing_trouble(from, target, dial).kind == none);
  }
}

// A dial from node1 to node0 whose first packet arrived, and nothing came back.
struct Silence {
  NodeFacts from = healthy_node(1, 2);
  NodeFacts target = healthy_node(0, 2);
  Dial dial = good_dial(Purpose::gloo, fast(0), 40000, fast(1));
};
struct DoubtRow {
  const char* name;
  void (*change)(Silence&);
  const char* unsure;  // empty: a filter, proved
};
const DoubtRow doubts[] = {
    {"all was looked at", [](Silence&) {}, ""},
    {"a rule with a mark: wg-quick, Tailscale, Calico",
     [](Silence& s) { rules(s.target, {.priority = 100, .table = 52, .mark = 0x80000}); },
     "policy rules (marks or other selectors) of node0"},
    {"a rule with other selectors",
     [](Silence& s) { rules(s.target, {.priority = 100, .action = RuleAction::other}); },
     "policy rules (marks or other selectors) of node0"},
    {"near miss: such a rule of the dialler does not count",
     [](Silence& s) { rules(s.from, {.priority = 100, .action = RuleAction::other}); }, ""},
    {"rules unseen", [](Silence& s) { s.target.rules = Unknown{}; }, "the rules of node0"},
    {"routes unseen", [](Silence& s) { s.target.routes = Unknown{}; }, "the routes of node0"},
    {"links unseen", [](Silence& s) { s.target.links = Unknown{}; }, "the links of node0"},
    {"the dialler's kernel unseen", [](Silence& s) { s.from.kernel = Unknown{}; },
     "the connection tracking table of node1"},
    {"the target's kernel unseen", [](Silence& s) { s.target.kernel = Unknown{}; },
     "the connection tracking table of node0"},
    {"sockets unseen, and the listener was not ours",
     [](Silence& s) {
       s.target.sockets = Unknown{};
       s.dial.ours = false;
     },
     "the sockets of node0"},
    {"near miss: sockets unseen, and the listener was ours",
     [](Silence& s) { s.target.sockets = Unknown{}; }, ""},
    {"rp_filter unreadable, and the packet came in by another link than the answer leaves by",
     [](Silence& s) {
       World::change(s.target.kernel, [](KernelNet& kernel) { kernel.conf["eth0"] = {}; });
       s.dial.arrived_by = "eth0";
     },
     "rp_filter of node0"},
    {"near miss: unreadable, and it goes both ways by one link",
     [](Silence& s) {
       World::change(s.target.kernel, [](KernelNet& kernel) { kernel.conf["eth1"] = {}; });
     },
     ""},
    {"near miss: unreadable, and loose for all",
     [](Silence& s) {
       World::change(s.target.kernel, [](KernelNet& kernel) {
         kernel.conf["eth0"] = {};
         kernel.conf["all"].rp_filter = 2;
       });
       s.dial.arrived_by = "eth0";
     },
     ""},
};

TEST_CASE("a filter is proved only where nothing else could be the reason") {
  for (const DoubtRow& row : doubts) {
    CAPTURE(row.name);
    Silence silence;
    silence.dial.outcome = Outcome::timed_out;
    silence.dial.syn_arrived = true;
    row.change(silence);
    const Reading reading = reading_of(silence.from, &silence.target, silence.dial);
    CHECK(reading.kind == Kind::dropped);
    CHECK(reading.unsure == row.unsure);
    const bool sure = *row.unsure == '\0';
    CHECK(reading.certainty == (sure ? Certainty::proved : Certainty::likely));
  }
}

struct ListenRow {
  const char* name;
  const char* bound;
  const char* dialled;
  bool serves;
};
constexpr ListenRow listens[] = {
    {"the very address", "10.20.0.10", "10.20.0.10", true},
    {"another address", "10.10.0.10", "10.20.0.10", false},
    {"loopback", "127.0.0.1", "10.20.0.10", false},
    {"IPv6 loopback", "::1", "10.20.0.10", false},
    {"the wildcard", "0.0.0.0", "10.20.0.10", true},
    {"the IPv6 wildcard may serve IPv4", "::", "10.20.0.10", true},
    {"the IPv6 wildcard", "::", "fd00::1", true},
    {"the IPv4 wildcard serves no IPv6", "0.0.0.0", "fd00::1", false},
    {"an IPv4 address in an IPv6 socket", "::ffff:10.20.0.10", "10.20.0.10", true},
    {"loopback in an IPv6 socket", "::ffff:127.0.0.1", "10.20.0.10", false},
};

TEST_CASE("a reset is a filter's only where something listens at the dialled address") {
  for (const ListenRow& row : listens) {
    CAPTURE(row.name);
    Silence silence;
    silence.dial.outcome = Outcome::refused;
    silence.dial.ours = false;
    silence.dial.address = addr(row.dialled);
    silence.target.sockets =
        SocketFacts{.listeners = {{.address = addr(row.bound), .port = 40000, .backlog = 1}}};
    const Reading reading = reading_of(silence.from, &silence.target, silence.dial);
    CHECK(reading.kind == (row.serves ? Kind::rejected : Kind::refused));
    const bool alone = loopback_listener(silence.target, 40000) != nullptr;
    CHECK(alone == reading_detail::unmapped(addr(row.bound)).loopback());
  }
}

TEST_CASE("a small table with room is not full") {
  CHECK_FALSE(table_full(0, 0));
  CHECK_FALSE(table_full(0, 50));
  CHECK_FALSE(table_full(49, 50));
  CHECK(table_full(50, 50));
  CHECK_FALSE(table_full(98, 100));
  CHECK(table_full(99, 100));
}

}  // namespace
}  // namespace distdoctor::testing
