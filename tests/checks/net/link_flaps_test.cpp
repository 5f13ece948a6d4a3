#include "checks/net/choices.h"
#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 100'000;  // s since boot

const std::string kUp = "ice 0000:01:00.1 eth1: NIC Link is up 100 Gbps Full Duplex";
const std::string kDown = "ice 0000:01:00.1 eth1: NIC Link is Down";

void log_of(World& w, const std::vector<KernelLine>& lines) {
  w.node(2).kernel_log = KernelLog{.lines = lines, .oldest_s = 0, .now_s = kNow};
}
void lost_since(World& w, std::int64_t times) {
  w.node(2).uptime_s = kNow;
  w.node(2).earlier = EarlierCounters{.ago_s = 7'200, .carrier_downs = {{"eth0", 9}, {"eth1", 2}}};
  w.change_link(2, "eth0", [](Link& link) { link.carrier_downs = 9; });
  w.change_link(2, "eth1", [times](Link& link) { link.carrier_downs = 2 + times; });
}

const std::string kLogged = "node2 kernel_log: " + kDown +
                            ", not a link that stays up; dmesg -T | grep -iE 'mlx5|link (is "
                            ")?(up|down)'";
std::string counted(const std::string& times) {
  return "node2 net.eth1.carrier_downs: " + times +
         " more than 2 h ago, not no more; cat /sys/class/net/eth1/carrier_down_count";
}

Verdict flaps(Severity severity, const std::string& says, std::vector<std::string> evidence) {
  return {.code = "net-link-flaps",
          .severity = severity,
          .certainty = severity == notice ? possible : likely,
          .symptom = Symptom::hang,
          .says = "eth1 of node2, which carries the data of NCCL, lost its link " + says,
          .blamed = {"node2"},
          .evidence = std::move(evidence),
          .fixes = {"node2: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: an earlier look", [](World& w) { lost_since(w, 0); }},
    {"once, as the log tells",
     [](World& w) { log_of(w, {{50, kUp}, {99'000, kDown}, {99'010, kUp}}); },
     {flaps(notice, "once within the last hour, 17 min ago at last", {kLogged})}},
    {"again and again, as the log tells",
     [](World& w) { log_of(w, {{50, kUp}, {98'000, kDown}, {98'010, kUp}, {99'000, kDown}}); },
     {flaps(degraded, "2 times within the last hour, 17 min ago at last", {kLogged})}},
    {"as the counter tells alone: no more than a notice",
     [](World& w) { lost_since(w, 5); },
     {flaps(notice, "5 times since the earlier look 2 h ago", {counted("5")})}},
    {"as both tell, and the log of one: another MTU counts, too",
     [](World& w) {
       lost_since(w, 2);
       log_of(w, {{50, kUp}, {94'000, kDown}, {94'010, kUp}});
     },
     {flaps(notice,
            "2 times since the earlier look 2 h ago, 100 min ago at last",
            {counted("2"), kLogged})}},
    {"the log tells of more than the counter",
     [](World& w) {
       lost_since(w, 1);
       log_of(w, {{50, kUp}, {94'000, kDown}, {94'010, kUp}, {99'000, kDown}});
     },
     {flaps(degraded, "2 times within the last 2 h, 17 min ago at last", {counted("1"), kLogged})}},
    {"Gloo on another link",
     [](World& w) {
       use_gloo(w);
       gloo_takes(w, 2, pick("eth1", fast(2)));
       log_of(w, {{50, kUp}, {98'000, kDown}, {98'100, kUp}, {99'000, kDown}});
     },
     {{.code = "net-link-flaps",
       .severity = degraded,
       .certainty = likely,
       .symptom = Symptom::hang,
       .says = "eth1 of node2, which carries the data of Gloo, lost its link 2 times",
       .blamed = {"node2"},
       .evidence = {kLogged},
       .fixes = {"node2: (manual)"}}}},
    {"a job that may not use NCCL: a notice",
     [](World& w) {
       w.cluster.job.nccl = Use::maybe;
       log_of(w, {{50, kUp}, {98'000, kDown}, {98'100, kUp}, {99'000, kDown}});
     },
     {{.code = "net-link-flaps",
       .severity = notice,
       .certainty = likely,
       .symptom = Symptom::hang,
       .says = "lost its link 2 times",
       .blamed = {"node2"},
       .evidence = {kLogged},
       .fixes = {"node2: (manual)"}}}},
    {"near miss: another link of the node",
     [](World& w) {
       log_of(w, {{50, "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps"},
                  {99'000, "igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Down"}});
     }},
    {"near miss: a link whose name begins like it",
     [](World& w) {
       log_of(w, {{50, "ice 0000:01:00.1 eth10: NIC Link is up 100 Gbps"},
                  {99'000, "ice 0000:01:00.1 eth10: NIC Link is Down"}});
     }},
    {"near miss: the driver tells of losses, and told of none",
     [](World& w) {
       lost_since(w, 3);
       log_of(w, {{50, kUp}});
     }},
    {"near miss: nothing was counted then",
     [](World& w) {
       lost_since(w, 3);
       w.node(2).earlier = EarlierCounters{.ago_s = 7'200};
     }},
    {"near miss: RDMA carries the data",
     [](World& w) {
       give_infiniband(w);
       for (std::size_t i = 0; i < 4; ++i) w.node(i).devices = Devices{.rdma = {"mlx5_0"}};
       log_of(w, {{50, kUp}, {99'000, kDown}});
     },
     {},
     {},
     "no library is known to send the job's data by TCP"},
    {"near miss: one node alone",
     [](World& w) { w.cluster.nodes.resize(1); },
     {},
     {},
     "one node alone"},
    {"a log that may not be read is a gap",
     [](World& w) { w.node(2).kernel_log = Unknown{.kind = Why::denied, .text = "syslog: EPERM"}; },
     {},
     {"node2 kernel_log"}},
    {"an earlier look that cannot be compared is a gap",
     [](World& w) {
       w.node(2).earlier = Unknown{.kind = Why::not_collected, .text = "started anew"};
     },
     {},
     {"node2 earlier"}},
};

TEST_CASE("net/link_flaps") {
  run_cases("net/link_flaps", cases);
}

}  // namespace
}  // namespace distdoctor::testing
