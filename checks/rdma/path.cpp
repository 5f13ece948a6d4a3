// What NCCL sends by RDMA arrives: a connection between two ports, and messages through it.
#include <distdoctor/check.h>
#include <distdoctor/untested.h>

#include "path_filter.h"
#include "rdma_paths.h"

#include <cerrno>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace rdma;  // NOLINT(google-build-using-namespace): what these checks share

struct Broken {
  const RdmaPath* path = nullptr;
  PathEnd sender;
  PathEnd receiver;
  [[nodiscard]] std::string way() const {
    return fmt::format("{} of {} and {} of {}", sender.name(), sender.node->host, receiver.name(),
                       receiver.node->host);
  }
};

// --- what was seen ---

std::string fate_of(const RdmaMessage& message) {
  if (message.status_code != 0) return fmt::format("{} ({})", message.status, message.status_code);
  return message.arrived ? "not acknowledged in time" : "nothing came in time";
}

std::string observed(const RdmaPath& path) {
  if (!path.error.empty()) return path.error + " on " + path.failed_at;
  const RdmaMessage& lost = *lost_message(path);
  return fmt::format("a message of {} bytes: {}", lost.bytes, fate_of(lost));
}

std::string try_by_hand(const Broken& broken) {
  const auto one = [](const PathEnd& end) {
    const std::string gid = end.gid_index < 0 ? "" : " -g " + std::to_string(end.gid_index);
    return fmt::format("ibv_rc_pingpong -d {} -i {}{}", shell_quote(end.device), end.port, gid);
  };
  return fmt::format("{}   # on {} first: {}",
                     one(broken.sender) + " " + shell_quote(broken.receiver.node->host),
                     broken.receiver.node->host, one(broken.receiver));
}

Evidence seen(const Case& c, const Broken& broken) {
  const bool passes = tcp_between(c, *broken.path) == Tcp::passes;
  const bool hangs = broken.path->error.empty();
  return {.node = hangs ? broken.path->from : broken.path->failed_at,
          .fact = fmt::format("rdma path {}/{} -> {}/{}", broken.path->from, broken.sender.name(),
                              broken.path->to, broken.receiver.name()),
          .observed = observed(*broken.path),
          .expected = passes ? "RC messages that arrive, as TCP between these nodes does"
                             : "RC messages that arrive",
          .command = try_by_hand(broken)};
}

std::string path_device(const std::string& node, const std::string& device) {
  return node + "/" + device;
}

Finding finding_of(const Case& c, const Broken& broken, std::string_view code) {
  const bool steps = !broken.path->error.empty();
  Finding finding{.code = std::string(code),
                  .severity = capped(c, Severity::blocker),
                  .certainty = Certainty::proved,
                  .symptom = steps ? Symptom::crash : Symptom::hang,
                  .subjects = {.nodes = {broken.path->from, broken.path->to},
                               .devices = {path_device(broken.path->from, broken.sender.device),
                                           path_device(broken.path->to, broken.receiver.device)},
                               .pairs = {{broken.path->from, broken.path->to}}},
                  .summary = ""};
  finding.evidence = {seen(c, broken)};
  return finding;
}

std::string ends(const Broken& broken) {
  if (!broken.path->roce) return "";
  return fmt::format(" (GID {}, {})", broken.sender.gid, broken.receiver.gid);
}

// --- the causes that the path itself tells ---

void report_filter(const Case& c, const Broken& broken, const Filtered& at, Judge& judge) {
  Finding finding = finding_of(c, broken, "rdma-path-filtered");
  const char* what = at.way == Way::in ? "comes in" : "goes out";
  finding.summary = fmt::format(
      "{} drops what software RDMA sends (UDP {}): {} ends what {}, so nothing passes between {}",
      at.end.node->host, kRoceV2, text_of(at.stop), what, broken.way());
  finding.evidence.push_back(
      evidence_of(at.end.node->host, at.stop, fmt::format("UDP {} of the peers", kRoceV2)));
  finding.fix = let_through(at);
  judge.report(std::move(finding));
}

bool is_no_route(const RdmaPath& path) {
  return path.roce && (path.error_code == ENETUNREACH || path.error_code == EHOSTUNREACH ||
                       path.error_code == ETIMEDOUT);
}

void report_route(const Case& c, const Broken& broken, Judge& judge) {
  const bool at_sender = broken.path->failed_at == broken.path->from;
  const PathEnd& here = at_sender ? broken.sender : broken.receiver;
  const PathEnd& there = at_sender ? broken.receiver : broken.sender;
  const auto peer = address_of_gid(there.gid);
  const std::string whom = peer ? peer->text() : there.gid;
  Finding finding = finding_of(c, broken, "rdma-no-route");
  finding.summary =
      fmt::format("{} of {} finds no way to {}, the RDMA address of {} on {}{}", here.name(),
                  here.node->host, whom, there.name(), there.node->host, ends(broken));
  const std::string netdev = here.node->rdma.known() ? netdev_of(here) : "";
  finding.evidence.front().command = fmt::format(
      "ip route get {}{}; {}", whom, netdev.empty() ? "" : " oif " + shell_quote(netdev),
      finding.evidence.front().command);
  finding.fix = {{.node = here.node->host,
                  .kind = Fix::Kind::manual,
                  .text = fmt::format(
                      "give {} a route to {} on that port's own interface, or address both ports "
                      "in one subnet; a neighbour that does not answer is a VLAN or a switch port",
                      here.name(), whom)}};
  judge.report(std::move(finding));
}

// A container may see the host's device in sysfs, and not the interface that its addresses are on.
std::string netdev_elsewhere(const PathEnd& end) {
  const std::string netdev = end.node->rdma.known() ? netdev_of(end) : "";
  if (netdev.empty() || !end.node->links.known()) return "";
  return find_link(*end.node->links, netdev) == nullptr ? netdev : "";
}

void report_namespace(const Case& c,
                      const Broken& broken,
                      const std::string& netdev,
                      Judge& judge) {
  const PathEnd& here =
      broken.path->failed_at == broken.path->from ? broken.sender : broken.receiver;
  Finding finding = finding_of(c, broken, "rdma-netns");
  finding.summary = fmt::format(
      "{} of {} refuses connections: {}, the interface of its address {}, "
      "is not in this network namespace",
      here.name(), here.node->host, netdev, here.gid);
  finding.evidence.push_back(
      {.node = here.node->host,
       .fact = "net.links",
       .observed = "no " + netdev,
       .expected = "the interface that " + here.name() + " belongs to",
       .context = std::string(slug(here.node->context)),
       .command = "ip link show dev " + shell_quote(netdev) + "; rdma link"});
  finding.fix = {{.node = here.node->host,
                  .kind = Fix::Kind::manual,
                  .text = "start the container in the host's network (docker --network=host, "
                          "Kubernetes hostNetwork: true), or give it the port with its interface "
                          "(a virtual function by the SR-IOV or RDMA CNI plugin)"}};
  judge.report(std::move(finding));
}

// One packet passes, a message of many does not.
bool large_ones_vanish(const RdmaPath& path) {
  return path.error.empty() && path.messages.size() > 1 && path.messages.front().arrived &&
         path.messages.front().status_code == 0;
}

std::string where_to_look(const Broken& broken) {
  if (!broken.path->roce) {
    return "`ibdiagnet` and `ibtracert` between the two LIDs: routing of the subnet manager, "
           "partitions, a bad cable";
  }
  if (is_driven_by(broken.sender, "siw") || is_driven_by(broken.receiver, "siw")) {
    return "Soft-iWARP (siw) connects by librdmacm alone, which NCCL does not use: leave it out "
           "with NCCL_IB_HCA";
  }
  if (through_host(broken.sender)) {
    return "UDP 4791 between the two nodes: security group, network policy, switch ACL";
  }
  return "what lies between the ports: switch ACL, security group or VLAN for UDP 4791, the GID "
         "index, PFC and ECN, a flapping link. The hosts' own packet filters do not see it";
}

bool is_second_try(const Case& c, const RdmaPath& path) {
  const auto& all = c.cluster.rdma_paths;
  const auto first =
      std::ranges::find_if(all, [&](const RdmaPath& other) { return same_ends(other, path); });
  return &*first != &path;
}

// What is broken is tried once more. Null: there was no time.
const RdmaPath* second_try(const Case& c, const RdmaPath& path) {
  for (const RdmaPath& other : c.cluster.rdma_paths) {
    if (&other != &path && same_ends(other, path)) return &other;
  }
  return nullptr;
}

bool passed_later(const Case& c, const RdmaPath& path) {
  const RdmaPath* const again = second_try(c, path);
  return again != nullptr && again->error.empty() && !is_broken(*again);
}

// Between the same nodes, over their other ports, the same.
std::vector<const RdmaPath*> alike(const Case& c, const RdmaPath& path) {
  std::vector<const RdmaPath*> all;
  for (const RdmaPath& other : c.cluster.rdma_paths) {
    const bool same_nodes = other.from == path.from && other.to == path.to;
    const bool same_fate = is_broken(other) && observed(other) == observed(path) &&
                           passed_later(c, other) == passed_later(c, path);
    if (same_nodes && same_fate && !is_second_try(c, other)) all.push_back(&other);
  }
  return all;
}

// One try may meet with a busy peer, or a link that comes up.
void weigh_tries(const Case& c, const Broken& broken, Finding& finding) {
  const RdmaPath* const again = second_try(c, *broken.path);
  if (again == nullptr || !is_broken(*again)) finding.certainty = Certainty::likely;
  if (!passed_later(c, *broken.path)) return;
  finding.certainty = Certainty::possible;
  finding.severity = std::min(finding.severity, Severity::degraded);
  finding.symptom = Symptom::slow;
  finding.summary += "; a second try passed";
}

void report_lost(const Case& c, const Broken& broken, Judge& judge) {
  const auto all = alike(c, *broken.path);
  if (all.front() != broken.path) return;
  const bool large = large_ones_vanish(*broken.path);
  const char* though = tcp_between(c, *broken.path) == Tcp::passes ? ", though TCP does" : "";
  Finding finding = finding_of(c, broken, large ? "rdma-path-large-lost" : "rdma-path-failed");
  finding.summary =
      large ? fmt::format("between {} small RDMA messages arrive and large ones do not: {}",
                          broken.way(), observed(*broken.path))
            : fmt::format("no RDMA message passes between {}{}: {}{}", broken.way(), though,
                          observed(*broken.path), ends(broken));
  if (all.size() > 1) {
    finding.summary += fmt::format("; {} of their other ports fare alike", all.size() - 1);
  }
  weigh_tries(c, broken, finding);
  for (const RdmaPath* other : all) {
    if (other == broken.path) continue;
    finding.subjects.devices.push_back(path_device(other->from, other->from_device));
    finding.subjects.devices.push_back(path_device(other->to, other->to_device));
  }
  const char* by_size =
      "compare the MTU of both ports' interfaces and of every switch port between them (RoCE adds "
      "58 bytes and more to each packet), then PFC and ECN";
  finding.fix = {{.node = "*",
                  .kind = Fix::Kind::manual,
                  .text = large ? std::string(by_size) : where_to_look(broken)}};
  judge.report(std::move(finding));
}

// --- the run ---

void miss(const std::string& node, Unknown why, Judge& judge) {
  judge.miss({.node = node, .fact = std::string(kRdmaTraffic), .why = std::move(why)});
}

std::string text_of(const Broken& broken) {
  return fmt::format("{} to {} of {}", broken.sender.name(), broken.receiver.name(),
                     broken.receiver.node->host);
}

// No message was sent, for a reason that is no matter of the way between the ports; or TCP does not
// pass there either.
void note_unjudged(const Broken& broken, Judge& judge) {
  const RdmaPath& path = *broken.path;
  if (!is_broken(path) && (!path.error.empty() || path.messages.empty())) {
    const std::string what = path.error.empty() ? "none were sent" : path.error;
    const std::string at = path.failed_at.empty() ? "" : " on " + path.failed_at;
    miss(path.from, {Why::failed, fmt::format("{}: {}{}", text_of(broken), what, at)}, judge);
  } else if (is_broken(path)) {
    miss(path.from, {Why::failed, text_of(broken) + ": TCP does not pass there either"}, judge);
  }
}

void report_broken(const Case& c, const Broken& broken, Judge& judge) {
  const RdmaPath& path = *broken.path;
  if (passed_later(c, path)) return report_lost(c, broken, judge);
  if (!path.error.empty()) {
    const bool at_sender = path.failed_at == path.from;
    const auto netdev = netdev_elsewhere(at_sender ? broken.sender : broken.receiver);
    if (!netdev.empty()) return report_namespace(c, broken, netdev, judge);
    if (is_no_route(path)) return report_route(c, broken, judge);
  } else if (const auto at = filtered_between(broken.sender, broken.receiver)) {
    return report_filter(c, broken, *at, judge);
  }
  report_lost(c, broken, judge);
}

void judge_path(const Case& c, const RdmaPath& path, Judge& judge) {
  const Broken broken{&path, sender_of(c, path), receiver_of(c, path)};
  if (broken.sender.node == nullptr || broken.receiver.node == nullptr) return;
  if (is_second_try(c, path)) return;
  if (!is_broken(path) || tcp_between(c, path) == Tcp::fails) return note_unjudged(broken, judge);
  report_broken(c, broken, judge);
}

// What of the ports in use nobody tried.
void note_untried(const Case& c, Judge& judge) {
  const auto nodes = rdma_nodes(c, judge);
  const auto using_it =
      std::ranges::count_if(nodes, [](const RdmaNode& one) { return !one.hcas->used.empty(); });
  bool told = !c.cluster.rdma_paths.empty() || using_it < 2;
  for (const Untried& row : c.cluster.untried) {
    if (row.what != kRdmaTraffic) continue;
    miss(row.node, row.why, judge);
    told = true;
  }
  if (!told) miss("", {Why::not_collected, "none were sent"}, judge);
  const bool idle = using_it < 2 && c.cluster.rdma_paths.empty();
  if (idle && any_device(nodes)) judge.skip("RDMA is not used between two nodes");
}

void run(const Case& c, Judge& judge) {
  note_untried(c, judge);
  for (const RdmaPath& path : c.cluster.rdma_paths) judge_path(c, path, judge);
}

constexpr std::string_view kConfirm =
    "`ibv_rc_pingpong -d mlx5_0 -g INDEX` on one node, then the same with that node's name on the "
    "other; `ib_write_bw` in the same way.";
constexpr std::string_view kVerify =
    "`ibv_rc_pingpong` ends with a rate on both nodes; `distdoctor check` finds nothing.";
constexpr Page kFailedPage{
    .meaning =
        "An RC connection between two ports that NCCL would use was made, and nothing came "
        "through: the sender got no acknowledgement (`transport retry counter exceeded`, NCCL's "
        "`status=12`), or the port refused the connection. Bootstrap and rendezvous use TCP and "
        "may go well; the job then hangs, and after its retries it fails.",
    .confirm = kConfirm,
    .fix =
        "RoCE: what drops UDP 4791 between the ports (switch ACL, security group, VLAN), another "
        "GID index, PFC and ECN. InfiniBand: routing, partitions, cables. Hardware RDMA does not "
        "pass the hosts' packet filters. Until then NCCL_IB_DISABLE=1 uses sockets, slowly.",
    .verify = kVerify};
constexpr Page kFilteredPage{
    .meaning =
        "Soft-RoCE (rxe) is ordinary UDP to the kernel, port 4791, and the packet filter of a node "
        "ends it.",
    .confirm = kConfirm,
    .fix = "One rule that lets the peers' UDP 4791 in, before the rule that decides.",
    .verify = kVerify};
constexpr Page kRoutePage{
    .meaning =
        "The address behind the other port's GID cannot be reached from this port's interface: no "
        "route, or a neighbour that does not answer. NCCL says `Call to ibv_modify_qp failed with "
        "110 Connection timed out` or `101 Network is unreachable`.",
    .confirm = "`ip route get ADDRESS oif NETDEV`, `ping -I NETDEV ADDRESS`.",
    .fix =
        "Routes between the subnets of the RDMA interfaces, or ports of one rail in one subnet, "
        "all in the right VLAN; NCCL_IB_HCA leaves a port out that leads nowhere.",
    .verify = kVerify};
constexpr Page kNamespacePage{
    .meaning =
        "RoCE sends from the address of a network interface. A container with a network of its own "
        "sees the host's RDMA devices in sysfs, and may open them, but the interface and with it "
        "the address are in the host's namespace: NCCL's `ibv_modify_qp` fails. With `rdma system "
        "set netns exclusive` the device is not seen at all.",
    .confirm =
        "`cat /sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3`, then `ip link`; "
        "`rdma system`.",
    .fix = "The host's network for the container, or an RDMA port of its own with its interface.",
    .verify = kVerify};
constexpr Page kLargePage{
    .meaning =
        "A message of one packet arrives, one of many does not: something on the way drops large "
        "packets, or packets under load. The ports' MTU fits their own interfaces, and a switch "
        "port between them has a smaller one.",
    .confirm = "`ibv_rc_pingpong -s 64` works and `-s 1048576` does not; `ping -M do -s 4200`.",
    .fix = "The same MTU on every switch port, some hundred bytes above the RDMA MTU of 4096.",
    .verify = kVerify};
constexpr Code kCodes[] = {{.id = "rdma-path-failed",
                            .fault_class = FaultClass::ib_retry_timeout,
                            .worst = Severity::blocker,
                            .title = "RDMA messages do not arrive",
                            .causes = {},
                            .page = kFailedPage},
                           {.id = "rdma-path-filtered",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "A packet filter drops software RDMA",
                            .causes = {},
                            .page = kFilteredPage},
                           {.id = "rdma-no-route",
                            .fault_class = FaultClass::roce_no_route,
                            .worst = Severity::blocker,
                            .title = "An RDMA port finds no way to the other",
                            .causes = {},
                            .page = kRoutePage},
                           {.id = "rdma-netns",
                            .fault_class = FaultClass::container_rdma_netns,
                            .worst = Severity::blocker,
                            .title = "An RDMA port's interface is in another network namespace",
                            .causes = {},
                            .page = kNamespacePage},
                           {.id = "rdma-path-large-lost",
                            .fault_class = FaultClass::mtu_mismatch,
                            .worst = Severity::blocker,
                            .title = "Large RDMA messages do not arrive",
                            .causes = {},
                            .page = kLargePage}};

}  // namespace

extern const Check rdma_path{.title = "RDMA messages pass between the nodes",
                             .codes = kCodes,
                             .run = run,
                             .needs = Needs::rdma};

}  // namespace distdoctor::checks
