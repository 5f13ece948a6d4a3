// The kernel's log holds no fault of a GPU since its driver was loaded.
#include <distdoctor/ages.h>
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>
#include <distdoctor/xid.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr double kHour = 3600;
constexpr double kDay = 24 * kHour;

// --- what the log says ---

struct Fault {
  XidEvent event;
  double age_s;
  bool outweighed = false;  // the driver was asked since, and finds nothing of the kind
};

constexpr int kRecovery = 154;

// "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
bool tells_recovery(const XidEvent& event) {
  return event.code == kRecovery && event.text.ends_with("to 0x0 (None)");
}

// Newest first, and only since the driver was loaded last, or the GPU was recovered.
std::vector<Fault> faults_of(const KernelLog& log) {
  std::vector<Fault> faults;
  std::set<std::string> recovered;
  for (const KernelLine& line : log.lines | std::views::reverse) {
    if (is_driver_load(line)) break;
    auto event = parse_xid(line);
    if (!event || recovered.contains(event->pci)) continue;
    if (tells_recovery(*event)) recovered.insert(event->pci);
    const double age = std::max(0.0, log.now_s - event->uptime_s);
    faults.push_back({.event = *std::move(event), .age_s = age});
  }
  return faults;
}

// "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)": what is needed now.
bool wants_recovery(const XidEvent& event) {
  const auto to = event.text.rfind(" to ");
  return event.code == kRecovery && to != std::string::npos &&
         event.text.find("Required", to) != std::string::npos;
}

// Named, and nobody blamed.
bool unlisted(const XidEvent& event) {
  return !event.nvswitch && event.code != kRecovery && find_xid(event.code) == nullptr;
}

XidMeaning meaning_of(const XidEvent& event) {
  if (event.nvswitch) {
    const bool fatal = event.text.starts_with("Fatal");
    return {
        .code = event.code,
        .kind = XidKind::link,
        .cure = XidCure::reset,
        .worst = fatal ? Severity::blocker : Severity::notice,
        .meaning = fatal ? "a fatal fault of an NVSwitch" : "a fault of an NVSwitch, not fatal"};
  }
  if (wants_recovery(event)) {
    return {.code = event.code,
            .kind = XidKind::hardware,
            .cure = XidCure::reset,
            .worst = Severity::blocker,
            .meaning = "the driver says that the GPU has to be recovered"};
  }
  const XidMeaning* row = find_xid(event.code);
  return row != nullptr ? *row
                        : XidMeaning{.code = event.code,
                                     .kind = XidKind::follows,
                                     .cure = XidCure::nothing,
                                     .worst = Severity::notice,
                                     .meaning = "not in our list of faults"};
}

// What NVML says now, of a switch what it says of all GPUs and their links.
bool finds_nothing(const NodeFacts& node, const XidEvent& event) {
  if (event.nvswitch) {
    return node.nvml.known() && !node.nvml->gpus.empty() &&
           std::ranges::all_of(node.nvml->gpus, is_well_linked);
  }
  const NvmlGpu* gpu = find_answer(node, event.pci);
  if (gpu == nullptr) return false;
  return meaning_of(event).kind == XidKind::link ? is_well_linked(*gpu) : is_sound(*gpu);
}

// A reset leaves no mark in the log, a power cycle does: what a reset cures may be cured by now.
Severity severity_of(const Fault& fault) {
  const XidMeaning meaning = meaning_of(fault.event);
  if (fault.outweighed) return std::min(meaning.worst, Severity::notice);
  const bool may_be_cured = meaning.cure == XidCure::nothing || meaning.cure == XidCure::reset;
  if (!may_be_cured || fault.age_s <= kHour) return meaning.worst;
  const Severity most = fault.age_s <= kDay ? Severity::degraded : Severity::notice;
  return std::min(meaning.worst, most);
}

bool tells_of_the_device(const Fault& fault) {
  if (unlisted(fault.event)) return fault.age_s <= kDay;
  const XidKind kind = meaning_of(fault.event).kind;
  return kind == XidKind::hardware || kind == XidKind::link || kind == XidKind::driver;
}

using Devices = std::map<std::string, std::vector<Fault>>;  // by PCI address

// A GPU or switch that is broken takes the links of the others with it; 149 is the link's own end.
constexpr int kOwnEnd = 149;

bool breaks_links(const Fault& fault) {
  if (fault.outweighed) return false;
  const XidMeaning meaning = meaning_of(fault.event);
  const bool broken = meaning.kind == XidKind::hardware || fault.event.nvswitch;
  return (broken && meaning.worst > Severity::notice) || fault.event.code == kOwnEnd;
}

bool lost_a_link_only(const std::vector<Fault>& faults) {
  return std::ranges::all_of(faults, [](const Fault& fault) {
    return meaning_of(fault.event).kind == XidKind::link && !fault.event.nvswitch &&
           !breaks_links(fault);
  });
}

bool follows_another(const Devices& devices, const std::vector<Fault>& faults) {
  return lost_a_link_only(faults) && std::ranges::any_of(devices, [](const auto& device) {
           return std::ranges::any_of(device.second, breaks_links);
         });
}

// --- findings ---

std::string name_of(const XidEvent& event) {
  return fmt::format("{} {}", event.nvswitch ? "SXid" : "Xid", event.code);
}

std::string cure_text(const NodeFacts& node, const XidEvent& event, XidCure cure) {
  const std::string where = shell_quote(event.pci);
  if (unlisted(event)) {
    return "look the number up in NVIDIA's document \"XID Errors\", which says whose fault it is";
  }
  switch (cure) {
    case XidCure::nothing:
      return "look at the program that ran there; the GPU itself goes on";
    case XidCure::reset:
      return event.nvswitch ? fmt::format(
                                  "drain {}, then reset all GPUs and NVSwitches of it together "
                                  "(`nvidia-smi --gpu-reset` as root, with no process on any GPU)",
                                  node.host)
                            : fmt::format(
                                  "drain {}, then reset the GPU (`nvidia-smi --gpu-reset -i {}` as "
                                  "root, with no process on it); a fault that comes back is the "
                                  "vendor's to look at",
                                  node.host, where);
    case XidCure::power_cycle:
      return fmt::format(
          "drain {}, reboot it or take it off the power, and look at the GPU's seat, power cables "
          "and temperature if it happens again",
          node.host);
    case XidCure::replace:
      return fmt::format("drain {} and have the vendor test the GPU; it may have to be replaced",
                         node.host);
  }
  return {};
}

void add_evidence(const NodeFacts& node, const std::vector<Fault>& faults, Finding& finding) {
  constexpr std::size_t kMost = 3;
  for (const Fault& fault : faults | std::views::take(kMost)) {
    finding.evidence.push_back({.node = node.host,
                                .fact = fmt::format("kernel log, GPU {}", fault.event.pci),
                                .observed = fmt::format("{}, {}: {}", name_of(fault.event),
                                                        ago_text(fault.age_s), fault.event.text),
                                .expected = "no fault since the driver was loaded",
                                .command = "dmesg -T | grep -i xid"});
  }
}

// What speaks against the old line.
void add_answer(const NodeFacts& node, const Fault& fault, Finding& finding) {
  finding.summary += "; the driver finds nothing of the kind now";
  finding.evidence.push_back(
      {.node = node.host,
       .fact = fmt::format("NVML now, of {}", fault.event.nvswitch ? "all GPUs and their NVLinks"
                                                                   : "GPU " + fault.event.pci),
       .observed = "answers, and counts no error",
       .expected = "the fault, if it were still there",
       .command = "nvidia-smi; nvidia-smi -q -d ECC,ROW_REMAPPER"});
}

void report_device(const Case& c,
                   const NodeFacts& node,
                   const std::vector<Fault>& faults,
                   bool follows,
                   Judge& judge) {
  const auto worst = std::ranges::max_element(faults, {}, severity_of);
  const XidMeaning meaning = meaning_of(worst->event);
  const bool fresh =
      !worst->outweighed && (worst->age_s <= kDay || severity_of(*worst) == Severity::blocker);
  Finding finding{
      .code = "gpu-xid",
      .severity = capped_by_nccl(c.cluster.job, severity_of(*worst)),
      .certainty = fresh && !unlisted(worst->event) ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}, .devices = {device_name(node, worst->event.pci)}},
      .summary =
          fmt::format("{} {} of {} reported {}, {}: {}", worst->event.nvswitch ? "NVSwitch" : "GPU",
                      worst->event.pci, node.host, name_of(worst->event), ago_text(worst->age_s),
                      meaning.meaning)};
  const bool lost = worst->event.code == 79 || meaning.kind == XidKind::link;
  if (lost) finding.symptom = Symptom::hang;
  if (follows) {
    finding.severity = Severity::notice;
    finding.certainty = Certainty::possible;
    finding.summary += "; the other fault on the node may be why";
  }
  add_evidence(node, faults, finding);
  if (worst->outweighed) add_answer(node, *worst, finding);
  finding.fix = {by_hand(node, cure_text(node, worst->event, meaning.cure))};
  judge.report(std::move(finding));
}

void report_programs(const NodeFacts& node, const std::vector<Fault>& faults, Judge& judge) {
  const Fault& newest = faults.front();
  Finding finding{
      .code = "gpu-program-fault",
      .severity = Severity::notice,
      .certainty = Certainty::likely,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("a program failed on a GPU of {} ({}, {}): {}; a program fault, not "
                             "hardware",
                             node.host, name_of(newest.event), ago_text(newest.age_s),
                             meaning_of(newest.event).meaning)};
  for (const Fault& fault : faults) {
    const auto name = device_name(node, fault.event.pci);
    auto& devices = finding.subjects.devices;
    if (std::ranges::find(devices, name) == devices.end()) devices.push_back(name);
  }
  add_evidence(node, faults, finding);
  finding.fix = {
      by_hand(node,
              "run the program with CUDA_LAUNCH_BLOCKING=1, or a single rank of it under "
              "compute-sanitizer, to find the kernel that does it")};
  judge.report(std::move(finding));
}

// --- together ---

void judge_log(const Case& c, const NodeFacts& node, const KernelLog& log, Judge& judge) {
  Devices devices;
  std::vector<Fault> programs;
  for (Fault& fault : faults_of(log)) {
    fault.outweighed = fault.age_s > kHour && finds_nothing(node, fault.event);
    if (tells_of_the_device(fault)) {
      devices[fault.event.pci].push_back(std::move(fault));
    } else if (meaning_of(fault.event).kind == XidKind::application && fault.age_s <= kDay) {
      programs.push_back(std::move(fault));
    }
  }
  for (const auto& [pci, faults] : devices) {
    report_device(c, node, faults, follows_another(devices, faults), judge);
  }
  // A broken GPU makes programs fail, too.
  std::erase_if(programs, [&](const Fault& program) {
    const auto broken = devices.find(program.event.pci);
    return broken != devices.end() && !std::ranges::all_of(broken->second, [](const Fault& fault) {
             return fault.outweighed;
           });
  });
  if (!programs.empty()) report_programs(node, programs, judge);
}

void run(const Case& c, Judge& judge) {
  bool drivers = false;
  for (const NodeFacts& node : c.cluster.nodes) {
    const GpuFacts* gpus = judge.see(node, "gpu", node.gpu);
    if (gpus == nullptr || gpus->nvidia_driver.empty()) continue;
    drivers = true;
    const KernelLog* log = judge.see(node, "kernel_log", node.kernel_log);
    if (log != nullptr) judge_log(c, node, *log, judge);
  }
  if (!drivers) judge.skip(kNoDriver);
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "The NVIDIA driver writes each fault of a GPU into the kernel's log with a number (Xid), "
        "each fault of an NVSwitch as SXid. This one tells of hardware, of an NVLink or of the "
        "driver: programs on that GPU end with a CUDA error, and all other ranks wait for them.",
    .confirm =
        "`dmesg -T | grep -i xid` (older ones: `journalctl -k | grep -i xid`); `nvidia-smi -q -d "
        "ECC,ROW_REMAPPER`. NVIDIA's document \"XID Errors\" lists all numbers.",
    .fix =
        "Take the node out of the job. A contained or noted memory error (Xid 48, 63, 94) is "
        "mended by a GPU reset, and so is a system processor that hangs (119, 120); a GPU that "
        "fell "
        "off the bus (79) needs a reboot or a power cycle; one that does it again is the vendor's "
        "to test. An event of hours ago on a GPU that the driver finds sound now is history.",
    .verify =
        "After the reset `nvidia-smi` lists the GPU, and `dmesg -T | grep -i xid` shows nothing "
        "new while the job runs."};
constexpr Page kProgramPage{
    .meaning =
        "A program did something illegal on its GPU, such as an access out of bounds (Xid 13, 31, "
        "43, 68, 69). The driver ended it; the GPU is fine. Other ranks of its job report a "
        "closed connection or a time-out, which only follows from it.",
    .confirm =
        "`dmesg -T | grep -i xid` names the process; its own log shows `an illegal memory access "
        "was encountered` or the like.",
    .fix =
        "Find the kernel: CUDA_LAUNCH_BLOCKING=1, TORCH_USE_CUDA_DSA in a debug build, or "
        "`compute-sanitizer python train.py` with one rank.",
    .verify = "The job runs without a new Xid in `dmesg -T | grep -i xid`."};
constexpr std::string_view kLost[] = {"gpu-count-differs", "gpu-fewer-than-expected",
                                      "gpu-none",          "gpu-driver-fails",
                                      "gpu-driver-hangs",  "gpu-lost",
                                      "gpu-missing",       "gpu-too-few"};
constexpr Code kCodes[] = {{.id = "gpu-xid",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::blocker,
                            .title = "A GPU reported a fault",
                            .causes = kLost,
                            .page = kPage},
                           {.id = "gpu-program-fault",
                            .fault_class = FaultClass::gpu_fault,
                            .worst = Severity::notice,
                            .title = "A program failed on a GPU",
                            .causes = {},
                            .page = kProgramPage}};

}  // namespace

extern const Check gpu_xid{.title = "GPUs reported no fault since their driver was loaded",
                           .codes = kCodes,
                           .run = run,
                           .needs = Needs::gpus};

}  // namespace distdoctor::checks
