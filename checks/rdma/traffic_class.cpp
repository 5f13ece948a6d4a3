// The job's RoCE packets are in a class that the ports keep from loss, where they do so for any.
// Ports without priority flow control are as good a design (ECN alone, pause frames for all).
#include <distdoctor/check.h>

#include "qos.h"

#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

// Ports of one node of which the same is to be said.
struct Lossy {
  const RdmaNode* one;
  std::vector<QosPort> ports = {};
  int traffic_class = 0;
  int priority = 0;
  bool by_tag = false;
  int pause = 0;

  [[nodiscard]] bool same(const Lossy& other) const {
    return one == other.one && traffic_class == other.traffic_class && priority == other.priority &&
           by_tag == other.by_tag && pause == other.pause;
  }
  // The class was asked for, and the port does not look at it.
  [[nodiscard]] bool unheeded() const { return by_tag && traffic_class != 0; }
};

std::optional<Lossy> lossy_at(const QosPort& port) {
  const int pause = port.qos().pause.value_or(0);
  const auto priority = priority_of(port);
  if (pause == 0 || !priority || has_bit(pause, *priority)) return std::nullopt;
  return Lossy{.one = port.one,
               .ports = {port},
               .traffic_class = traffic_class_of(port),
               .priority = *priority,
               .by_tag = trust_of(port) == "pcp",
               .pause = pause};
}

std::vector<Lossy> lossy_ports(const std::vector<QosPort>& ports) {
  std::vector<Lossy> all;
  for (const QosPort& port : ports) {
    const auto lossy = lossy_at(port);
    if (!lossy) continue;
    const auto same =
        std::ranges::find_if(all, [&](const Lossy& known) { return known.same(*lossy); });
    if (same == all.end()) {
      all.push_back(*lossy);
    } else {
      same->ports.push_back(port);
    }
  }
  return all;
}

// --- what is said ---

std::vector<std::string> names(const Lossy& lossy) {
  std::vector<std::string> all;
  for (const QosPort& port : lossy.ports) all.push_back(port.name());
  return all;
}

std::string class_text(const Lossy& lossy) {
  const QosPort& port = lossy.ports.front();
  if (port.port->traffic_class) {
    return fmt::format("traffic class {}, forced by the port", lossy.traffic_class);
  }
  if (lossy.traffic_class == 0) return "traffic class 0";
  return said(*lossy.one->prediction, "NCCL_IB_TC");
}

std::string way_text(const Lossy& lossy) {
  if (lossy.by_tag) {
    return fmt::format("the port trusts PCP alone, and {} means priority {}",
                       said(*lossy.one->prediction, "NCCL_IB_SL"), lossy.priority);
  }
  return fmt::format("its DSCP {} means priority {}", dscp_of(lossy.traffic_class), lossy.priority);
}

std::string ports_text(const Lossy& lossy) {
  return fmt::format("{}", fmt::join(names(lossy), ", "));
}

std::string summary_of(const Lossy& lossy, const std::vector<std::string>& hosts) {
  const auto ports = fmt::format("{} of {}", ports_text(lossy), fmt::join(hosts, ", "));
  if (lossy.unheeded()) {
    return fmt::format(
        "the job's traffic class ({}) is not looked at by {}: trust is by PCP alone, and only "
        "priority {} is kept from loss",
        class_text(lossy), ports, bits_text(lossy.pause));
  }
  return fmt::format("priority {} is kept from loss at {}, and the job's packets have priority {}",
                     bits_text(lossy.pause), ports, lossy.priority);
}

Evidence evidence_of(const Lossy& lossy) {
  const QosPort& port = lossy.ports.front();
  return {.node = lossy.one->node->host,
          .fact = fmt::format("rdma.{}.priority", fmt::join(names(lossy), ", ")),
          .observed = fmt::format("{}: {}; priority flow control is on for {}", class_text(lossy),
                                  way_text(lossy), bits_text(lossy.pause)),
          .expected = "a priority with priority flow control, since the port has some",
          .command = see_qos(*port.link) + "; cat " + class_file(port)};
}

// The usual one of lossless RoCE (DSCP 26) where it leads to such a priority, else the first.
std::optional<int> better_class(const Lossy& lossy) {
  constexpr int kUsual = 26;
  constexpr int kCapable = 2;  // of ECN: ECT(0)
  std::optional<int> first;
  for (int dscp = 0; dscp < 64; ++dscp) {
    const auto priority = priority_of_dscp(lossy.ports.front(), dscp);
    if (!priority || !has_bit(lossy.pause, *priority)) continue;
    if (!first || dscp == kUsual) first = dscp;
  }
  return first ? std::optional(*first * 4 + kCapable) : std::nullopt;
}

Fix by_hand(const Lossy& lossy, std::string text) {
  return {.node = lossy.one->node->host, .kind = Fix::Kind::manual, .text = std::move(text)};
}

Fix mend(const Lossy& lossy) {
  const QosPort& port = lossy.ports.front();
  if (lossy.by_tag) {
    return by_hand(lossy, fmt::format("ask who runs the network by what its switches tell RoCE; "
                                      "where that is DSCP: `mlnx_qos -i {} --trust dscp` on every "
                                      "port, which all jobs there feel",
                                      shell_quote(port.link->name)));
  }
  const auto better = better_class(lossy);
  const std::string number = better ? std::to_string(*better) : "the network's own";
  if (port.port->traffic_class || !better) {
    return by_hand(lossy, fmt::format("let the port force {} ({}), as the switches expect it",
                                      number, class_file(port)));
  }
  return {.node = "*",
          .kind = Fix::Kind::env,
          .env = {{"NCCL_IB_TC", number}},
          .text = "if the switches keep that class from loss, too: ask who runs the network"};
}

// Nodes of which the same is to be said.
using Group = std::vector<Lossy>;

bool alike(const Lossy& a, const Lossy& b) {
  return ports_text(a) == ports_text(b) && class_text(a) == class_text(b) &&
         way_text(a) == way_text(b) && a.pause == b.pause;
}

std::vector<Group> groups_of(const std::vector<Lossy>& all) {
  std::vector<Group> groups;
  for (const Lossy& lossy : all) {
    const auto same = std::ranges::find_if(
        groups, [&](const Group& group) { return alike(group.front(), lossy); });
    if (same == groups.end()) {
      groups.push_back({lossy});
    } else {
      same->push_back(lossy);
    }
  }
  return groups;
}

void report(const Case& c, const Group& group, Judge& judge) {
  const Lossy& first = group.front();
  Finding finding{
      .code = first.unheeded() ? "rdma-traffic-class-unheeded" : "rdma-traffic-class-lossy",
      .severity = capped(c, Severity::notice),
      .certainty = Certainty::possible,
      .symptom = Symptom::slow,
      .summary = ""};
  for (const Lossy& lossy : group) {
    const std::string& host = lossy.one->node->host;
    finding.subjects.nodes.push_back(host);
    for (const QosPort& port : lossy.ports) {
      finding.subjects.devices.push_back(host + "/" + port.device->name);
    }
    finding.evidence.push_back(evidence_of(lossy));
  }
  finding.summary = summary_of(first, finding.subjects.nodes);
  finding.fix = {mend(first)};
  if (group.size() > 1) finding.fix.front().node = "*";
  judge.report(std::move(finding));
}

// What it keeps from loss, if anything, and which priority the job's packets have.
bool is_told(const QosPort& port) {
  const auto& pause = port.qos().pause;
  return pause && (*pause == 0 || priority_of(port));
}

void run(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  const auto ports = all_qos_ports(nodes, judge);
  if (!ports.empty() && std::ranges::none_of(ports, is_told)) {
    judge.skip("which priority the job's packets have is not known here");
  }
  for (const Group& group : groups_of(lossy_ports(ports))) {
    report(c, group, judge);
  }
}

constexpr std::string_view kConfirm =
    "`mlnx_qos -i LINK` (trust state, PFC, dscp2prio), or `dcb pfc show dev LINK` and `dcb app "
    "show "
    "dev LINK`; `cat /sys/class/infiniband/DEVICE/tc/1/traffic_class`; under load `ethtool -S LINK "
    "| grep prio` shows in which priority the packets go.";
constexpr std::string_view kVerify =
    "`ethtool -S LINK | grep -E 'prio[0-9]_(bytes|pause)'` counts the job's bytes in the priority "
    "that has priority flow control.";
constexpr Page kLossyPage{
    .meaning =
        "The port keeps one priority from loss (priority flow control), and the job's packets have "
        "another: NCCL_IB_TC is not set, or leads elsewhere. All works until the fabric is "
        "congested; then switches drop these packets, and RoCE sends long stretches again. It is "
        "no fault where that class is for storage, or the fabric's design is lossy with ECN.",
    .confirm = kConfirm,
    .fix =
        "The traffic class that the network keeps from loss, for the job (NCCL_IB_TC=106 is DSCP "
        "26, priority 3 by default) or forced by the port for all.",
    .verify = kVerify};
constexpr Page kUnheededPage{
    .meaning =
        "NCCL_IB_TC, or what the port forces, marks the job's packets by DSCP, and the port trusts "
        "the VLAN tag alone (PCP): its pause frames are for another priority than the job's "
        "packets have. The switches may still heed the mark.",
    .confirm = kConfirm,
    .fix =
        "Trust by DSCP on the ports of all nodes: `mlnx_qos -i LINK --trust dscp`. Or NCCL_IB_SL, "
        "where the fabric goes by tags.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "rdma-traffic-class-lossy",
                            .fault_class = FaultClass::packet_loss,
                            .worst = Severity::notice,
                            .title = "RoCE traffic is in another class than the lossless one",
                            .causes = {},
                            .page = kLossyPage},
                           {.id = "rdma-traffic-class-unheeded",
                            .fault_class = FaultClass::packet_loss,
                            .worst = Severity::notice,
                            .title = "RoCE ports do not look at the job's traffic class",
                            .causes = {},
                            .page = kUnheededPage}};

}  // namespace

extern const Check rdma_traffic_class{
    .title = "RoCE traffic has a class that is kept from loss, if any is",
    .codes = kCodes,
    .run = run,
    .needs = Needs::rdma};

}  // namespace distdoctor::checks
