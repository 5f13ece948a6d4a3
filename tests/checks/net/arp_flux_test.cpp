#include "checks/net/route_worlds.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// eth0 of the node moves into the subnet of its eth1.
void one_subnet(World& w, std::size_t node, int rp_filter) {
  w.change_link(node, "eth0", [&](Link& link) {
    link.addresses[0].address = addr("10.20.0." + std::to_string(110 + node));
  });
  World::change(w.node(node).kernel,
                [&](KernelNet& kernel) { kernel.conf["all"].rp_filter = rp_filter; });
}
void conf(World& w, const char* link, void (*change)(InterfaceConf&)) {
  World::change(w.node(1).kernel, [&](KernelNet& kernel) { change(kernel.conf[link]); });
}

std::string line(std::size_t node) {
  const std::string n = std::to_string(node);
  return "node" + n + " net.subnet: eth0 10.20.0.11" + n + "/24, eth1 10.20.0.1" + n +
         "/24, rp_filter 1 (strict), arp_ignore 0, not one link a subnet, or settings that keep "
         "them apart; ip -br -4 "
         "addr; sysctl -a -r 'conf.*(rp_filter|arp_ignore)'";
}
std::string fix(std::size_t node) {
  return "node" + std::to_string(node) +
         ": sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "
         "net.ipv4.conf.eth0.rp_filter=2 net.ipv4.conf.eth1.rp_filter=2";
}
Verdict flux(Severity severity,
             Certainty certainty,
             const char* says,
             const std::vector<std::size_t>& nodes) {
  Verdict made{.code = "net-arp-flux",
               .severity = severity,
               .certainty = certainty,
               .symptom = Symptom::hang,
               .says = says};
  for (const std::size_t node : nodes) {
    made.blamed.push_back("node" + std::to_string(node));
    made.evidence.push_back(line(node));
    made.fixes.push_back(fix(node));
  }
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"connections fail",
     [](World& w) {
       one_subnet(w, 1, 1);
       one_subnet(w, 2, 1);
       unanswered(w, 1, 2);
     },
     {flux(blocker,
           likely,
           "node1, node2: eth0 and eth1 are in one subnet, and strict rp_filter drops",
           {1, 2})}},
    {"it works for now",
     [](World& w) { one_subnet(w, 1, 1); },
     {flux(notice, possible, "it works until an ARP entry changes", {1})}},
    {"it works for now, and a peer has seen two network cards for the address",
     [](World& w) {
       one_subnet(w, 1, 1);
       w.node(2).duplicates = std::vector<DuplicateAddress>{
           {.node = "node2", .interface = "eth1", .address = addr(fast(1)), .other_mac = "02::7"}};
     },
     {flux(degraded, possible, "it works until an ARP entry changes", {1})}},
    {"each link answers for its own address, and answers leave by the other one",
     [](World& w) {
       one_subnet(w, 1, 1);
       conf(w, "all", [](InterfaceConf& conf) { conf.arp_ignore = 1; });
       World::change(w.node(1).routes,
                     [](std::vector<Route>& routes) { routes[1].interface = "eth0"; });
       each_dial(w, 2, 1, [](Dial& dial) {
         if (dial.address == addr(fast(1))) fail(dial, Outcome::host_unreachable, false, false);
       });
     },
     {[] {
       Verdict made = flux(blocker, likely,
                           "strict rp_filter drops what comes in: answers from 10.20.0.11 leave by "
                           "eth0",
                           {1});
       made.evidence = {
           "node1 net.subnet: eth0 10.20.0.111/24, eth1 10.20.0.11/24, rp_filter 1 (strict), "
           "answers from 10.20.0.11 leave by eth0, not one link a subnet, or settings that keep "
           "them apart; ip -br -4 addr; sysctl -a -r 'conf.*(rp_filter|arp_ignore)'"};
       return made;
     }()}},
    {"near miss: arp_ignore could not be read",
     [](World& w) {
       one_subnet(w, 1, 1);
       conf(w, "all", [](InterfaceConf& conf) { conf.arp_ignore.reset(); });
     }},

    {"near miss: loose rp_filter", [](World& w) { one_subnet(w, 1, 2); }},
    {"near miss: each link answers for its own addresses only",
     [](World& w) {
       one_subnet(w, 1, 1);
       conf(w, "all", [](InterfaceConf& conf) { conf.arp_ignore = 1; });
     }},
    {"near miss: ARP is filtered by routes",
     [](World& w) {
       one_subnet(w, 1, 1);
       for (const char* link : {"eth0", "eth1"})
         conf(w, link, [](InterfaceConf& conf) { conf.arp_filter = 1; });
     }},
    {"near miss: a host route each, no subnet",
     [](World& w) {
       one_subnet(w, 1, 1);
       for (const char* link : {"eth0", "eth1"})
         w.change_link(1, link, [](Link& l) { l.addresses[0].prefix = 32; });
     }},
    {"near miss: the other link is down",
     [](World& w) {
       one_subnet(w, 1, 1);
       w.change_link(1, "eth0", [](Link& link) { link.running = false; });
     }},
    {"near miss: two addresses on one link",
     [](World& w) {
       w.change_link(1, "eth1", [](Link& link) {
         link.addresses.push_back({.address = addr("10.20.0.111"), .prefix = 24, .label = "eth1"});
       });
       World::change(w.node(1).kernel, [](KernelNet& kernel) { kernel.conf["all"].rp_filter = 1; });
     }},
    {"near miss: a subnet that the job does not use",
     [](World& w) {
       w.change_link(1, "lo", [](Link& link) {
         link.addresses.push_back({.address = addr("10.10.0.111"), .prefix = 24, .label = "lo"});
       });
       World::change(w.node(1).kernel, [](KernelNet& kernel) { kernel.conf["all"].rp_filter = 1; });
     }},
};

TEST_CASE("net/arp_flux") {
  run_cases("net/arp_flux", cases);
}

}  // namespace
}  // namespace distdoctor::testing
