// A port far slower than the others is hardly meant for the job's data.
#include <distdoctor/check.h>

#include "chosen.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr double kFarSlower = 4;  // times: 25 GbE beside 100 and more

struct Taken {
  const HcaChoice* hca;
  const RdmaPort* port;
  double rate_gbps;
};

std::vector<Taken> taken_ports(const RdmaNode& one) {
  std::vector<Taken> taken;
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (port != nullptr && port->rate_gbps) taken.push_back({&hca, port, *port->rate_gbps});
  }
  return taken;
}

std::vector<Taken> slow_ones(const std::vector<Taken>& taken) {
  double fastest = 0;
  for (const Taken& one : taken) fastest = std::max(fastest, one.rate_gbps);
  std::vector<Taken> slow;
  std::ranges::copy_if(taken, std::back_inserter(slow),
                       [&](const Taken& one) { return one.rate_gbps * kFarSlower <= fastest; });
  return slow;
}

std::string name_of(const Taken& one) {
  return port_text(one.hca->device, one.hca->port);
}

void judge_node(const Case& c, const RdmaNode& one, Judge& judge) {
  const auto taken = taken_ports(one);
  const auto slow = slow_ones(taken);
  if (slow.empty() || slow.size() * 2 > taken.size())
    return;  // else the fast ones are the odd ones
  std::vector<std::string> names;
  for (const Taken& port : slow) names.push_back(name_of(port));
  Finding finding{
      .code = "rdma-hca-management",
      .severity = capped(c, Severity::notice),
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {one.node->host}},
      .summary = fmt::format("NCCL takes {} of {} too, which is far slower than its other ports, "
                             "since NCCL_IB_HCA is not set",
                             fmt::join(names, ", "), one.node->host)};
  for (const Taken& port : slow) {
    finding.subjects.devices.push_back(one.node->host + "/" + port.hca->device);
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = "rdma." + name_of(port) + ".rate",
         .observed = fmt::format("{} Gb/s {}", port.rate_gbps, layer_text(port.port->layer)),
         .expected = "as fast as the others",
         .command = "cat " + port_file(port.hca->device, port.hca->port, "rate")});
  }
  finding.fix = {{.node = one.node->host,
                  .kind = Fix::Kind::env,
                  .env = {{"NCCL_IB_HCA", fmt::format("^={}", fmt::join(names, ","))}},
                  .text = "leaves out what serves storage or management; names may differ on other "
                          "nodes"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  for (const RdmaNode& one : nodes) {
    if (find_setting(*one.prediction, "NCCL_IB_HCA") == nullptr) judge_node(c, one, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "Without NCCL_IB_HCA NCCL takes every active RDMA port, that of the storage or management "
        "network too. It prefers fast ports near the GPU, so this often does no harm; a channel "
        "that does go over the slow port holds up all others, and a port without a route to the "
        "other nodes ends the job.",
    .confirm = "NCCL_DEBUG=INFO prints `NET/IB : Using ...` with all ports; `ibstat` their rates.",
    .fix =
        "Leave it out: `NCCL_IB_HCA=^=mlx5_4:1`, or name the fast ones: "
        "`NCCL_IB_HCA='=mlx5_0,...'`.",
    .verify = "`NET/IB : Using` no longer lists the slow port."};
constexpr Code kCodes[] = {{.id = "rdma-hca-management",
                            .fault_class = FaultClass::hca_bad_device,
                            .worst = Severity::notice,
                            .title = "A slow RDMA port is among those that NCCL takes",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_slow_hca{.title = "The RDMA ports of a node are equally fast",
                                 .codes = kCodes,
                                 .run = run,
                                 .needs = Needs::rdma};

}  // namespace distdoctor::checks
