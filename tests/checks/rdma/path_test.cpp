#include <distdoctor/untested.h>

#include "support/check_cases.h"
#include "support/hcas.h"

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

std::string gid_of(std::size_t node) {
  return "0000:0000:0000:0000:0000:ffff:c0a8:000" + std::string(node == 0 ? "a" : "b");
}

// mlx5_0 of node0 to that of node1, where all arrives.
RdmaPath good_path() {
  return {.from = "node0",
          .to = "node1",
          .from_device = "mlx5_0",
          .to_device = "mlx5_0",
          .roce = true,
          .from_gid_index = 3,
          .to_gid_index = 3,
          .from_gid = gid_of(0),
          .to_gid = gid_of(1),
          .messages = {{.bytes = 64, .arrived = true}, {.bytes = 1 << 20, .arrived = true}}};
}
void hardware(World& w) {
  give_roce(w);
  for (const std::size_t i : {0U, 1U}) {
    World::change(w.node(i).links, [i](std::vector<Link>& links) {
      links.push_back(make_link("rdma0", 9, 4200, "192.168.0.1" + std::to_string(i)));
    });
  }
  w.cluster.rdma_paths = {good_path()};
}
void software(World& w) {
  hardware(w);
  for (const std::size_t i : {0U, 1U}) {
    change_rdma(w, i, [](Rdma& rdma) { rdma.devices[0].driver = "rdma_rxe"; });
  }
}
RdmaPath& path(World& w) {
  return w.cluster.rdma_paths[0];
}
void lose(World& w) {
  path(w).messages = {{.bytes = 64,
                       .arrived = false,
                       .status = "transport retry counter exceeded",
                       .status_code = 12}};
}
void fail(World& w, std::string error, int code, const std::string& node) {
  path(w).messages.clear();
  path(w).error = std::move(error);
  path(w).error_code = code;
  path(w).failed_at = node;
}
void drop(World& w, std::size_t node, const std::string& protocol) {
  w.node(node).firewall = Firewall{
      .chains = {{.family = "inet",
                  .table = "filter",
                  .name = "input",
                  .hook = "input",
                  .rules = {{.conditions = {{FilterField::protocol, false, {protocol}},
                                            {FilterField::destination_port, false, {"4791"}}},
                             .verdict = FilterVerdict::drop,
                             .packets = 12,
                             .number = 7,
                             .text = protocol + " dport 4791 drop"}}}}};
}

const std::string kTry =
    "; ibv_rc_pingpong -d mlx5_0 -i 1 -g 3 node1   # on node1 first: ibv_rc_pingpong -d mlx5_0 -i "
    "1 "
    "-g 3";
const std::string kWanted = ", not RC messages that arrive, as TCP between these nodes does";

std::string row(const std::string& node, const std::string& seen, const std::string& before = "") {
  return node + " rdma path node0/mlx5_0:1 -> node1/mlx5_0:1: " + seen + kWanted +
         (before.empty() ? kTry : "; " + before + kTry);
}
// What is wrong between the two; the evidence is given whole.
Verdict found(const std::string& code,
              Symptom symptom,
              const std::string& says,
              const std::vector<std::string>& evidence,
              const std::string& fix) {
  return {.code = code,
          .severity = blocker,
          .certainty = proved,
          .symptom = symptom,
          .says = says,
          .blamed = {"node0", "node1"},
          .evidence = evidence,
          .fixes = {fix}};
}
const std::string kRetries = "a message of 64 bytes: transport retry counter exceeded (12)";
// As one try alone tells it.
Verdict once(Verdict verdict) {
  verdict.certainty = likely;
  return verdict;
}
Verdict lost(Severity severity, const std::string& says) {
  Verdict verdict =
      found("rdma-path-failed", Symptom::hang, says, {row("node0", kRetries)}, "*: (manual)");
  verdict.severity = severity;
  return once(verdict);
}
const std::string kLost =
    "no RDMA message passes between mlx5_0:1 of node0 and mlx5_0:1 of node1, though TCP does";

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}},
    {"healthy", hardware},
    {"healthy: hardware does not pass the packet filter",
     [](World& w) {
       hardware(w);
       drop(w, 1, "udp");
     }},
    {"healthy: software", software},
    {"nothing passes: the fabric, and never the hosts' rules",
     [](World& w) {
       hardware(w);
       drop(w, 1, "udp");
       lose(w);
     },
     {lost(blocker, kLost)}},
    {"a second try agrees: proved",
     [](World& w) {
       hardware(w);
       lose(w);
       w.cluster.rdma_paths.push_back(path(w));
     },
     {found("rdma-path-failed", Symptom::hang, kLost, {row("node0", kRetries)}, "*: (manual)")}},
    {"a second try could not be made",
     [](World& w) {
       hardware(w);
       lose(w);
       RdmaPath again = path(w);
       again.messages.clear();
       again.error = "ibv_reg_mr: ENOMEM";
       again.failed_at = "node1";
       w.cluster.rdma_paths.push_back(again);
     },
     {lost(blocker, kLost)}},
    {"a second try passes, even of what looked like a route",
     [](World& w) {
       hardware(w);
       fail(w, "ibv_modify_qp to RTR: ETIMEDOUT", ETIMEDOUT, "node1");
       w.cluster.rdma_paths.push_back(good_path());
     },
     {[] {
       Verdict verdict =
           found("rdma-path-failed", Symptom::slow, "; a second try passed",
                 {row("node1", "ibv_modify_qp to RTR: ETIMEDOUT on node1")}, "*: (manual)");
       verdict.severity = degraded;
       verdict.certainty = possible;
       return verdict;
     }()}},
    {"all rails alike: one finding",
     [](World& w) {
       hardware(w);
       lose(w);
       RdmaPath second = path(w);
       second.from_device = second.to_device = "mlx5_1";
       w.cluster.rdma_paths.push_back(second);
     },
     {lost(blocker, "1 of their other ports fare alike")}},
    {"InfiniBand has neither addresses nor UDP",
     [](World& w) {
       give_infiniband(w);
       w.cluster.rdma_paths = {good_path()};
       path(w).roce = false;
       path(w).from_gid_index = path(w).to_gid_index = -1;
       lose(w);
     },
     {once(found("rdma-path-failed",
                 Symptom::hang,
                 kLost,
                 {"node0 rdma path node0/mlx5_0:1 -> node1/mlx5_0:1: a message of 64 bytes: "
                  "transport retry counter exceeded (12)" +
                  kWanted +
                  "; ibv_rc_pingpong -d mlx5_0 -i 1 node1   # on node1 first: ibv_rc_pingpong -d "
                  "mlx5_0 -i 1"},
                 "*: (manual)"))}},
    {"software RDMA: the rule that drops it",
     [](World& w) {
       software(w);
       drop(w, 1, "udp");
       lose(w);
     },
     {found("rdma-path-filtered",
            Symptom::hang,
            "rule \"udp dport 4791 drop\" in chain inet filter input of nft ends what comes in",
            {row("node0", kRetries),
             "node1 nft chain inet filter input, handle 7: udp dport 4791 drop (12 packets "
             "when it was read), not a rule before it that accepts UDP 4791 of the peers; "
             "nft -a list chain inet filter input"},
            "node1: nft insert rule inet filter input position 7 ip saddr 192.168.0.10 udp "
            "dport 4791 accept")}},
    {"near miss: software RDMA, and a rule for TCP",
     [](World& w) {
       software(w);
       drop(w, 1, "tcp");
       lose(w);
     },
     {lost(blocker, kLost)}},
    {"near miss: such a rule, and all arrives",
     [](World& w) {
       software(w);
       drop(w, 1, "udp");
     }},
    {"small ones arrive, large ones do not",
     [](World& w) {
       hardware(w);
       path(w).messages[1] = {
           .bytes = 1 << 20, .status = "transport retry counter exceeded", .status_code = 12};
     },
     {once(
         found("rdma-path-large-lost",
               Symptom::hang,
               "small RDMA messages arrive and large ones do not",
               {row("node0", "a message of 1048576 bytes: transport retry counter exceeded (12)")},
               "*: (manual)"))}},
    {"no completion came",
     [](World& w) {
       hardware(w);
       path(w).messages = {{.bytes = 64}};
     },
     {once(found("rdma-path-failed",
                 Symptom::hang,
                 kLost,
                 {row("node0", "a message of 64 bytes: nothing came in time")},
                 "*: (manual)"))}},
    {"no route to the other's address",
     [](World& w) {
       hardware(w);
       fail(w, "ibv_modify_qp to RTR: ENETUNREACH", ENETUNREACH, "node1");
     },
     {found("rdma-no-route",
            Symptom::crash,
            "mlx5_0:1 of node1 finds no way to 192.168.0.10, the RDMA address of mlx5_0:1 on "
            "node0",
            {row("node1",
                 "ibv_modify_qp to RTR: ENETUNREACH on node1",
                 "ip route get 192.168.0.10 oif rdma0")},
            "node1: (manual)")}},
    {"the port's interface is in another network namespace",
     [](World& w) {
       hardware(w);
       World::change(w.node(1).links, [](std::vector<Link>& links) {
         std::erase_if(links, [](const Link& link) { return link.name == "rdma0"; });
       });
       fail(w, "ibv_modify_qp to RTR: ENODEV", ENODEV, "node1");
     },
     {found("rdma-netns",
            Symptom::crash,
            "mlx5_0:1 of node1 refuses connections: rdma0, the interface of its address",
            {row("node1", "ibv_modify_qp to RTR: ENODEV on node1"),
             "node1 net.links: no rdma0, not the interface that mlx5_0:1 belongs to; ip "
             "link show dev rdma0; rdma link"},
            "node1: (manual)")}},
    {"a connection that the port refuses",
     [](World& w) {
       hardware(w);
       fail(w, "ibv_modify_qp to RTR: EINVAL", EINVAL, "node0");
     },
     {once(found("rdma-path-failed",
                 Symptom::crash,
                 "ibv_modify_qp to RTR: EINVAL on node0",
                 {row("node0", "ibv_modify_qp to RTR: EINVAL on node0")},
                 "*: (manual)"))}},
    {"an end could not be opened: others judge it, and here is a gap",
     [](World& w) {
       hardware(w);
       fail(w, "ibv_reg_mr: ENOMEM", ENOMEM, "node1");
     },
     {},
     {"node0 RDMA messages"}},
    {"no message was sent, which is not fine",
     [](World& w) {
       hardware(w);
       path(w).messages.clear();
     },
     {},
     {"node0 RDMA messages"}},
    {"of TCP nothing is known, and nothing is said",
     [](World& w) {
       hardware(w);
       lose(w);
       w.cluster.pairs.clear();
     },
     {[] {
       Verdict verdict = lost(
           blocker, "no RDMA message passes between mlx5_0:1 of node0 and mlx5_0:1 of node1: a");
       verdict.evidence = {"node0 rdma path node0/mlx5_0:1 -> node1/mlx5_0:1: " + kRetries +
                           ", not RC messages that arrive" + kTry};
       return verdict;
     }()}},
    {"near miss: Soft-iWARP is TCP, whatever a rule says of UDP 4791",
     [](World& w) {
       software(w);
       for (const std::size_t i : {0U, 1U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.devices[0].driver = "siw"; });
       }
       drop(w, 1, "udp");
       lose(w);
     },
     {lost(blocker, kLost)}},
    {"TCP does not pass either: others judge it, and here is a gap",
     [](World& w) {
       hardware(w);
       lose(w);
       for (PairFacts* pair : {&w.pair(0, 1), &w.pair(1, 0)}) {
         for (Dial& dial : pair->dials) dial.outcome = Outcome::timed_out;
       }
     },
     {},
     {"node0 RDMA messages"}},
    {"near miss: one node alone uses RDMA",
     [](World& w) {
       hardware(w);
       w.cluster.rdma_paths.clear();
       for (const std::size_t i : {1U, 2U, 3U}) {
         change_rdma(w, i, [](Rdma& rdma) { rdma.devices.clear(); });
       }
     },
     {},
     {},
     "RDMA is not used between two nodes"},
    {"a job that may do without NCCL: a notice",
     [](World& w) {
       hardware(w);
       lose(w);
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {lost(notice, kLost)}},
    {"none sent is a gap",
     [](World& w) {
       hardware(w);
       w.cluster.rdma_paths.clear();
     },
     {},
     {" RDMA messages"}},
    {"untried is a gap",
     [](World& w) {
       hardware(w);
       w.cluster.rdma_paths.clear();
       w.cluster.untried = {{.node = "node1",
                             .what = std::string(kRdmaTraffic),
                             .why = {Why::failed, "run vendor rdma: not there"}}};
     },
     {},
     {"node1 RDMA messages"}},
};

TEST_CASE("rdma/path") {
  run_cases("rdma/path", cases);
}

}  // namespace
}  // namespace distdoctor::testing
