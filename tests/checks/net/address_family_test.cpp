#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr const char* kV6[] = {"fd00:20::10", "fd00:20::11", "fd00:20::12", "fd00:20::13"};

// Both families on every eth1.
void dual_stack(World& w) {
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    w.change_link(i, "eth1", [&](Link& link) {
      link.addresses.push_back({.address = addr(kV6[i]), .prefix = 64, .label = "eth1"});
    });
  }
}
// Node 3 loses IPv4, and NCCL takes what is left there.
void node3_has_v6_only(World& w) {
  for (const char* name : {"eth0", "eth1"}) {
    w.change_link(3, name, [](Link& link) {
      std::erase_if(link.addresses, [](const LinkAddress& row) { return !row.address.v6; });
    });
  }
  nccl_takes(w, 3, {pick("eth1", kV6[3])});
  w.cluster.predicted.master = {};
}

std::string row(const std::string& what) {
  return "node3 net.ipv4: no IPv4 address, not one: " + what + "; ip -4 -br addr";
}
Verdict apart(Severity severity,
              const std::vector<std::string>& evidence,
              const std::string& fix,
              const char* says = "node3 has no IPv4 address, but NCCL on node0 announces") {
  return {.code = "net-address-family",
          .severity = severity,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = {"node3"},
          .evidence = evidence,
          .fixes = {fix}};
}
std::vector<std::string> nccl_rows() {
  return {row("NCCL on node0 announces 10.20.0.10"), row("NCCL on node1 announces 10.20.0.11"),
          row("NCCL on node2 announces 10.20.0.12")};
}

// MASTER_ADDR is node0's link-local address.
void link_local_master(World& w) {
  w.cluster.predicted.master->host = "fe80::10%eth0";
  w.cluster.predicted.master->addresses = {addr("fe80::10%eth0")};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"near miss: a link-local MASTER_ADDR, and all have such addresses",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.change_link(i, "eth0", [](Link& link) {
           link.addresses.push_back({.address = addr("fe80::1"), .prefix = 64, .label = "eth0"});
         });
       }
       link_local_master(w);
     }},
    {"healthy with both families", dual_stack},
    {"IPv4 here, IPv6 alone there: all have IPv6",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
     },
     {apart(blocker, nccl_rows(), "*: NCCL_SOCKET_FAMILY=AF_INET6")}},
    {"nothing in common",
     [](World& w) {
       w.change_link(3, "eth1", [](Link& link) {
         link.addresses.push_back({.address = addr(kV6[3]), .prefix = 64});
       });
       node3_has_v6_only(w);
     },
     {[] {
       Verdict made = apart(blocker, nccl_rows(), "node3: (manual)");
       made.blamed = {"node3", "node0", "node1", "node2"};
       for (const char* node : {"node0", "node1", "node2"}) {
         made.evidence.push_back(std::string(node) +
                                 " net.ipv6: no IPv6 address, not one: NCCL on "
                                 "node3 announces fd00:20::13; ip -6 -br addr");
       }
       return made;
     }()}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       for (const std::size_t i : {0U, 1U, 2U, 3U}) gloo_takes(w, i, pick("eth1", kV6[i]));
     },
     {apart(notice, nccl_rows(), "*: NCCL_SOCKET_FAMILY=AF_INET6")}},
    {"whichever library it uses, it fails",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       w.cluster.job.nccl = Use::maybe;
       w.cluster.job.gloo = Use::maybe;
       for (const std::size_t i : {1U, 2U, 3U}) gloo_takes(w, i, pick("eth1", kV6[i]));
     },
     {[] {
       Verdict made = apart(blocker, nccl_rows(), "*: NCCL_SOCKET_FAMILY=AF_INET6");
       made.evidence.insert(made.evidence.begin() + 1, row("Gloo on node0 announces 10.10.0.10"));
       return made;
     }()}},
    {"MASTER_ADDR has IPv4 only",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) nccl_takes(w, i, {pick("eth1", kV6[i])});
       w.cluster.predicted.master = Master{.host = "node0",
                                           .port = std::uint16_t{29500},
                                           .node = "node0",
                                           .addresses = {addr("10.10.0.10")}};
     },
     {apart(blocker,
            {row("MASTER_ADDR node0 is 10.10.0.10")},
            "node3: (manual)",
            "node3 has no IPv4 address, but MASTER_ADDR node0 is 10.10.0.10")}},
    {"near miss: MASTER_ADDR has both",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) nccl_takes(w, i, {pick("eth1", kV6[i])});
       w.cluster.predicted.master = Master{.host = "node0",
                                           .port = std::uint16_t{29500},
                                           .node = "node0",
                                           .addresses = {addr("10.10.0.10"), addr("fd00:20::10")}};
     }},
    {"near miss: what nobody reaches is a wrong choice: a link-local address",
     [](World& w) {
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         nccl_takes(w, i, {pick("eth1", fast(i)), pick("veth1a2b", "fe80::1%veth1a2b")});
       }
     }},
    {"near miss: likewise a VPN that the peers dialled in vain",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       nccl_takes(w, 3, {pick("eth1", kV6[3])});
       for (const std::size_t i : {1U, 2U}) nccl_takes(w, i, {pick("eth1", kV6[i])});
       add_link(w, 0, "wg0", "10.8.0.9", LinkKind::wireguard);
       nccl_takes(w, 0, {pick("wg0", "10.8.0.9")});
       dialled(w, 1, 0, "10.8.0.9", Outcome::host_unreachable);
     }},
    {"near miss: loopback is another fault",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       for (const std::size_t i : {0U, 1U, 2U}) nccl_takes(w, i, {pick("lo", "127.0.0.1")});
     }},
    {"links that could not be read are a gap",
     [](World& w) {
       dual_stack(w);
       node3_has_v6_only(w);
       w.node(3).links = Unknown{.kind = Why::denied, .text = "netlink: EPERM"};
     },
     {},
     {"node3 net.links"}},
    {"near miss: one node alone", [](World& w) { w.cluster.nodes.resize(1); }},
};

TEST_CASE("net/address_family") {
  run_cases("net/address_family", cases);
}

}  // namespace
}  // namespace distdoctor::testing
