#include "checks/net/choices.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

using Lines = std::vector<std::string>;

Verdict loopback(Severity severity,
                 const char* says,
                 const Lines& blamed,
                 const Lines& evidence,
                 const std::string& fix = "*: GLOO_SOCKET_IFNAME=eth0") {
  Verdict made{.code = "net-hostname-loopback",
               .severity = severity,
               .certainty = proved,
               .symptom = Symptom::hang,
               .says = says,
               .blamed = blamed,
               .fixes = {fix}};
  for (const std::string& seen : evidence) {
    made.evidence.push_back(seen.substr(0, 5) + " hostname: " + seen +
                            ", not an address that the other nodes reach; hostname; getent ahosts "
                            "\"$(hostname)\"");
  }
  return made;
}

void debian(World& w, const std::vector<std::size_t>& nodes) {
  use_gloo(w);
  recommend(w, "GLOO_SOCKET_IFNAME", "eth0");
  for (const std::size_t i : nodes) gloo_takes(w, i, pick("lo", "127.0.1.1"));
}
// The other nodes' addresses are larger than 127.
void in_192_168(World& w) {
  for (const std::size_t i : {0U, 2U, 3U}) {
    gloo_takes(w, i, pick("eth0", "192.168.0.1" + std::to_string(i)));
  }
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { use_gloo(w); }},
    {"two nodes: each would have to connect to the other's loopback",
     [](World& w) { debian(w, {0, 1}); },
     {loopback(blocker,
               "the own name of node0, node1 leads Gloo to loopback: other nodes cannot connect",
               {"node0", "node1"},
               {"node0 leads to 127.0.1.1; node1 (127.0.1.1) would have to connect to that",
                "node1 leads to 127.0.1.1; node0 (127.0.1.1) would have to connect to that"})}},
    {"one node among 10.x addresses: works by luck",
     [](World& w) { debian(w, {1}); },
     {loopback(notice,
               "which works by luck: its address is the largest, and the larger one connects",
               {"node1"},
               {"node1 leads to 127.0.1.1, the larger address of each pair: it connects and is not "
                "connected to"})}},
    {"one node among 192.168.x addresses",
     [](World& w) {
       debian(w, {1});
       in_192_168(w);
     },
     {loopback(blocker,
               "the own name of node1",
               {"node1"},
               {"node1 leads to 127.0.1.1; node0 (192.168.0.10) would have to connect to that"})}},
    {"::1 is smaller than any address",
     [](World& w) {
       debian(w, {});
       gloo_takes(w, 1, pick("lo", "::1"));
       for (const std::size_t i : {0U, 2U, 3U}) gloo_takes(w, i, pick("eth0", "fd00:10::1"));
     },
     {loopback(blocker,
               "the own name of node1",
               {"node1"},
               {"node1 leads to ::1; node0 (fd00:10::1) would have to connect to that"})}},
    {"a name that does not resolve, on two nodes, and nothing proved to help",
     [](World& w) {
       use_gloo(w);
       for (const std::size_t i : {2U, 3U}) {
         gloo_takes(w, i, pick("lo", "127.0.0.1"), GlooReason::fallback);
       }
     },
     {loopback(blocker,
               "the own name of node2, node3",
               {"node2", "node3"},
               {"node2 leads to no address of its own, Gloo falls back to 127.0.0.1; node3 "
                "(127.0.0.1) would have "
                "to connect to that",
                "node3 leads to no address of its own, Gloo falls back to 127.0.0.1; node2 "
                "(127.0.0.1) would have "
                "to connect to that"},
               "*: (manual)")}},
    {"fatal, for a job that may not use Gloo: a notice that says so",
     [](World& w) {
       debian(w, {1});
       in_192_168(w);
       w.cluster.job.gloo = Use::maybe;
     },
     {loopback(notice,
               "other nodes cannot connect to it",
               {"node1"},
               {"node1 leads to 127.0.1.1; node0 (192.168.0.10) would have to connect to that"})}},
    {"near miss: a job without Gloo",
     [](World& w) {
       debian(w, {0, 1});
       w.cluster.job.gloo = Use::no;
     }},
    {"near miss: lo by GLOO_SOCKET_IFNAME is another fault",
     [](World& w) {
       use_gloo(w);
       gloo_takes(w, 1, pick("lo", "127.0.0.1"), GlooReason::variable);
     }},
    {"near miss: one node alone",
     [](World& w) {
       debian(w, {0});
       w.cluster.nodes.resize(1);
     }},
    {"an unseen peer is a gap; with one peer left nothing can be said",
     [](World& w) {
       debian(w, {0});
       w.cluster.nodes.resize(2);
       w.prediction(1).gloo = Unknown{.kind = Why::timed_out, .text = "getent: 2 s"};
     },
     {},
     {"node1 gloo.interface"}},
};

TEST_CASE("net/hostname_loopback") {
  run_cases("net/hostname_loopback", cases);
}

}  // namespace
}  // namespace distdoctor::testing
