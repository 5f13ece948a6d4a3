#include "support/check_cases.h"
#include "support/gpu_nodes.h"
#include "support/nvml_nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr double kNow = 100'000;
constexpr const char* kGone = "NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off the bus.";

void xid(World& w, double age_s, const std::string& text) {
  log_line(w, 1, kNow - age_s, "NVRM: Xid (PCI:0000:10:00): " + text);
}

std::string seen(const std::string& what, const std::string& pci = "0000:10:00.0") {
  return "node1 kernel log, GPU " + pci + ": " + what +
         ", not no fault since the driver was loaded; dmesg -T | grep -i xid";
}

Verdict fault(Severity severity,
              Certainty certainty,
              Symptom symptom,
              const std::string& says,
              const std::vector<std::string>& evidence) {
  return {.code = "gpu-xid",
          .severity = severity,
          .certainty = certainty,
          .symptom = symptom,
          .says = says,
          .blamed = {"node1"},
          .evidence = evidence,
          .fixes = {"node1: (manual)"}};
}

Verdict program(const std::string& says, const std::vector<std::string>& evidence) {
  auto verdict = fault(notice, likely, Symptom::crash, says, evidence);
  verdict.code = "gpu-program-fault";
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World& w) { add_gpus(w, 2); }},
    {"a GPU fell off the bus two days ago: only a reboot brings it back",
     [](World& w) {
       add_gpus(w, 2);
       w.change(w.node(1).kernel_log, [](KernelLog& log) { log.now_s = 3 * kNow; });
       log_line(w, 1, kNow, kGone);
     },
     {fault(blocker,
            likely,
            Symptom::hang,
            "GPU 0000:10:00.0 of node1 reported Xid 79, 2 days ago: the GPU has fallen off",
            {seen("Xid 79, 2 days ago: pid=1, GPU has fallen off the bus.")})}},
    {"near miss: the driver was loaded after it",
     [](World& w) {
       add_gpus(w, 2);
       log_line(w, 1, kNow - 500, kGone);
       log_line(w, 1, kNow - 400, "nvidia-nvlink: Nvlink Core is being initialized, major 235");
       log_line(w, 1, kNow - 399, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15");
     }},
    {"near miss: no NVIDIA driver there now",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 60, "79, x");
       w.node(1).gpu = GpuFacts{};
     }},
    {"a program fault is not hardware",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 3'000, "31, pid=77, name=python, Ch 00000008, MMU Fault");
       xid(w, 2'999, "43, pid=77, name=python, Ch 00000008");
       xid(w, 2'998, "45, pid=77, name=python, Ch 00000008");
     },
     {program("(Xid 43, 50 min ago): a fault of the program stopped",
              {seen("Xid 43, 50 min ago: pid=77, name=python, Ch 00000008"),
               seen("Xid 31, 50 min ago: pid=77, name=python, Ch 00000008, MMU Fault")})}},
    {"near miss: a program fault of last week, and a clean-up",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 90'000, "13, pid=77");
       xid(w, 10, "45, pid=77");
     }},
    {"a broken GPU: what programs met there follows from it",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 50, "95, pid=1, Uncontained ECC error");
       xid(w, 49, "31, pid=1");
       xid(w, 48, "45, pid=1");
     },
     {fault(blocker,
            likely,
            Symptom::crash,
            "Xid 95, 50 s ago: an uncorrectable memory error, not contained",
            {seen("Xid 95, 50 s ago: pid=1, Uncontained ECC error")})}},
    {"hours ago a reset may have mended it",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 10'000, "95, pid=1, Uncontained ECC error");
     },
     {fault(degraded,
            likely,
            Symptom::crash,
            "Xid 95, 3 h ago",
            {seen("Xid 95, 3 h ago: pid=1, Uncontained ECC error")})}},
    {"a day ago it is history",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 90'000, "95, pid=1, Uncontained ECC error");
     },
     {fault(notice,
            possible,
            Symptom::crash,
            "Xid 95, 25 h ago",
            {seen("Xid 95, 25 h ago: pid=1, Uncontained ECC error")})}},
    {"a noted bad row is a notice, the newest fault comes first",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "63, pid=1, Row Remapper: New row marked for remapping");
       xid(w, 20, "63, pid=1, Row Remapper: again");
     },
     {fault(notice,
            likely,
            Symptom::crash,
            "a bad memory row or page was noted",
            {seen("Xid 63, 20 s ago: pid=1, Row Remapper: again"),
             seen("Xid 63, 30 s ago: pid=1, Row Remapper: New row marked for remapping")})}},
    {"an NVLink, and an NVSwitch that says whether it is fatal",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "74, pid=1, NVLink: fatal error detected on link 3");
       log_line(w, 1, kNow - 20,
                "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 20034, Fatal, Link 24 LTSSM Fault Up");
       log_line(w, 1, kNow - 20, "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 20034, Data {0x0}");
       log_line(w, 1, kNow - 10,
                "nvidia-nvswitch1: SXid (PCI:0000:87:00.0): 12028, Non-fatal, Link 3 egress");
     },
     {fault(notice,
            possible,
            Symptom::hang,
            "Xid 74, 30 s ago: an NVLink failed; the other fault on the node may be why",
            {seen("Xid 74, 30 s ago: pid=1, NVLink: fatal error detected on link 3")}),
      fault(blocker,
            likely,
            Symptom::hang,
            "NVSwitch 0000:86:00.0 of node1 reported SXid 20034, 20 s ago: a fatal fault",
            {seen("SXid 20034, 20 s ago: Data {0x0}", "0000:86:00.0"),
             seen("SXid 20034, 20 s ago: Fatal, Link 24 LTSSM Fault Up", "0000:86:00.0")}),
      fault(notice,
            likely,
            Symptom::hang,
            "a fault of an NVSwitch, not fatal",
            {seen("SXid 12028, 10 s ago: Non-fatal, Link 3 egress", "0000:87:00.0")})}},
    {"the other end of a broken link only follows",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "145, pid=1, RLW error");
       log_line(w, 1, kNow - 30, "NVRM: Xid (PCI:0000:20:00): 149, pid=1, NETIR error");
     },
     {fault(notice,
            possible,
            Symptom::hang,
            "an NVLink failed (RLW); the other fault on the node may be why",
            {seen("Xid 145, 30 s ago: pid=1, RLW error")}),
      fault(degraded,
            likely,
            Symptom::hang,
            "GPU 0000:20:00.0 of node1 reported Xid 149",
            {seen("Xid 149, 30 s ago: pid=1, NETIR error", "0000:20:00.0")})}},
    {"the driver wants a reset",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)");
     },
     {fault(blocker,
            likely,
            Symptom::crash,
            "the driver says that the GPU has to be recovered",
            {seen("Xid 154, 30 s ago: GPU recovery action changed from 0x0 (None) to 0x1 (GPU "
                  "Reset Required)")})}},
    {"an NVLink alone",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "74, pid=1, NVLink");
     },
     {fault(degraded,
            likely,
            Symptom::hang,
            "Xid 74, 30 s ago: an NVLink failed",
            {seen("Xid 74, 30 s ago: pid=1, NVLink")})}},
    {"near miss: it wants nothing any more, and a line that is none",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 30, "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)");
       xid(w, 30, "x, no code");
     }},
    {"a code that is not listed is named, and nobody blamed; an old one is left alone",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 90'000, "998, something newer");
       xid(w, 30, "999, something new");
     },
     {fault(notice,
            possible,
            Symptom::crash,
            "Xid 999, 30 s ago: not in our list of faults",
            {seen("Xid 999, 30 s ago: something new")})}},
    {"the job uses no GPU library",
     [](World& w) {
       add_gpus(w, 2);
       w.cluster.job.nccl = Use::no;
       xid(w, 30, "79, GPU has fallen off the bus.");
     },
     {fault(notice,
            likely,
            Symptom::hang,
            "Xid 79",
            {seen("Xid 79, 30 s ago: GPU has fallen off the bus.")})}},
    {"a log that may not be read is a gap, where there are GPUs",
     [](World& w) {
       add_gpus(w, 2);
       w.node(0).gpu = GpuFacts{};
       for (auto& node : w.cluster.nodes) node.kernel_log = Unknown{.kind = Why::denied};
     },
     {},
     {"node1 kernel_log", "node2 kernel_log", "node3 kernel_log"}},
    {"unknown GPUs are a gap",
     [](World& w) { w.node(2).gpu = Unknown{.kind = Why::timed_out}; },
     {},
     {"node2 gpu"},
     "no node has the NVIDIA driver loaded"},
};

// --- what the driver says now against what the log says of old ---

constexpr const char* kGsp = "119, pid=1, Timeout after 45s of waiting for RPC response from GPU0";

void old_xid(World& w, double age_s, const std::string& text) {
  w.change(w.node(1).kernel_log, [](KernelLog& log) { log.now_s = 30 * kNow; });
  log_line(w, 1, 30 * kNow - age_s, "NVRM: Xid (PCI:0000:10:00): " + text);
}

Verdict outweighed(Symptom symptom, const std::string& says, const std::string& line) {
  return fault(notice, possible, symptom, says,
               {seen(line),
                "node1 NVML now, of GPU 0000:10:00.0: answers, and counts no error, not "
                "the fault, if it were still there; nvidia-smi; nvidia-smi -q -d "
                "ECC,ROW_REMAPPER"});
}

const std::vector<CheckCase> outweighed_cases = {
    {"the system processor hung three weeks ago, and the GPU answers",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 21 * 86'400, kGsp);
     },
     {outweighed(
         Symptom::crash,
         "Xid 119, 21 days ago: the GPU's system processor (GSP) does not answer the driver; "
         "the driver finds nothing of the kind now",
         "Xid 119, 21 days ago: pid=1, Timeout after 45s of waiting for RPC response from "
         "GPU0")}},
    {"near miss: half an hour ago",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 1'800, "119, pid=1, RPC");
     },
     {fault(blocker,
            likely,
            Symptom::crash,
            "Xid 119, 30 min ago",
            {seen("Xid 119, 30 min ago: pid=1, RPC")})}},
    {"near miss: nobody asked the driver: a reset may have mended it even so",
     [](World& w) {
       add_nvml(w, 2);
       w.node(1).nvml = Unknown{.kind = Why::timed_out};
       old_xid(w, 10'800, "119, pid=1, RPC");
     },
     {fault(degraded,
            likely,
            Symptom::crash,
            "Xid 119, 3 h ago",
            {seen("Xid 119, 3 h ago: pid=1, RPC")})}},
    {"near miss: the driver lost this GPU",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.error = "GPU is lost"; });
       old_xid(w, 21 * 86'400, "79, fallen off the bus");
     },
     {fault(blocker,
            likely,
            Symptom::hang,
            "Xid 79, 21 days ago",
            {seen("Xid 79, 21 days ago: fallen off the bus")})}},
    {"near miss: it does not tell its temperature",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.temperature_c.reset(); });
       old_xid(w, 21 * 86'400, "79, fallen off the bus");
     },
     {fault(blocker,
            likely,
            Symptom::hang,
            "Xid 79, 21 days ago",
            {seen("Xid 79, 21 days ago: fallen off the bus")})}},
    {"fell off the bus, and is back",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 21 * 86'400, "79, fallen off the bus");
     },
     {outweighed(Symptom::hang, "Xid 79", "Xid 79, 21 days ago: fallen off the bus")}},
    {"a row could not be noted, and nothing failed",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 7'200, "64, pid=1, row");
     },
     {outweighed(Symptom::crash, "Xid 64", "Xid 64, 2 h ago: pid=1, row")}},
    {"near miss: and the remapping failed indeed",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.remap_failed = true; });
       old_xid(w, 7'200, "64, pid=1, row");
     },
     {fault(degraded, likely, Symptom::crash, "Xid 64", {seen("Xid 64, 2 h ago: pid=1, row")})}},
    {"near miss: errors are still counted",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.ecc_uncorrected = 1; });
       old_xid(w, 7'200, "95, pid=1");
     },
     {fault(degraded, likely, Symptom::crash, "Xid 95", {seen("Xid 95, 2 h ago: pid=1")})}},
    {"a link that is up again",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 7'200, "74, pid=1, NVLink");
     },
     {outweighed(Symptom::hang, "Xid 74", "Xid 74, 2 h ago: pid=1, NVLink")}},
    {"near miss: a link is still down",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 0, [](NvmlGpu& gpu) { gpu.nvlinks_active = 17; });
       old_xid(w, 7'200, "74, pid=1, NVLink");
     },
     {fault(degraded, likely, Symptom::hang, "Xid 74", {seen("Xid 74, 2 h ago: pid=1, NVLink")})}},
    {"a switch, and all links are up",
     [](World& w) {
       add_nvml(w, 2);
       w.change(w.node(1).kernel_log, [](KernelLog& log) { log.now_s = 2 * kNow; });
       log_line(w, 1, 2 * kNow - 7'200,
                "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 20034, Fatal, x");
     },
     {fault(notice,
            possible,
            Symptom::hang,
            "a fatal fault of an NVSwitch; the driver finds nothing of the kind now",
            {seen("SXid 20034, 2 h ago: Fatal, x", "0000:86:00.0"),
             "node1 NVML now, of all GPUs and their NVLinks: answers, and counts no error, not the "
             "fault, if it were still there; nvidia-smi; nvidia-smi -q -d ECC,ROW_REMAPPER"})}},
    {"near miss: a switch, and a GPU waits for the fabric",
     [](World& w) {
       add_nvml(w, 2);
       change_nvml_gpu(w, 1, [](NvmlGpu& gpu) { gpu.fabric_state = "in progress"; });
       w.change(w.node(1).kernel_log, [](KernelLog& log) { log.now_s = 2 * kNow; });
       log_line(w, 1, 2 * kNow - 7'200,
                "nvidia-nvswitch0: SXid (PCI:0000:86:00.0): 20034, Fatal, x");
     },
     {fault(degraded,
            likely,
            Symptom::hang,
            "a fatal fault of an NVSwitch",
            {seen("SXid 20034, 2 h ago: Fatal, x", "0000:86:00.0")})}},
    {"near miss: the driver said that it recovered the GPU",
     [](World& w) {
       add_gpus(w, 2);
       xid(w, 50, "119, pid=1, RPC");
       xid(w, 49, "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)");
       xid(w, 30, "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)");
     }},
    {"a program failed where an old fault is over",
     [](World& w) {
       add_nvml(w, 2);
       old_xid(w, 21 * 86'400, "79, fallen off the bus");
       log_line(w, 1, 30 * kNow - 60, "NVRM: Xid (PCI:0000:10:00): 31, pid=7");
     },
     {outweighed(Symptom::hang, "Xid 79", "Xid 79, 21 days ago: fallen off the bus"),
      program("(Xid 31, 60 s ago)", {seen("Xid 31, 60 s ago: pid=7")})}},
};

TEST_CASE("gpu/xid: what the driver says now") {
  run_cases("gpu/xid", outweighed_cases);
}

TEST_CASE("gpu/xid") {
  run_cases("gpu/xid", cases);
}

}  // namespace
}  // namespace distdoctor::testing
