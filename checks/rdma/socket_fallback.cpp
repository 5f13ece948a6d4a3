// A machine with RDMA ports that were made for such jobs uses them.
#include <distdoctor/check.h>

#include "chosen.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// Active ports that were made for it, and that programs can use.
std::vector<std::string> idle_ports(const RdmaNode& one) {
  std::vector<std::string> ports;
  for (const RdmaDevice& device : one.rdma->devices) {
    if (rdma_trouble(*one.rdma, device) != RdmaTrouble::none) continue;
    for (const RdmaPort& port : device.ports) {
      if (active(port) && made_for_it(device, port)) {
        ports.push_back(port_text(device.name, port.number));
      }
    }
  }
  return ports;
}

// NCCL_NET may name a plugin, which has RDMA of its own.
bool says_sockets(const RdmaNode& one) {
  const std::string& variable = one.hcas->disabled_by;
  return !variable.empty() && !rdma_carries_data(*one.node, *one.prediction) &&
         find_setting(*one.prediction, variable) != nullptr;
}

void judge_node(const Case& c, const RdmaNode& one, Judge& judge) {
  const auto ports = idle_ports(one);
  if (ports.empty()) return;
  const std::string& variable = one.hcas->disabled_by;
  Finding finding{.code = "rdma-socket-fallback",
                  .severity = capped(c, Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {one.node->host}},
                  .summary = fmt::format(
                      "{} keeps NCCL on sockets, though {} has the RDMA ports {}",
                      said(*one.prediction, variable), one.node->host, fmt::join(ports, ", "))};
  finding.evidence = {{.node = one.node->host,
                       .fact = variable,
                       .observed = setting_text(*find_setting(*one.prediction, variable)),
                       .expected = "unset, so that RDMA is used",
                       .command = see_setting(*one.prediction, variable) + "; rdma link"}};
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{variable, std::nullopt}},
                  .text = "unless RDMA was found broken here: then mend that"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  const bool any =
      std::ranges::any_of(nodes, [](const RdmaNode& one) { return !idle_ports(one).empty(); });
  if (!any && any_device(nodes)) judge.skip("no usable port was made for such data");
  for (const RdmaNode& one : nodes) {
    if (says_sockets(one)) judge_node(c, one, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "NCCL_IB_DISABLE or NCCL_NET keeps NCCL from using RDMA ports that are there and active, "
        "so "
        "that the job's data goes over TCP, several times slower. Mostly it is what is left of an "
        "old search for a fault.",
    .confirm =
        "NCCL_DEBUG=INFO prints `Using network Socket`; `rdma link` shows active InfiniBand or "
        "100 Gb/s RoCE ports.",
    .fix = "Unset the variable, on all nodes, also in /etc/nccl.conf and ~/.nccl.conf.",
    .verify = "NCCL_DEBUG=INFO prints `Using network IB`."};
constexpr std::string_view kCauses[] = {"net-slow-interface"};
constexpr Code kCodes[] = {{.id = "rdma-socket-fallback",
                            .fault_class = FaultClass::socket_instead_ib,
                            .worst = Severity::degraded,
                            .title = "NCCL is told to leave the RDMA ports alone",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check rdma_socket_fallback{.title = "No setting keeps NCCL from the RDMA ports",
                                        .codes = kCodes,
                                        .run = run,
                                        .needs = Needs::rdma};

}  // namespace distdoctor::checks
