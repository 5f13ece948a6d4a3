#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// A second address on node3's eth1 that is node1's.
void intruder(World& w) {
  w.change_link(3, "eth1", [](Link& link) {
    link.addresses.push_back({.address = addr("10.20.0.11"), .prefix = 24, .label = "eth1"});
  });
}
// What node `index` hears when it asks who has the address.
void hears(World& w,
           std::size_t index,
           const std::string& mac,
           const std::string& address = "10.20.0.11") {
  World::change(w.node(index).duplicates, [&](std::vector<DuplicateAddress>& rows) {
    rows.push_back({.node = w.node(index).host,
                    .interface = "eth1",
                    .address = addr(address),
                    .other_mac = mac});
  });
}
void own_macs(World& w) {
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    for (const char* name : {"eth0", "eth1"}) {
      w.change_link(i, name, [&](Link& link) {
        link.mac = "02:00:00:00:0" + std::to_string(i) + ":0" + name[3];
      });
    }
  }
}

Verdict twice(const std::vector<std::string>& blamed,
              const std::vector<std::string>& evidence,
              const std::string& fix,
              const char* says =
                  "10.20.0.11 of node1 (eth1) is also an "
                  "address of node3") {
  return {.code = "net-duplicate-ip",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = {fix}};
}
const std::string kSeen =
    "node1 address 10.20.0.11: node3 has it too, on eth1, not one machine's; ip -br addr show dev "
    "eth1";
std::string heard(int node, const std::string& what) {
  return "node" + std::to_string(node) + " address 10.20.0.11: " + what +
         ", not one machine's; arping -D -c 2 -I eth1 10.20.0.11";
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"a peer has it as a second address",
     intruder,
     {twice({"node1", "node3"}, {kSeen}, "node3: ip addr del 10.20.0.11/24 dev eth1")}},
    {"and answers ARP for it",
     [](World& w) {
       own_macs(w);
       intruder(w);
       hears(w, 1, "02:00:00:00:03:01");
     },
     {twice({"node1", "node3"},
            {kSeen, heard(1, "02:00:00:00:03:01 answers ARP for it, eth1 of node3")},
            "node3: ip addr del 10.20.0.11/24 dev eth1")}},
    {"the only address of both: which one should go nobody can tell",
     [](World& w) {
       w.change_link(3, "eth1", [](Link& link) { link.addresses[0].address = addr("10.20.0.11"); });
       nccl_takes(w, 3, {pick("eth1", "10.20.0.11")});
     },
     {twice({"node1", "node3"}, {kSeen}, "node1: (manual)")}},
    {"a machine that is no peer answers",
     [](World& w) {
       own_macs(w);
       hears(w, 1, "52:54:00:aa:bb:cc");
     },
     {twice({"node1"},
            {heard(1, "52:54:00:aa:bb:cc answers ARP for it, which is no peer's")},
            "node1: (manual)",
            "10.20.0.11 of node1 (eth1) is also an address of another machine")}},
    {"a peer that asked hears it",
     [](World& w) {
       own_macs(w);
       hears(w, 0, "52:54:00:aa:bb:cc");
     },
     {twice({"node1"},
            {heard(0, "52:54:00:aa:bb:cc answers ARP for it, which is no peer's")},
            "node1: (manual)",
            "is also an address of another machine")}},
    {"near miss: the owner's other link answers, which is ARP flux",
     [](World& w) {
       own_macs(w);
       hears(w, 0, "02:00:00:00:01:00");
     }},
    {"near miss: the owner itself answers a peer",
     [](World& w) {
       own_macs(w);
       hears(w, 0, "02:00:00:00:01:01");
     }},
    {"near miss: an address that nobody announces",
     [](World& w) {
       for (const std::size_t i : {0U, 1U}) {
         add_link(w, i, "eth2", "192.168.9.7");
       }
       add_link(w, 2, "eth2", "192.168.9.8");
     }},
    {"near miss: docker0 on every host, though it is chosen: another fault",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         add_link(w, i, "docker0", "172.17.0.1", LinkKind::bridge);
         nccl_takes(w, i, {pick("docker0", "172.17.0.1")});
       }
     }},
    {"near miss: the same on a link that is down",
     [](World& w) {
       add_link(w, 3, "eth2", "10.20.0.11");
       w.change_link(3, "eth2", [](Link& link) { link.running = false; });
     }},
    {"who cannot ask is a gap",
     [](World& w) {
       w.node(2).duplicates = Unknown{.kind = Why::denied, .text = "packet socket: EPERM"};
     },
     {},
     {"node2 arp.duplicates"}},
};

TEST_CASE("net/duplicate_ip") {
  run_cases("net/duplicate_ip", cases);
}

}  // namespace
}  // namespace distdoctor::testing
