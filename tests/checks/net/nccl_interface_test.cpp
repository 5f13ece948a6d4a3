#include "checks/net/choices.h"
#include "support/alone.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

using Lines = std::vector<std::string>;

constexpr const char* kReach = ", not an interface that the other nodes reach; ";
const std::string kFix = "*: NCCL_SOCKET_IFNAME==eth1";

Verdict fault(const char* code,
              const std::string& says,
              const Lines& blamed,
              const Lines& evidence,
              const Lines& fixes = {kFix}) {
  return {.code = code,
          .severity = blocker,
          .certainty = proved,
          .symptom = std::string_view(code).ends_with("no-match") ? Symptom::crash : Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}
Verdict as(Severity severity, Certainty certainty, Verdict verdict) {
  verdict.severity = severity;
  verdict.certainty = certainty;
  return verdict;
}
std::string row(int node, const std::string& seen, const std::string& command) {
  return "node" + std::to_string(node) + " nccl.interface: " + seen + kReach + command;
}
std::string set_to(int node,
                   const std::string& value,
                   const std::string& origin = "--env",
                   const std::string& command = "printenv NCCL_SOCKET_IFNAME") {
  return "node" + std::to_string(node) + " NCCL_SOCKET_IFNAME: NCCL_SOCKET_IFNAME=" + value + " (" +
         origin + "), not a value that fits every node; " + command;
}

// The variable, and where a fitting one would lead.
void name_them(World& w, const std::string& value) {
  w.set("NCCL_SOCKET_IFNAME", value);
  recommend(w, "NCCL_SOCKET_IFNAME", "=eth1");
}
void unset_them(World& w) {
  w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
  for (Prediction& node : w.cluster.predicted.nodes) node.settings.erase("NCCL_SOCKET_IFNAME");
}
void nothing_on_node2(World& w, const std::string& value) {
  name_them(w, value);
  nccl_takes(w, 2, {});
}
Verdict nothing(const std::string& value, const std::string& hint, const Lines& fixes = {kFix}) {
  return fault(
      "net-nccl-ifname-no-match",
      "with NCCL_SOCKET_IFNAME=" + value + " (--env)" + hint + " NCCL finds no interface on node2",
      {"node2"},
      {row(2, "NCCL_SOCKET_IFNAME=" + value + " (--env): no socket interface found", "ip -br addr"),
       set_to(2, value)},
      fixes);
}

void docker0_everywhere(World& w) {
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    add_link(w, i, "docker0", "172.17.0.1", LinkKind::bridge);
  }
}
void take_docker0(World& w) {
  name_them(w, "docker0");
  docker0_everywhere(w);
  for (const std::size_t i : {0U, 1U, 2U, 3U}) nccl_takes(w, i, {pick("docker0", "172.17.0.1")});
}

std::string link_local(int from, int to) {
  const std::string address = "fe80::" + std::to_string(to + 1) + "%cont0";
  return row(from,
             "node" + std::to_string(to) + " announces " + address +
                 " of cont0: a link-local address, which node" + std::to_string(from) +
                 " does not reach (host unreachable)",
             "nc -vz -w 3 " + address + " 40834");
}

// eth10 beside eth1, in a subnet of its own on each node.
void eth10_too(World& w) {
  name_them(w, "eth1");
  for (const std::size_t i : {0U, 1U}) {
    const std::string address = "192.168." + std::to_string(70 + i) + ".1";
    add_link(w, i, "eth10", address);
    nccl_takes(w, i, {pick("eth1", fast(i)), pick("eth10", address)});
  }
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},

    {"the name is not there", [](World& w) { nothing_on_node2(w, "ib0"); }, {nothing("ib0", "")}},
    {"a blank before it",
     [](World& w) { nothing_on_node2(w, " eth1"); },
     {nothing(" eth1", ", in which blanks count", {"*: NCCL_SOCKET_IFNAME=eth1"})}},
    {"quotes",
     [](World& w) { nothing_on_node2(w, "\"eth1\""); },
     {nothing("\"eth1\"", ", in which quotes count", {"*: NCCL_SOCKET_IFNAME=eth1"})}},
    {"quotes around the name of no link",
     [](World& w) { nothing_on_node2(w, "\"ib7\""); },
     {nothing("\"ib7\"", ", in which quotes count")}},
    {"a pattern",
     [](World& w) { nothing_on_node2(w, "eth*"); },
     {nothing("eth*", ", which knows commas and no patterns")}},
    {"marks in the middle",
     [](World& w) { nothing_on_node2(w, "=^eth9"); },
     {nothing("=^eth9", ", in which ^ and = count at the beginning only")}},
    {"an address",
     [](World& w) { nothing_on_node2(w, "10.20.0.12"); },
     {nothing("10.20.0.12", ", which takes names and no addresses")}},
    {"nothing is set, and nothing is up",
     [](World& w) {
       unset_them(w);
       nccl_takes(w, 2, {});
     },
     {fault("net-nccl-ifname-no-match",
            "without NCCL_SOCKET_IFNAME NCCL finds no interface on node2",
            {"node2"},
            {row(2, "NCCL_SOCKET_IFNAME not set: no socket interface found", "ip -br addr")},
            {"*: (manual)"})}},
    {"no interface on a node alone",
     [](World& w) {
       unset_them(w);
       nccl_takes(w, 2, {});
       look_at_only(w, 2);
     },
     {fault("net-nccl-ifname-no-match",
            "without NCCL_SOCKET_IFNAME NCCL finds no interface on node2",
            {"node2"},
            {row(2, "NCCL_SOCKET_IFNAME not set: no socket interface found", "ip -br addr")},
            {"*: (manual)"})}},
    {"near miss: docker0 on a node alone",
     [](World& w) {
       docker0_everywhere(w);
       take_docker0(w);
       look_at_only(w, 1);
     }},
    {"a family that no link has",
     [](World& w) {
       unset_them(w);
       w.set("NCCL_SOCKET_FAMILY", "AF_INET6");
       nccl_takes(w, 2, {});
     },
     {fault("net-nccl-ifname-no-match",
            "with NCCL_SOCKET_FAMILY=AF_INET6 (--env) NCCL finds no interface on node2",
            {"node2"},
            {row(2, "NCCL_SOCKET_IFNAME not set: no socket interface found", "ip -br addr")},
            {"*: NCCL_SOCKET_FAMILY unset"})}},
    {"NCCL_COMM_ID of another machine",
     [](World& w) {
       w.set("NCCL_COMM_ID", "10.99.0.1:5000");
       nccl_takes(w, 2, {});
       World::change(w.prediction(2).nccl, [](NcclChoice& nccl) {
         nccl.bootstrap_error = "No usable listening interface found";
       });
     },
     {fault("net-nccl-ifname-no-match",
            "NCCL cannot start on node2 with NCCL_COMM_ID=10.99.0.1:5000 (--env): No usable "
            "listening interface found",
            {"node2"},
            {"node2 nccl.interface: NCCL_COMM_ID=10.99.0.1:5000 (--env): No usable listening "
             "interface found, not unset, or HOST:PORT of rank 0's node; printenv NCCL_COMM_ID"},
            {"*: NCCL_COMM_ID unset"})}},

    {"an exclude list that forgets lo, in a file",
     [](World& w) {
       recommend(w, "NCCL_SOCKET_IFNAME", "=eth1");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.prediction(i).settings["NCCL_SOCKET_IFNAME"] = {
             "^docker0", {.source = Source::system_config, .where = "/etc/nccl.conf:3"}};
         nccl_takes(w, i, {pick("lo", "127.0.0.1"), pick("eth0", mgmt(i))});
       }
     },
     {fault(
         "net-nccl-ifname-loopback",
         "with NCCL_SOCKET_IFNAME=^docker0 (/etc/nccl.conf:3) NCCL takes loopback on node0, node1, "
         "node2, node3",
         {"node0", "node1", "node2", "node3"},
         {row(0, "127.0.0.1 of lo", "ip -br addr"), row(1, "127.0.0.1 of lo", "ip -br addr"),
          row(2, "127.0.0.1 of lo", "ip -br addr"), row(3, "127.0.0.1 of lo", "ip -br addr"),
          set_to(
              0, "^docker0", "/etc/nccl.conf:3", "grep -n NCCL_SOCKET_IFNAME /etc/nccl.conf")})}},
    {"on one node: another fault than the others have",
     [](World& w) {
       name_them(w, "=eth1");
       nccl_takes(w, 1, {pick("lo", "127.0.0.1")});
       nccl_takes(w, 2, {});
     },
     {fault("net-nccl-ifname-no-match",
            "finds no interface on node2",
            {"node2"},
            {row(2, "NCCL_SOCKET_IFNAME==eth1 (--env): no socket interface found", "ip -br addr"),
             set_to(2, "=eth1")}),
      fault("net-nccl-ifname-loopback",
            "takes loopback on node1",
            {"node1"},
            {row(1, "127.0.0.1 of lo", "ip -br addr"), set_to(1, "=eth1")})}},
    {"near miss: one node alone",
     [](World& w) {
       nccl_takes(w, 0, {pick("lo", "127.0.0.1")});
       w.cluster.nodes.resize(1);
     }},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       name_them(w, "=eth1");
       w.cluster.job.nccl = Use::maybe;
       nccl_takes(w, 1, {pick("lo", "127.0.0.1")});
     },
     {as(notice,
         proved,
         fault("net-nccl-ifname-loopback",
               "cannot connect to it; a blocker if the job uses NCCL (say --backend nccl)",
               {"node1"},
               {row(1, "127.0.0.1 of lo", "ip -br addr"), set_to(1, "=eth1")}))}},
    {"an alternative name of a link",
     [](World& w) {
       nothing_on_node2(w, "=enp1s0");
       w.change_link(2, "eth1", [](Link& link) { link.altnames = {"enp1s0"}; });
     },
     {nothing("=enp1s0", ", which is an alternative name of eth1 that NCCL does not know,")}},
    {"near miss: a job without NCCL",
     [](World& w) {
       use_gloo(w);
       nccl_takes(w, 1, {pick("lo", "127.0.0.1")});
     }},

    {"docker0, the same address everywhere",
     take_docker0,
     {fault(
         "net-nccl-interface-unreachable",
         "with NCCL_SOCKET_IFNAME=docker0 (--env) NCCL takes docker0 on node0, node1, node2, node3",
         {"node0", "node1", "node2", "node3"},
         {row(1,
              "node0 announces 172.17.0.1 of docker0: which node1 has too, so that it reaches "
              "itself",
              "ip -br addr show dev docker0"),
          row(0,
              "node1 announces 172.17.0.1 of docker0: which node0 has too, so that it reaches "
              "itself",
              "ip -br addr show dev docker0"),
          row(0,
              "node2 announces 172.17.0.1 of docker0: which node0 has too, so that it reaches "
              "itself",
              "ip -br addr show dev docker0"),
          row(0,
              "node3 announces 172.17.0.1 of docker0: which node0 has too, so that it reaches "
              "itself",
              "ip -br addr show dev docker0"),
          set_to(0, "docker0")})}},
    {"near miss: docker0 is there and not chosen", docker0_everywhere},
    {"a VPN that its peers are not in",
     [](World& w) {
       unset_them(w);
       recommend(w, "NCCL_SOCKET_IFNAME", "=eth1");
       add_link(w, 2, "tun0", "10.8.0.6", LinkKind::tun);
       nccl_takes(w, 2, {pick("tun0", "10.8.0.6")});
       for (const std::size_t i : {0U, 1U, 3U}) dialled(w, i, 2, "10.8.0.6", Outcome::timed_out);
     },
     {fault("net-nccl-interface-unreachable",
            "without NCCL_SOCKET_IFNAME NCCL takes tun0 on node2",
            {"node2"},
            {row(0,
                 "node2 announces 10.8.0.6 of tun0: a tunnel, which node0 does not reach (timed "
                 "out)",
                 "nc -vz -w 3 10.8.0.6 40834")})}},
    {"link-local addresses of containers' links: one prefix, and no network in common",
     [](World& w) {
       unset_them(w);
       recommend(w, "NCCL_SOCKET_IFNAME", "=eth1");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         const std::string address = "fe80::" + std::to_string(i + 1);
         add_link(w, i, "cont0", address + "%cont0");
         nccl_takes(w, i, {pick("cont0", address + "%cont0")});
         for (const std::size_t from : {0U, 1U, 2U, 3U}) {
           if (from != i) dialled(w, from, i, address, Outcome::host_unreachable);
         }
       }
     },
     {fault("net-nccl-interface-unreachable",
            "without NCCL_SOCKET_IFNAME NCCL takes cont0 on node0, node1, node2, node3",
            {"node0", "node1", "node2", "node3"},
            {link_local(1, 0), link_local(0, 1), link_local(0, 2), link_local(0, 3)})}},
    {"data over a second link that is of no use; the bootstrap's is",
     [](World& w) {
       name_them(w, "eth");
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth1", fast(2)), pick("eth2", "192.168.9.2")});
       dialled(w, 0, 2, "192.168.9.2", Outcome::net_unreachable);
     },
     {fault("net-nccl-interface-unreachable",
            "NCCL takes eth2 on node2",
            {"node2"},
            {row(0,
                 "node2 announces 192.168.9.2 of eth2: another subnet, which node0 does not reach "
                 "(network unreachable)",
                 "nc -vz -w 3 192.168.9.2 40834"),
             set_to(2, "eth")})}},
    {"near miss: RDMA carries the data, the bootstrap is fine",
     [](World& w) {
       name_them(w, "eth");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.prediction(i).hcas = NcclHcas{.used = {{.device = "mlx5_0"}}};
       }
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth1", fast(2)), pick("eth2", "192.168.9.2")});
       dialled(w, 0, 2, "192.168.9.2", Outcome::net_unreachable);
     }},
    {"NCCL_IB_DISABLE=1 brings the sockets back",
     [](World& w) {
       name_them(w, "eth");
       w.set("NCCL_IB_DISABLE", "1");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.node(i).devices = Devices{.gpus = {"/dev/nvidia0"}, .rdma = {"mlx5_0"}};
       }
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth1", fast(2)), pick("eth2", "192.168.9.2")});
       dialled(w, 0, 2, "192.168.9.2", Outcome::net_unreachable);
     },
     {fault("net-nccl-interface-unreachable",
            "NCCL takes eth2 on node2",
            {"node2"},
            {row(0,
                 "node2 announces 192.168.9.2 of eth2: another subnet, which node0 does not reach "
                 "(network unreachable)",
                 "nc -vz -w 3 192.168.9.2 40834"),
             set_to(2, "eth")})}},
    {"near miss: a VPN, a bridge, a pod's link that all reach",
     [](World& w) {
       add_link(w, 2, "tun0", "10.8.0.6", LinkKind::tun);
       nccl_takes(w, 2, {pick("tun0", "10.8.0.6")});
       for (const std::size_t i : {0U, 1U, 3U}) dialled(w, i, 2, "10.8.0.6", Outcome::ok);
     }},
    {"near miss: a filter in the common subnet is no fault of the choice",
     [](World& w) {
       name_them(w, "eth0");
       nccl_takes(w, 2, {pick("eth1", fast(2))});
       for (const std::size_t i : {0U, 1U, 3U}) {
         w.pair(i, 2).dials.clear();
         dialled(w, i, 2, fast(2), Outcome::timed_out);
       }
     }},
    {"near miss: nor is one in another subnet, where the packets arrive",
     [](World& w) {
       name_them(w, "eth2");
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth2", "192.168.9.2")});
       dialled(w, 0, 2, "192.168.9.2", Outcome::timed_out).syn_arrived = true;
     }},
    {"near miss: racks with subnets of their own, and nothing better to choose",
     [](World& w) {
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth2", "192.168.9.2")});
       dialled(w, 0, 2, "192.168.9.2", Outcome::timed_out);
     }},
    {"near miss: nobody tried it",
     [](World& w) {
       name_them(w, "eth2");
       add_link(w, 2, "eth2", "192.168.9.2");
       nccl_takes(w, 2, {pick("eth2", "192.168.9.2")});
     }},

    {"some versions only, and the job's is not known",
     [](World& w) {
       name_them(w, "=eth1");
       w.prediction(1).nccl_version_known = false;
       w.prediction(1).nccl_others = {
           {.rules = NcclRules::to_2_27, .bootstrap = pick("lo", "127.0.0.1")}};
     },
     {as(notice,
         possible,
         fault("net-nccl-ifname-loopback",
               "takes loopback on node1: ranks on other nodes cannot connect to it; true of some "
               "NCCL "
               "versions",
               {"node1"},
               {row(1, "127.0.0.1 of lo", "ip -br addr"), set_to(1, "=eth1")}))}},
    {"all versions, each in its way",
     [](World& w) {
       name_them(w, "=eth1");
       w.prediction(1).nccl_version_known = false;
       nccl_takes(w, 1, {});
       w.prediction(1).nccl_others = {
           {.rules = NcclRules::to_2_27, .bootstrap = pick("lo", "127.0.0.1")}};
     },
     {fault("net-nccl-ifname-no-match",
            "finds no interface on node1",
            {"node1"},
            {row(1, "NCCL_SOCKET_IFNAME==eth1 (--env): no socket interface found", "ip -br addr"),
             set_to(1, "=eth1")})}},

    {"one too many by prefix",
     eth10_too,
     {{.code = "net-nccl-ifname-prefix",
       .severity = degraded,
       .certainty = likely,
       .symptom = Symptom::hang,
       .says = "NCCL_SOCKET_IFNAME=eth1 (--env) takes eth10 as well",
       .blamed = {"node0", "node1"},
       .evidence = {"node0 nccl.data: 192.168.70.1 of eth10, taken by its prefix, not only "
                    "interfaces that the other nodes reach; ip -br addr show dev eth10",
                    "node1 nccl.data: 192.168.71.1 of eth10, taken by its prefix, not only "
                    "interfaces that the other nodes reach; ip -br addr show dev eth10"},
       .fixes = {kFix}}}},
    {"near miss: the one too many serves all nodes",
     [](World& w) {
       name_them(w, "eth1");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         const std::string address = "192.168.70." + std::to_string(i + 1);
         add_link(w, i, "eth10", address);
         nccl_takes(w, i, {pick("eth1", fast(i)), pick("eth10", address)});
       }
     }},
    {"near miss: a family of interfaces by its common beginning",
     [](World& w) {
       eth10_too(w);
       w.set("NCCL_SOCKET_IFNAME", "eth");
     }},
    {"near miss: both are named",
     [](World& w) {
       eth10_too(w);
       w.set("NCCL_SOCKET_IFNAME", "eth1,eth10:1");
     }},

    {"a prediction that could not be made is a gap",
     [](World& w) { w.prediction(3).nccl = Unknown{.kind = Why::timed_out, .text = "links: 5 s"}; },
     {},
     {"node3 nccl.interface"}},
};

TEST_CASE("net/nccl_interface") {
  run_cases("net/nccl_interface", cases);
}

}  // namespace
}  // namespace distdoctor::testing
