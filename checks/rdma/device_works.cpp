// An RDMA device that can be opened also gives a program what it needs to begin.
#include <distdoctor/check.h>

#include "chosen.h"

#include <cerrno>
#include <cstdint>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// What the memlock limit is blamed for elsewhere: none, or one of 64 MiB and more, is not it.
bool may_be_the_limit(const NodeFacts& node) {
  constexpr std::int64_t kEnough = std::int64_t{64} << 20;
  if (!node.limits.known()) return true;
  const auto memlock = node.limits->find("memlock");
  return memlock == node.limits->end() || memlock->second.soft.value_or(kEnough) < kEnough;
}

bool broken(const NodeFacts& node, const VerbsDevice& device, Judge& judge) {
  if (device.step_error.empty()) return false;
  if (device.step_error_code != ENOMEM) return true;
  judge.see(node, "limits", node.limits);
  return !may_be_the_limit(node);
}

Finding finding_of(const Case& c, const RdmaNode& one, const VerbsDevice& device) {
  const bool memory = device.step_error_code == ENOMEM;
  Finding finding{
      .code = "rdma-device-broken",
      .severity = capped_by_context(capped(c, Severity::blocker), one.node->context),
      .certainty = Certainty::proved,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {one.node->host}, .devices = {one.node->host + "/" + device.name}},
      .summary = fmt::format("{} of {} is opened, but is of no use to programs: {}", device.name,
                             one.node->host, device.step_error)};
  finding.evidence = {{.node = one.node->host,
                       .fact = "verbs." + device.name,
                       .observed = device.step_error,
                       .expected = "a queue, and 4 MiB registered",
                       .context = std::string(slug(one.node->context)),
                       .command = "ibv_devinfo -v -d " + shell_quote(device.name) +
                                  "; ibv_rc_pingpong -s 1048576 -d " + shell_quote(device.name)}};
  finding.fix = {
      {.node = one.node->host,
       .kind = Fix::Kind::manual,
       .text = memory
                   ? std::string("the lock limit is not it: see the memory limit of the container "
                                 "or control group, and processes that hold the device's resources "
                                 "(`rdma resource show`)")
                   : std::string("see `dmesg` for the device's driver and firmware; where nothing "
                                 "helps, reload the driver (this ends what uses it) or reboot")}};
  return finding;
}

// How many of the devices in use were opened, and so looked at.
std::size_t judge_node(const Case& c, const RdmaNode& one, Judge& judge) {
  if (one.hcas->used.empty()) return 0;
  const Verbs* verbs = judge.see(*one.node, "verbs", one.node->verbs);
  if (verbs == nullptr) return 0;
  std::size_t opened = 0;
  for (const VerbsDevice& device : verbs->devices) {
    if (!uses(one, device.name) || !device.error.empty()) continue;
    ++opened;
    if (broken(*one.node, device, judge)) judge.report(finding_of(c, one, device));
  }
  return opened;
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  if (all_unused(nodes, judge)) return;
  std::size_t opened = 0;
  for (const RdmaNode& one : nodes) opened += judge_node(c, one, judge);
  if (opened == 0) judge.skip("libibverbs opened none of the devices in use");
}

constexpr Page kPage{
    .meaning =
        "libibverbs opens the device, and then one of the first calls of every program fails: "
        "ibv_alloc_pd, ibv_create_cq or ibv_reg_mr. NCCL ends with `Call to ibv_... failed`. "
        "Mostly the driver or the firmware is in trouble, or the container's memory is used up.",
    .confirm = "`ibv_rc_pingpong -d mlx5_0` without another end: it prepares all this first.",
    .fix =
        "The kernel's log names driver and firmware trouble. ENOMEM without a lock limit: the "
        "memory limit of the control group, or the device's resources in use by others.",
    .verify = "`ibv_rc_pingpong` waits for its other end instead of failing at once."};
constexpr Code kCodes[] = {{.id = "rdma-device-broken",
                            .fault_class = FaultClass::ib_broken,
                            .worst = Severity::blocker,
                            .title = "An RDMA device fails its first calls",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_device_works{
    .title = "RDMA devices serve programs", .codes = kCodes, .run = run, .needs = Needs::rdma};

}  // namespace distdoctor::checks
