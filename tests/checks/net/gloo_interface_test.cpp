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

const std::string kFix = "*: GLOO_SOCKET_IFNAME=eth0";

Verdict fault(const char* code,
              Symptom symptom,
              const std::string& says,
              const Lines& blamed,
              const Lines& evidence,
              const Lines& fixes = {kFix}) {
  return {.code = code,
          .severity = blocker,
          .certainty = proved,
          .symptom = symptom,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}
std::string row(int node, const std::string& seen, const std::string& command) {
  return "node" + std::to_string(node) + " gloo.interface: " + seen +
         ", not an address that the other nodes reach; " + command;
}
std::string set_to(int node, const std::string& value) {
  return "node" + std::to_string(node) + " GLOO_SOCKET_IFNAME: GLOO_SOCKET_IFNAME=" + value +
         " (--env), not names of interfaces that all nodes reach; printenv GLOO_SOCKET_IFNAME";
}

void named(World& w, const std::string& value) {
  use_gloo(w);
  w.set("GLOO_SOCKET_IFNAME", value);
  recommend(w, "GLOO_SOCKET_IFNAME", "eth0");
}
void not_there(World& w) {
  named(w, "ib0");
  w.prediction(2).gloo =
      GlooChoice{.error = "Unable to find address for: ib0", .reason = GlooReason::variable};
}
Verdict no_match() {
  return fault("net-gloo-ifname-no-match", Symptom::crash,
               "with GLOO_SOCKET_IFNAME=ib0 (--env) Gloo finds no address on node2", {"node2"},
               {row(2, "Unable to find address for: ib0", "ip -br addr"), set_to(2, "ib0")});
}
void docker0(World& w) {
  named(w, "docker0");
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    add_link(w, i, "docker0", "172.17.0.1", LinkKind::bridge);
    if (i < 2) gloo_takes(w, i, pick("docker0", "172.17.0.1"), GlooReason::variable);
  }
}

const std::vector<CheckCase> cases = {
    {"no address on a node alone",
     [](World& w) {
       not_there(w);
       look_at_only(w, 2);
     },
     {no_match()}},
    {"near miss: docker0 on a node alone",
     [](World& w) {
       docker0(w);
       look_at_only(w, 1);
     }},
    {"healthy", [](World& w) { use_gloo(w); }},
    {"the name is not there", not_there, {no_match()}},
    {"for a job that may not use Gloo: a notice",
     [](World& w) {
       not_there(w);
       w.cluster.job.gloo = Use::maybe;
     },
     {[] {
       Verdict verdict = no_match();
       verdict.severity = notice;
       return verdict;
     }()}},
    {"near miss: a job without Gloo",
     [](World& w) {
       not_there(w);
       w.cluster.job.gloo = Use::no;
     }},
    {"near miss: one node alone",
     [](World& w) {
       named(w, "lo");
       gloo_takes(w, 0, pick("lo", "127.0.0.1"), GlooReason::variable);
       w.cluster.nodes.resize(1);
     }},
    {"lo by name",
     [](World& w) {
       named(w, "lo");
       gloo_takes(w, 1, pick("lo", "127.0.0.1"), GlooReason::variable);
     },
     {fault("net-gloo-interface-unreachable",
            Symptom::hang,
            "with GLOO_SOCKET_IFNAME=lo (--env) Gloo takes lo on node1",
            {"node1"},
            {row(1, "127.0.0.1 of lo, loopback", "ip -br addr show dev lo"), set_to(1, "lo")})}},
    {"near miss: loopback by the hostname is another fault",
     [](World& w) {
       use_gloo(w);
       gloo_takes(w, 1, pick("lo", "127.0.1.1"));
       gloo_takes(w, 2, pick("lo", "127.0.0.1"), GlooReason::fallback);
     }},
    {"docker0, the same address everywhere",
     docker0,
     {fault("net-gloo-interface-unreachable",
            Symptom::hang,
            "with GLOO_SOCKET_IFNAME=docker0 (--env) Gloo takes docker0 on node0, node1",
            {"node0", "node1"},
            {row(1,
                 "node0 announces 172.17.0.1 of docker0: which node1 has too, so that it reaches "
                 "itself",
                 "ip -br addr show dev docker0"),
             row(0,
                 "node1 announces 172.17.0.1 of docker0: which node0 has too, so that it reaches "
                 "itself",
                 "ip -br addr show dev docker0"),
             set_to(0, "docker0")})}},
    {"docker0 without containers: Gloo takes it without a carrier",
     [](World& w) {
       docker0(w);
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         w.change_link(i, "docker0", [](Link& link) { link.running = link.carrier = false; });
         if (i > 0) gloo_takes(w, i, pick("eth0", mgmt(i)), GlooReason::variable);
       }
     },
     {fault("net-gloo-interface-unreachable",
            Symptom::hang,
            "with GLOO_SOCKET_IFNAME=docker0 (--env) Gloo takes docker0 on node0",
            {"node0"},
            {row(1,
                 "node0 announces 172.17.0.1 of docker0: which node1 has too, so that it reaches "
                 "itself",
                 "ip -br addr show dev docker0"),
             set_to(0, "docker0")})}},
    {"near miss: the peer's own link into that subnet is down: another fault",
     [](World& w) {
       named(w, "eth1");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         gloo_takes(w, i, pick("eth1", fast(i)), GlooReason::variable);
       }
       w.change_link(1, "eth1", [](Link& link) { link.up = link.running = link.carrier = false; });
       dialled(w, 1, 0, fast(0), Outcome::host_unreachable, Purpose::gloo);
     }},
    {"the hostname leads into a VPN",
     [](World& w) {
       use_gloo(w);
       add_link(w, 3, "wg0", "10.8.0.9", LinkKind::wireguard);
       gloo_takes(w, 3, pick("wg0", "10.8.0.9"));
       dialled(w, 1, 3, "10.8.0.9", Outcome::host_unreachable, Purpose::gloo);
     },
     {fault(
         "net-gloo-interface-unreachable",
         Symptom::hang,
         "by its hostname node3 Gloo takes wg0 on node3",
         {"node3"},
         {row(1,
              "node3 announces 10.8.0.9 of wg0: a tunnel, which node1 does not reach (host "
              "unreachable)",
              "nc -vz -w 3 10.8.0.9 40834"),
          "node3 hostname: leads to 10.8.0.9, not an address that all nodes reach; getent ahosts "
          "\"$(hostname)\""},
         {"*: (manual)"})}},
    {"near miss: a VPN that all peers reach",
     [](World& w) {
       use_gloo(w);
       add_link(w, 3, "wg0", "10.8.0.9", LinkKind::wireguard);
       gloo_takes(w, 3, pick("wg0", "10.8.0.9"));
       for (const std::size_t i : {0U, 1U, 2U}) {
         dialled(w, i, 3, "10.8.0.9", Outcome::ok, Purpose::gloo);
       }
     }},
    {"a prediction that could not be made is a gap",
     [](World& w) {
       use_gloo(w);
       w.prediction(3).gloo = Unknown{.kind = Why::timed_out, .text = "getent: 2 s"};
     },
     {},
     {"node3 gloo.interface"}},
};

TEST_CASE("net/gloo_interface") {
  run_cases("net/gloo_interface", cases);
}

}  // namespace
}  // namespace distdoctor::testing
