// RDMA links that went down in the last hour, as the kernel's log tells.
#include <distdoctor/check.h>

#include "chosen.h"

#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr double kRecentSeconds = 3600;
constexpr std::size_t kFlapping = 3;  // times; once or twice is a reboot of the switch

struct Event {
  std::string device;  // of RDMA
  double ago_s;
  std::string text;
};

// "mlx5_core 0000:18:00.0 eth2: Link down": the driver names its PCI device, and InfiniBand ports
// have netdevs, too (IPoIB).
const RdmaDevice* device_of(const Rdma& rdma, std::string_view text) {
  const auto found = std::ranges::find_if(rdma.devices, [&](const RdmaDevice& device) {
    return !device.pci.empty() && text.find(device.pci) != std::string_view::npos;
  });
  return found == rdma.devices.end() ? nullptr : &*found;
}

bool says_down(std::string_view text) {
  return text.find("Link down") != std::string_view::npos ||
         text.find("Link DOWN") != std::string_view::npos ||
         (text.find("Port module event") != std::string_view::npos &&
          text.find("unplugged") != std::string_view::npos);
}

bool used(const RdmaNode& one, const std::string& device) {
  return std::ranges::find(one.hcas->used, device, &HcaChoice::device) != one.hcas->used.end();
}

std::map<std::string, std::vector<Event>> recent_downs(const RdmaNode& one, const KernelLog& log) {
  std::map<std::string, std::vector<Event>> events;
  for (const KernelLine& line : log.lines) {
    const double ago_s = log.now_s - line.uptime_s;
    if (ago_s < 0 || ago_s > kRecentSeconds || !says_down(line.text)) continue;
    const RdmaDevice* device = device_of(*one.rdma, line.text);
    if (device != nullptr && used(one, device->name)) {
      events[device->name].push_back({device->name, ago_s, line.text});
    }
  }
  return events;
}

void judge_device(const Case& c,
                  const RdmaNode& one,
                  const std::vector<Event>& events,
                  Judge& judge) {
  const Event& last = events.back();
  const bool flaps = events.size() >= kFlapping;
  const std::string times = events.size() == 1 ? "once" : fmt::format("{} times", events.size());
  Finding finding{
      .code = "rdma-link-flap",
      .severity = capped(c, flaps ? Severity::degraded : Severity::notice),
      .certainty = flaps ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {one.node->host}, .devices = {one.node->host + "/" + last.device}},
      .summary = fmt::format("the link of {} on {} went down {} within the last hour, {:.0f} min "
                             "ago at last",
                             last.device, one.node->host, times, last.ago_s / 60)};
  finding.evidence = {{.node = one.node->host,
                       .fact = "kernel_log",
                       .observed = last.text,
                       .expected = "a link that stays up",
                       .command = "dmesg -T | grep -iE 'mlx5|link (up|down)'"}};
  finding.fix = {{.node = one.node->host,
                  .kind = Fix::Kind::manual,
                  .text = "look at cable, transceiver and switch port (`mlxlink -d " + last.device +
                          " -c`); until then leave the port out with NCCL_IB_HCA on all nodes"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const RdmaNode& one : rdma_nodes(c, judge)) {
    if (one.hcas->used.empty()) continue;
    const KernelLog* log = judge.see(*one.node, "kernel_log", one.node->kernel_log);
    if (log == nullptr) continue;
    for (const auto& [device, events] : recent_downs(one, *log)) {
      judge_device(c, one, events, judge);
    }
  }
}

constexpr Page kPage{
    .meaning =
        "The kernel's log says that the link of an RDMA port which the job uses went down within "
        "the last hour. While it is down NCCL's retries run out after some ten seconds (`Got "
        "completion ... status=IBV_WC_RETRY_EXC_ERR(12)`, `Got async event : port error`).",
    .confirm =
        "`dmesg -T | grep -i link`; `cat /sys/class/infiniband/*/ports/1/counters/link_downed` "
        "twice, some minutes apart.",
    .fix = "Cable, transceiver or switch port: `mlxlink` shows their errors. Drain the node.",
    .verify = "link_downed no longer rises."};
constexpr Code kCodes[] = {{.id = "rdma-link-flap",
                            .fault_class = FaultClass::ib_link_flap,
                            .worst = Severity::degraded,
                            .title = "An RDMA link goes down and up",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_link_flap{
    .title = "RDMA links stay up", .codes = kCodes, .run = run, .needs = Needs::rdma};

}  // namespace distdoctor::checks
