#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void take_down(World& w, std::size_t index, std::string_view name) {
  w.change_link(index, name, [](Link& link) {
    link.up = link.running = link.carrier = false;
    link.operstate = "down";
  });
}
void unplug(World& w, std::size_t index, std::string_view name) {
  w.change_link(index, name, [](Link& link) {
    link.running = link.carrier = false;
    link.operstate = "down";
  });
}
// NCCL 2.28.3 and later pass over it.
void nccl_finds_nothing(World& w, std::size_t index) {
  nccl_takes(w, index, {});
}

Verdict down(Severity severity,
             const std::string& why,
             const std::string& link = "eth1",
             const std::string& node = "node2") {
  return {.code = "net-link-down",
          .severity = severity,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = link + " of " + node + " is down, and " + why,
          .blamed = {node},
          .evidence = {node + " net." + link +
                       ".state: administratively down (down), not up; ip "
                       "link show dev " +
                       link},
          .fixes = {node + ": ip link set dev " + link + " up"}};
}
Verdict unplugged(Severity severity, const std::string& why) {
  return {.code = "net-link-no-carrier",
          .severity = severity,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = "eth1 of node2 is without carrier, and " + why,
          .blamed = {"node2"},
          .evidence = {"node2 net.eth1.state: no carrier (down), not up; ip link show dev eth1"},
          .fixes = {"node2: (manual)"}};
}

void loopback(World& w, bool up) {
  World::change(w.node(2).links, [&](std::vector<Link>& links) {
    links.push_back({.name = "lo", .index = 1, .kind = LinkKind::loopback, .up = up});
    links.back().operstate = "down";
  });
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"near miss: a loopback link that is up, whatever else is said of it",
     [](World& w) { loopback(w, true); }},
    {"the loopback link of a worker",
     [](World& w) { loopback(w, false); },
     {down(notice, "ranks of one node do not reach each other without it", "lo")}},
    {"that of rank 0's node, which does not reach its own store",
     [](World& w) {
       loopback(w, false);
       Dial dial = good_dial(Purpose::master, mgmt(2), 29500, mgmt(2));
       dial.outcome = Outcome::timed_out;
       w.cluster.pairs.push_back({.from = "node2", .to = "node2", .dials = {dial}});
     },
     {down(blocker, "rank 0 does not reach its own MASTER_PORT without it", "lo")}},
    {"NCCL is told to take it, and finds nothing",
     [](World& w) {
       take_down(w, 2, "eth1");
       nccl_finds_nothing(w, 2);
     },
     {down(blocker, "NCCL is told to take it")}},
    {"no carrier",
     [](World& w) {
       unplug(w, 2, "eth1");
       nccl_finds_nothing(w, 2);
     },
     {unplugged(blocker, "NCCL is told to take it")}},
    {"an NCCL before 2.28.3 takes it all the same",
     [](World& w) { take_down(w, 2, "eth1"); },
     {down(blocker, "NCCL takes it")}},
    {"Gloo takes it all the same",
     [](World& w) {
       use_gloo(w);
       w.set("GLOO_SOCKET_IFNAME", "eth1");
       gloo_takes(w, 2, pick("eth1", fast(2)), GlooReason::variable);
       unplug(w, 2, "eth1");
     },
     {unplugged(blocker, "Gloo takes it")}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       take_down(w, 2, "eth1");
     },
     {down(notice, "NCCL takes it")}},
    {"the master's address is on it",
     [](World& w) { take_down(w, 0, "eth0"); },
     {down(blocker, "MASTER_ADDR is on it", "eth0", "node0")}},
    {"the way to the master was on it",
     [](World& w) {
       take_down(w, 2, "eth0");
       for (Dial& dial : w.pair(2, 0).dials) {
         if (dial.purpose == Purpose::master) dial.outcome = Outcome::net_unreachable;
       }
     },
     {down(blocker, "it leads to MASTER_ADDR", "eth0")}},
    {"near miss: the master is reached another way", [](World& w) { take_down(w, 2, "eth0"); }},
    {"this node takes another link than its peers, and does not reach theirs",
     [](World& w) {
       take_down(w, 2, "eth1");
       nccl_takes(w, 2, {pick("eth0", mgmt(2))});
       w.pair(2, 0).dials.clear();
       dialled(w, 2, 0, fast(0), Outcome::net_unreachable);
     },
     {down(blocker, "node0 uses its own for NCCL")}},
    {"it does, and reaches theirs by a detour",
     [](World& w) {
       take_down(w, 2, "eth1");
       nccl_takes(w, 2, {pick("eth0", mgmt(2))});
     },
     {down(degraded, "node0 uses its own for NCCL")}},
    {"near miss: one peer of three uses such a link",
     [](World& w) {
       take_down(w, 2, "eth1");
       for (const std::size_t i : {0U, 1U, 2U}) nccl_takes(w, i, {pick("eth0", mgmt(i))});
     }},
    {"near miss: a spare port, and docker0 without containers",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         add_link(w, i, "eth2", "192.168.9." + std::to_string(i + 1));
         add_link(w, i, "docker0", "172.17.0.1", LinkKind::bridge);
         take_down(w, i, "eth2");
         unplug(w, i, "docker0");
       }
     }},
    {"near miss: docker0 without containers has no carrier, also where Gloo is told to take it",
     [](World& w) {
       use_gloo(w);
       w.set("GLOO_SOCKET_IFNAME", "docker0");
       add_link(w, 2, "docker0", "172.17.0.1", LinkKind::bridge);
       gloo_takes(w, 2, pick("docker0", "172.17.0.1"), GlooReason::variable);
       unplug(w, 2, "docker0");
     }},
    {"a bridge with a port has lost it",
     [](World& w) {
       w.change_link(2, "eth1", [](Link& link) { link.kind = LinkKind::bridge; });
       add_link(w, 2, "ens9", "0.0.0.0");
       w.change_link(2, "ens9", [](Link& link) {
         link.addresses.clear();
         link.master = "eth1";
       });
       unplug(w, 2, "eth1");
       nccl_finds_nothing(w, 2);
     },
     {unplugged(blocker, "NCCL is told to take it")}},
    {"near miss: one of a list, where another one serves",
     [](World& w) {
       w.set("NCCL_SOCKET_IFNAME", "=ens5,eth1");
       add_link(w, 2, "ens5", "192.168.9.2");
       take_down(w, 2, "ens5");
     }},
    {"near miss: excluded by name",
     [](World& w) {
       w.set("NCCL_SOCKET_IFNAME", "^eth2");
       add_link(w, 2, "eth2", "192.168.9.2");
       take_down(w, 2, "eth2");
       nccl_takes(w, 2, {});
     }},
    {"near miss: one node alone",
     [](World& w) {
       take_down(w, 0, "eth1");
       w.cluster.nodes.resize(1);
     }},
    {"links that could not be read are a gap",
     [](World& w) { w.node(2).links = Unknown{.kind = Why::denied, .text = "netlink: EPERM"}; },
     {},
     {"node2 net.links"}},
};

TEST_CASE("net/link_down") {
  run_cases("net/link_down", cases);
}

}  // namespace
}  // namespace distdoctor::testing
