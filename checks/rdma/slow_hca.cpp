// A port far slower than the others, or of another kind, is hardly meant for the job's data.
#include <distdoctor/check.h>

#include "chosen.h"

#include <iterator>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

constexpr double kFarSlower = 4;  // times: 25 GbE beside 100 and more

struct Taken {
  const HcaChoice* hca;
  const RdmaPort* port;
};

std::vector<Taken> taken_ports(const RdmaNode& one, Judge& judge) {
  std::vector<Taken> taken;
  for (const HcaChoice& hca : one.hcas->used) {
    const RdmaPort* port = find_rdma_port(*one.rdma, hca.device, hca.port);
    if (port == nullptr) continue;
    taken.push_back({&hca, port});
    if (!port->rate_gbps) miss_of_port(one, hca, "rate", judge);
  }
  return taken;
}

double fastest_of(const std::vector<Taken>& taken) {
  double fastest = 0;
  for (const Taken& one : taken) fastest = std::max(fastest, one.port->rate_gbps.value_or(0));
  return fastest;
}

// Half of them at most; else the others are the odd ones.
std::vector<Taken> slow_ones(const std::vector<Taken>& taken) {
  const double fastest = fastest_of(taken);
  std::vector<Taken> slow;
  std::ranges::copy_if(taken, std::back_inserter(slow), [&](const Taken& one) {
    return one.port->rate_gbps && *one.port->rate_gbps * kFarSlower <= fastest;
  });
  if (slow.size() * 2 > taken.size()) slow.clear();
  return slow;
}

// RoCE where twice as many ports at least are InfiniBand, or the other way round.
std::vector<Taken> of_another_kind(const std::vector<Taken>& taken) {
  std::vector<Taken> odd;
  for (const RdmaLayer layer : {RdmaLayer::infiniband, RdmaLayer::ethernet}) {
    std::vector<Taken> other;
    std::ranges::copy_if(taken, std::back_inserter(other),
                         [&](const Taken& one) { return one.port->layer != layer; });
    if (other.size() * 3 <= taken.size()) odd = std::move(other);
  }
  return odd;
}

std::string name_of(const Taken& one) {
  return port_text(one.hca->device, one.hca->port);
}

// Ports that are hardly meant, and what the others are.
struct Odd {
  std::vector<Taken> ports;
  const char* why;
  std::string expected;
  const char* file;  // of the port, that shows it
};

std::optional<Odd> odd_ports(const std::vector<Taken>& taken) {
  if (auto slow = slow_ones(taken); !slow.empty()) {
    return Odd{std::move(slow), "is far slower than its other ports", "as fast as the others",
               "rate"};
  }
  auto other = of_another_kind(taken);
  if (other.empty()) return std::nullopt;
  const bool roce = other.front().port->layer == RdmaLayer::ethernet;
  const std::string usual = layer_text(roce ? RdmaLayer::infiniband : RdmaLayer::ethernet);
  return Odd{std::move(other), "is of another kind than most of its ports",
             usual + ", as most ports", "link_layer"};
}

std::string kind_text(const RdmaPort& port) {
  const std::string rate = port.rate_gbps ? fmt::format("{} Gb/s ", *port.rate_gbps) : "";
  return rate + layer_text(port.layer);
}

void report(const Case& c, const RdmaNode& one, const Odd& odd, Judge& judge) {
  std::vector<std::string> names;
  for (const Taken& port : odd.ports) names.push_back(name_of(port));
  Finding finding{
      .code = "rdma-hca-management",
      .severity = capped(c, Severity::notice),
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .subjects = {.nodes = {one.node->host}},
      .summary = fmt::format("NCCL takes {} of {} too, which {}, since NCCL_IB_HCA is not set",
                             fmt::join(names, ", "), one.node->host, odd.why)};
  for (const Taken& port : odd.ports) {
    finding.subjects.devices.push_back(one.node->host + "/" + port.hca->device);
    finding.evidence.push_back(
        {.node = one.node->host,
         .fact = fmt::format("rdma.{}.{}", name_of(port), odd.file),
         .observed = kind_text(*port.port),
         .expected = odd.expected,
         .command = "cat " + port_file(port.hca->device, port.hca->port, odd.file)});
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
  if (all_unused(nodes, judge)) return;
  bool chosen = !nodes.empty();
  for (const RdmaNode& one : nodes) {
    if (find_setting(*one.prediction, "NCCL_IB_HCA") != nullptr) continue;
    chosen = false;
    if (const auto odd = odd_ports(taken_ports(one, judge))) report(c, one, *odd, judge);
  }
  if (chosen) judge.skip("NCCL_IB_HCA says which ports are meant");
}

constexpr Page kPage{
    .meaning =
        "Without NCCL_IB_HCA NCCL takes every active RDMA port, that of the storage or management "
        "network too: one far slower than the others, or RoCE beside InfiniBand. It prefers fast "
        "ports near the GPU, so this often does no harm; a channel "
        "that does go over the slow port holds up all others, and a port without a route to the "
        "other nodes ends the job.",
    .confirm =
        "NCCL_DEBUG=INFO prints `NET/IB : Using ...` with all ports; `ibstat` their rates and "
        "kinds.",
    .fix =
        "Leave it out: `NCCL_IB_HCA=^=mlx5_4:1`, or name the fast ones: "
        "`NCCL_IB_HCA='=mlx5_0,...'`.",
    .verify = "`NET/IB : Using` no longer lists that port."};
constexpr Code kCodes[] = {
    {.id = "rdma-hca-management",
     .fault_class = FaultClass::hca_bad_device,
     .worst = Severity::notice,
     .title = "A slow RDMA port, or one of another kind, is among those that NCCL takes",
     .causes = {},
     .page = kPage}};

}  // namespace

extern const Check rdma_slow_hca{
    .title = "The RDMA ports of a node are of one kind and equally fast",
    .codes = kCodes,
    .run = run,
    .needs = Needs::rdma};

}  // namespace distdoctor::checks
