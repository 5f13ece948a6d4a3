#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 7'200;  // s since boot

const std::string kUp = "mlx5_core 0000:2a:00.0 ibp42s0: Link up";
const std::string kDown = "mlx5_core 0000:2a:00.0 ibp42s0: Link down";

// Two hours after the start; every node's log is read, and node1's has these lines.
void log_of(World& w, const std::vector<KernelLine>& lines) {
  give_infiniband(w);
  change_hca(w, 1, "mlx5_1", [](RdmaDevice& device, RdmaPort&) { device.pci = "0000:2a:00.0"; });
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    w.node(i).uptime_s = kNow;
    w.node(i).kernel_log = KernelLog{.oldest_s = 0, .now_s = kNow};
  }
  w.node(1).kernel_log = KernelLog{.lines = lines, .oldest_s = 0, .now_s = kNow};
}

// Half an hour ago it had been lost once; since then so many times more.
void lost_since(World& w, std::int64_t times, double ago_s = 1'800) {
  w.node(1).earlier = EarlierCounters{.ago_s = ago_s, .link_downed = {{"mlx5_1/1", 1}}};
  change_hca(w, 1, "mlx5_1",
             [&](RdmaDevice&, RdmaPort& port) { port.counters["link_downed"] = 1 + times; });
}

// RoCE; rdma1 of node1 lost its carrier.
void carrier_lost_since(World& w, std::int64_t times, const std::vector<KernelLine>& lines) {
  log_of(w, lines);
  give_roce(w);
  change_hca(w, 1, "mlx5_1", [](RdmaDevice& device, RdmaPort& port) {
    device.pci = "0000:2a:00.0";
    port.counters.clear();
  });
  Link link = make_link("rdma1", 21, 4200, "192.168.1.11");
  link.rdma_device = "mlx5_1";
  link.carrier_downs = 4 + times;
  World::change(w.node(1).links, [&](std::vector<Link>& links) { links.push_back(link); });
  w.node(1).earlier = EarlierCounters{.ago_s = 1'800, .carrier_downs = {{"rdma1", 4}}};
}

const std::string kLogged = "node1 kernel_log: " + kDown +
                            ", not a link that stays up; dmesg -T | grep -iE 'mlx5|link (is "
                            ")?(up|down)'";
std::string counted(const std::string& times, const std::string& ago = "30 min ago") {
  return "node1 rdma.mlx5_1:1.link_downed: " + times + " more than " + ago +
         ", not no more; cat /sys/class/infiniband/mlx5_1/ports/1/counters/link_downed";
}
std::string carriers(const std::string& times) {
  return "node1 net.rdma1.carrier_downs: " + times +
         " more than 30 min ago, not no more; cat /sys/class/net/rdma1/carrier_down_count";
}

Verdict flap(Severity severity, const std::string& says, const std::vector<std::string>& evidence) {
  return {.code = "rdma-link-flap",
          .severity = severity,
          .certainty = severity == notice ? possible : likely,
          .symptom = Symptom::hang,
          .says = "the link of mlx5_1 on node1 went down " + says,
          .blamed = {"node1"},
          .evidence = evidence,
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> logs = {
    {"healthy: no RDMA", [](World&) {}},
    {"healthy: a silent log", [](World& w) { log_of(w, {}); }},
    {"once",
     [](World& w) { log_of(w, {{20, kUp}, {6600, kDown}, {6660, kUp}}); },
     {flap(notice, "once within the last hour, 10 min ago at last", {kLogged})}},
    {"again and again",
     [](World& w) {
       log_of(w,
              {{20, kUp}, {6000, kDown}, {6030, kUp}, {6300, kDown}, {6330, kUp}, {6600, kDown}});
     },
     {flap(degraded, "3 times within the last hour, 10 min ago at last", {kLogged})}},
    {"a storm: never up for long",
     [](World& w) {
       std::vector<KernelLine> lines = {{20, kUp}};
       for (int i = 0; i < 10; ++i) {
         lines.push_back({6500 + 10.0 * i, kDown});
         lines.push_back({6505 + 10.0 * i, kUp});
       }
       lines.push_back({6600, kDown});
       log_of(w, lines);
     },
     {flap(degraded, "11 times within the last hour, 10 min ago at last", {kLogged})}},
    {"near miss: the first minutes after the start",
     [](World& w) {
       log_of(w, {{20, kUp}, {60, kDown}, {61, kUp}, {120, kDown}, {121, kUp}, {240, kDown}});
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         World::change(w.node(i).kernel_log, [](KernelLog& log) { log.now_s = 400; });
       }
     }},
    {"near miss: a driver that was loaded again: up for no more than seconds",
     [](World& w) {
       log_of(w, {{6000, kUp}, {6002, kDown}, {6004, kUp}, {6009, kDown}, {6010, kUp}});
     }},
    {"near miss: it was never up, as the log has it",
     [](World& w) { log_of(w, {{6000, kDown}, {6300, kDown}, {6600, kDown}}); }},
    {"near miss: a log without times",
     [](World& w) { log_of(w, {{0, kUp}, {0, kDown}, {0, kUp}, {0, kDown}}); }},
    {"near miss: before the last hour",
     [](World& w) { log_of(w, {{20, kUp}, {3000, kDown}, {3010, kUp}}); }},
    {"near miss: up", [](World& w) { log_of(w, {{20, kUp}, {6600, kUp}}); }},
    {"near miss: a card that is no RDMA device of the job",
     [](World& w) {
       log_of(w, {{20, "mlx5_core 0000:99:00.0 eth7: Link up"},
                  {6600, "mlx5_core 0000:99:00.0 eth7: Link down"}});
     }},
    {"near miss: NCCL_IB_HCA leaves it out",
     [](World& w) {
       log_of(w, {{20, kUp}, {6600, kDown}});
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"near miss: Gloo",
     [](World& w) {
       log_of(w, {{20, kUp}, {6600, kDown}});
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"near miss: NCCL uses none",
     [](World& w) {
       log_of(w, {{6600, kDown}});
       set_and_predict(w, "NCCL_IB_DISABLE", "1");
     },
     {},
     {},
     "NCCL uses no RDMA port"},
    {"a log that may not be read is a gap",
     [](World& w) {
       log_of(w, {});
       w.node(1).kernel_log = Unknown{.kind = Why::denied, .text = "syslog: EPERM"};
     },
     {},
     {"node1 kernel_log"}},
};

const std::vector<CheckCase> counters = {
    {"healthy: counters that stand still",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 0);
     }},
    {"counted once",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 1);
     },
     {flap(notice, "once since the earlier look 30 min ago", {counted("1")})}},
    {"counted again and again, with the last time from the log",
     [](World& w) {
       log_of(w, {{20, kUp}, {6600, kDown}, {6601, kUp}});
       lost_since(w, 4);
     },
     {flap(degraded,
           "4 times since the earlier look 30 min ago, 10 min ago at last",
           {counted("4"), kLogged})}},
    {"counted where the log may not be read",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 4);
       w.node(1).kernel_log = Unknown{.kind = Why::denied, .text = "syslog: EPERM"};
     },
     {flap(degraded, "4 times since the earlier look 30 min ago", {counted("4")})},
     {"node1 kernel_log"}},
    {"near miss of a fault: seldom, over weeks",
     [](World& w) {
       log_of(w, {});
       w.node(1).uptime_s = 30 * 86'400.0;
       lost_since(w, 4, 7 * 86'400.0);
     },
     {flap(notice, "4 times since the earlier look 7 days ago", {counted("4", "7 days ago")})}},
    {"near miss: the earlier look fell into the first minutes after the start",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 4, kNow - 60);
     }},
    {"near miss: the counter began anew",
     [](World& w) {
       log_of(w, {});
       lost_since(w, -1);
     }},
    {"near miss: what congestion counts",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 0);
       change_hca(w, 1, "mlx5_1", [](RdmaDevice&, RdmaPort& port) {
         port.counters["out_of_sequence"] = 100'000;
         port.counters["port_xmit_discards"] = 100'000;
         port.counters["symbol_error"] = 12;
       });
     }},
    {"near miss: a port that was not there then",
     [](World& w) {
       log_of(w, {});
       lost_since(w, 4);
       w.node(1).earlier = EarlierCounters{.ago_s = 1'800, .link_downed = {{"mlx5_9/1", 1}}};
     }},
    {"RoCE: the carrier of its interface, and no log",
     [](World& w) {
       carrier_lost_since(w, 3, {});
       w.node(1).kernel_log = Unknown{.kind = Why::denied, .text = "syslog: EPERM"};
     },
     {flap(notice, "3 times since the earlier look 30 min ago", {carriers("3")})},
     {"node1 kernel_log"}},
    {"RoCE: the log tells of one, and the rest may be another MTU",
     [](World& w) { carrier_lost_since(w, 3, {{20, kUp}, {6600, kDown}, {6601, kUp}}); },
     {flap(notice,
           "3 times since the earlier look 30 min ago, 10 min ago at last",
           {carriers("3"), kLogged})}},
    {"RoCE: the log agrees",
     [](World& w) {
       carrier_lost_since(w, 3,
                          {{20, kUp}, {6000, kDown}, {6010, kUp}, {6600, kDown}, {6601, kUp}});
     },
     {flap(degraded,
           "3 times since the earlier look 30 min ago, 10 min ago at last",
           {carriers("3"), kLogged})}},
    {"near miss: a driver that tells of losses told of none: the MTU was changed",
     [](World& w) { carrier_lost_since(w, 3, {{20, kUp}}); }},
    {"no earlier look of this boot is a gap",
     [](World& w) {
       log_of(w, {});
       w.node(1).earlier = Unknown{.kind = Why::not_collected, .text = "started anew"};
     },
     {},
     {"node1 earlier"}},
};

TEST_CASE("rdma/link_flap: the kernel's log") {
  run_cases("rdma/link_flap", logs);
}
TEST_CASE("rdma/link_flap: since an earlier look") {
  run_cases("rdma/link_flap", counters);
}

}  // namespace
}  // namespace distdoctor::testing
