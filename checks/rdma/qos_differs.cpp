// The ports of one rail treat RoCE alike on all nodes: priority flow control, trust, ECN.
#include <distdoctor/check.h>

#include "qos.h"

#include <map>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// --- what is compared ---

std::optional<std::string> text_of(std::optional<int> bits) {
  return bits ? std::optional("priority " + bits_text(*bits)) : std::nullopt;
}
std::optional<std::string> pause_of(const QosPort& port) {
  return text_of(port.qos().pause);
}
std::optional<std::string> tells_of(const QosPort& port) {
  return text_of(port.qos().ecn_tells);
}
std::optional<std::string> slows_of(const QosPort& port) {
  return text_of(port.qos().ecn_slows);
}
std::optional<std::string> trust_text(const QosPort& port) {
  const auto trust = trust_of(port);
  return trust.empty() ? std::nullopt : std::optional(std::string(trust));
}
// What NCCL_IB_TC says is compared elsewhere.
std::optional<std::string> forced_of(const QosPort& port) {
  const auto& forced = port.port->traffic_class;
  return forced ? std::to_string(*forced) : "none";
}

struct Aspect {
  const char* name;
  std::optional<std::string> (*value)(const QosPort&);  // none: not told
  const char* mend;
};
constexpr Aspect kAspects[] = {
    {"priority flow control", pause_of, "mlnx_qos -i LINK --pfc 0,0,0,1,0,0,0,0"},
    {"trust", trust_text, "mlnx_qos -i LINK --trust dscp"},
    {"ECN, notification point", tells_of, "/sys/class/net/LINK/ecn/roce_np/enable/PRIORITY"},
    {"ECN, reaction point", slows_of, "/sys/class/net/LINK/ecn/roce_rp/enable/PRIORITY"},
    {"forced traffic class", forced_of, "/sys/class/infiniband/DEVICE/tc/PORT/traffic_class"}};

// What the job's own packets meet with; none: unknown.
struct Treatment {
  std::optional<bool> kept = {};
  std::optional<bool> tells = {};
  std::optional<bool> slows = {};
};
Treatment treatment_at(const QosPort& port) {
  const auto priority = priority_of(port);
  if (!priority) return {};
  const auto bit = [&](std::optional<int> bits) {
    return bits ? std::optional(has_bit(*bits, *priority)) : std::nullopt;
  };
  return {bit(port.qos().pause), bit(port.qos().ecn_tells), bit(port.qos().ecn_slows)};
}
bool matters(const QosPort& a, const QosPort& b) {
  const Treatment one = treatment_at(a);
  const Treatment other = treatment_at(b);
  const auto differ = [](std::optional<bool> x, std::optional<bool> y) { return x && y && x != y; };
  return differ(one.kept, other.kept) || differ(one.tells, other.tells) ||
         differ(one.slows, other.slows);
}

// --- who differs ---

struct Told {
  QosPort port;
  std::string value;
};
struct Odd {
  const Aspect* aspect;
  std::string host;
  std::string value;
  std::string usual;
  std::vector<QosPort> ports = {};
};
struct Difference {
  std::vector<Odd> odd = {};
  bool clear = true;
  bool matters = false;
};

void add(const Aspect& aspect, const Told& told, const std::string& usual, Difference& all) {
  const std::string& host = told.port.one->node->host;
  const auto same = std::ranges::find_if(all.odd, [&](const Odd& odd) {
    return odd.aspect == &aspect && odd.host == host && odd.value == told.value &&
           odd.usual == usual;
  });
  if (same != all.odd.end()) {
    same->ports.push_back(told.port);
  } else {
    all.odd.push_back({&aspect, host, told.value, usual, {told.port}});
  }
}

// Ports of one name: those of a rail.
void compare(const Aspect& aspect, const std::vector<QosPort>& rail, Difference& all) {
  std::vector<Told> told;
  for (const QosPort& port : rail) {
    if (auto value = aspect.value(port)) told.push_back({port, *std::move(value)});
  }
  const auto usual = usual_value(told, &Told::value);
  if (!usual) return;
  const auto odd = odd_ones_out(told, usual->value, &Told::value);
  if (odd.empty()) return;
  const Told& example = *std::ranges::find(told, usual->value, &Told::value);
  all.clear = all.clear && usual->clear;
  for (const Told& one : odd) {
    add(aspect, one, usual->value, all);
    all.matters = all.matters || matters(one.port, example.port);
  }
  // Of as many on each side neither is the odd one.
  if (!usual->clear) add(aspect, example, odd.front().value, all);
}

Difference difference_of(const std::vector<QosPort>& ports) {
  std::map<std::string, std::vector<QosPort>> rails;
  for (const QosPort& port : ports) rails[port.name()].push_back(port);
  Difference all;
  for (const Aspect& aspect : kAspects) {
    for (const auto& [name, rail] : rails) compare(aspect, rail, all);
  }
  return all;
}

// --- the finding ---

void accuse(const Odd& odd, Finding& finding) {
  std::vector<std::string> names;
  for (const QosPort& port : odd.ports) {
    names.push_back(port.name());
    const auto device = odd.host + "/" + port.device->name;
    auto& devices = finding.subjects.devices;
    if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
  }
  auto& nodes = finding.subjects.nodes;
  if (std::ranges::find(nodes, odd.host) == nodes.end()) nodes.push_back(odd.host);
  const QosPort& port = odd.ports.front();
  finding.evidence.push_back(
      {.node = odd.host,
       .fact = fmt::format("rdma.{}: {}", fmt::join(names, ", "), odd.aspect->name),
       .observed = odd.value,
       .expected = odd.usual,
       .command =
           fmt::format("{}; grep . /sys/class/net/{}/ecn/roce_*/enable/*; cat {}",
                       see_qos(*port.link), shell_quote(port.link->name), class_file(port))});
}

std::vector<std::string> aspects(const Difference& all) {
  std::vector<std::string> names;
  for (const Aspect& aspect : kAspects) {
    if (std::ranges::find(all.odd, &aspect, &Odd::aspect) != all.odd.end()) {
      names.emplace_back(aspect.name);
    }
  }
  return names;
}

void report(const Case& c, const Difference& all, Judge& judge) {
  Finding finding{.code = "rdma-qos-differs",
                  .severity = capped(c, all.matters ? Severity::degraded : Severity::notice),
                  .certainty = all.clear ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::slow,
                  .summary = ""};
  for (const Odd& odd : all.odd) accuse(odd, finding);
  const auto& nodes = finding.subjects.nodes;
  finding.summary = fmt::format(
      "RoCE ports of {} are set up otherwise than {}: {}{}", fmt::join(nodes, ", "),
      all.clear ? "those of the other nodes" : "each other", fmt::join(aspects(all), "; "),
      all.matters ? "; the job's packets feel it when links are congested" : "");
  for (const Aspect& aspect : kAspects) {
    const auto odd = std::ranges::find(all.odd, &aspect, &Odd::aspect);
    if (odd == all.odd.end()) continue;
    finding.fix.push_back({.node = all.clear ? odd->host : "*",
                           .kind = Fix::Kind::manual,
                           .text = fmt::format("set {} as on the other nodes, as the switches "
                                               "expect it (by {}), and where it is set at boot",
                                               aspect.name, aspect.mend)});
  }
  judge.report(std::move(finding));
}

bool any_twin(const std::vector<QosPort>& ports) {
  std::set<std::string> names;
  return std::ranges::any_of(
      ports, [&](const QosPort& port) { return !names.insert(port.name()).second; });
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  const auto ports = all_qos_ports(nodes, judge);
  if (!ports.empty() && !any_twin(ports)) {
    judge.skip("no two nodes' ports of one name tell of their priorities");
  }
  const Difference all = difference_of(ports);
  if (!all.odd.empty()) report(c, all, judge);
}

constexpr Page kPage{
    .meaning =
        "The same RDMA port is set up in another way on some nodes: for which priorities it sends "
        "and heeds pause frames (PFC), whether DSCP or the VLAN tag decides on the priority, "
        "whether it takes part in ECN (DCQCN), or which class it forces on all packets. Under "
        "load a node whose packets are not kept from loss, or that does not slow down when told, "
        "holds up or harms the others. Settings made by hand are gone after a reboot.",
    .confirm =
        "On each node: `mlnx_qos -i LINK`; `grep . /sys/class/net/LINK/ecn/roce_*/enable/*`; `cat "
        "/sys/class/infiniband/DEVICE/tc/1/traffic_class`.",
    .fix = "Set the odd ones as the others, in the file or unit that does it at each boot.",
    .verify = "The same commands print the same on all nodes."};
constexpr Code kCodes[] = {{.id = "rdma-qos-differs",
                            .fault_class = FaultClass::packet_loss,
                            .worst = Severity::degraded,
                            .title = "RoCE ports are set up differently on the nodes",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check rdma_qos_differs{.title = "RoCE ports treat traffic alike on all nodes",
                                    .codes = kCodes,
                                    .run = run,
                                    .needs = Needs::rdma};

}  // namespace distdoctor::checks
