#include "support/check_cases.h"
#include "support/hcas.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

// Two hours after the start; every node's log is read.
void log_of(World& w, const std::vector<KernelLine>& lines) {
  give_infiniband(w);
  change_hca(w, 1, "mlx5_1", [](RdmaDevice& device, RdmaPort&) { device.pci = "0000:2a:00.0"; });
  for (const std::size_t i : {0U, 1U, 2U, 3U}) {
    w.node(i).kernel_log = KernelLog{.oldest_s = 0, .now_s = 7200};
  }
  w.node(1).kernel_log = KernelLog{.lines = lines, .oldest_s = 0, .now_s = 7200};
}

const std::string kDown = "mlx5_core 0000:2a:00.0 ibp42s0: Link down";

Verdict flap(Severity severity, const std::string& times) {
  return {.code = "rdma-link-flap",
          .severity = severity,
          .certainty = severity == notice ? possible : likely,
          .symptom = Symptom::hang,
          .says = "the link of mlx5_1 on node1 went down " + times +
                  " within the last hour, 10 min ago at last",
          .blamed = {"node1"},
          .evidence = {"node1 kernel_log: " + kDown +
                       ", not a link that stays up; dmesg -T | grep -iE 'mlx5|link (up|down)'"},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy: no RDMA", [](World&) {}},
    {"healthy: a silent log", [](World& w) { log_of(w, {}); }},
    {"once", [](World& w) { log_of(w, {{6600, kDown}}); }, {flap(notice, "once")}},
    {"again and again",
     [](World& w) { log_of(w, {{6000, kDown}, {6300, kDown}, {6600, kDown}}); },
     {flap(degraded, "3 times")}},
    {"near miss: before the last hour", [](World& w) { log_of(w, {{3000, kDown}}); }},
    {"near miss: up",
     [](World& w) { log_of(w, {{6600, "mlx5_core 0000:2a:00.0 ibp42s0: Link up"}}); }},
    {"near miss: a card that is no RDMA device of the job",
     [](World& w) { log_of(w, {{6600, "mlx5_core 0000:99:00.0 eth7: Link down"}}); }},
    {"near miss: NCCL_IB_HCA leaves it out",
     [](World& w) {
       log_of(w, {{6600, kDown}});
       set_and_predict(w, "NCCL_IB_HCA", "=mlx5_0");
     }},
    {"near miss: Gloo",
     [](World& w) {
       log_of(w, {{6600, kDown}});
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does without NCCL"},
    {"a log that may not be read is a gap",
     [](World& w) {
       log_of(w, {});
       w.node(1).kernel_log = Unknown{.kind = Why::denied, .text = "syslog: EPERM"};
     },
     {},
     {"node1 kernel_log"}},
};

TEST_CASE("rdma/link_flap") {
  run_cases("rdma/link_flap", cases);
}

}  // namespace
}  // namespace distdoctor::testing
