// NCCL and Gloo connect to ports that the kernel picks: the whole local port range must be open.
#include "lanes.h"

namespace distdoctor::checks {
namespace {

std::string which_ports(const LaneReadings& rows) {
  const LaneReading& first = rows.front();
  const bool all = first.failed.size() == first.lane.inside.size();
  const auto range = range_of(*first.lane.to);
  if (all) return range ? fmt::format("ephemeral ports ({})", range->text()) : "ephemeral ports";
  return fmt::format("ephemeral ports from {} to {}{}", first.failed.front()->port,
                     first.failed.back()->port, range ? " (of " + range->text() + ")" : "");
}

std::string but(const LaneReading& row) {
  if (passes(row.lane.master)) return "; MASTER_PORT passes";
  if (passes(row.lane.outside)) return fmt::format("; port {} passes", row.lane.outside->port);
  return "";
}

void report(const Case& c, const LaneReadings& rows, Judge& judge) {
  const bool dropped = rows.front().state == LaneState::dropped;
  const char* verb = dropped ? "dropped" : "rejected";
  Finding finding = finding_about(c, rows, fmt::format("net-ephemeral-{}", verb));
  finding.summary = fmt::format(
      "connections from {} to the {} of {} are {} {}{}", list(hosts_of(rows, &Lane::from)),
      which_ports(rows), list(hosts_of(rows, &Lane::to)), verb, spot_text(rows), but(rows.front()));
  finding.fix = open_the_way(rows);
  conclude(c, rows, std::move(finding), judge);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  const auto lanes = lanes_in(c.cluster, {LaneState::dropped, LaneState::rejected});
  note_doubts(lanes, judge);
  for (const auto& rows : by_spot(lanes)) report(c, rows, judge);
}

constexpr Page kDroppedPage{
    .meaning =
        "The rendezvous works, then the job hangs: NCCL and Gloo listen on ports that the kernel "
        "picks from net.ipv4.ip_local_port_range and announce them to each other; a packet filter "
        "swallows what comes for them. Opening MASTER_PORT alone is not enough.",
    .confirm =
        "`nc -l 40000` on the one node, `nc -vz -w 3 ADDRESS 40000` from the other hangs; `tcpdump "
        "-ni any tcp port 40000` there shows whether the packet arrives.",
    .fix =
        "Allow TCP from the peers to the whole range of `sysctl net.ipv4.ip_local_port_range`, "
        "through the tool that owns the filter; or narrow that range on every node and allow the "
        "narrow one.",
    .verify = "`nc -vz -w 3 ADDRESS 40000` succeeds while `nc -l 40000` runs."};
constexpr Page kRejectedPage{
    .meaning =
        "As net-ephemeral-dropped, but the filter answers: a reset, or an ICMP error. Gloo says "
        "`Connection refused` or `No route to host`, NCCL retries and gives up.",
    .confirm =
        "`nc -l 40000` on the one node, `nc -vz ADDRESS 40000` from the other fails at once; look "
        "for `reject` in `nft list ruleset` and `iptables -S`.",
    .fix = "Allow TCP from the peers to the whole range, before the rule that rejects.",
    .verify = "`nc -vz ADDRESS 40000` succeeds while `nc -l 40000` runs."};
constexpr Code kCodes[] = {{.id = "net-ephemeral-dropped",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "Connections to ephemeral ports are dropped",
                            .causes = {},
                            .page = kDroppedPage},
                           {.id = "net-ephemeral-rejected",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "Connections to ephemeral ports are rejected",
                            .causes = {},
                            .page = kRejectedPage}};

}  // namespace

extern const Check net_ephemeral_ports{.title = "Ephemeral ports are open between the nodes",
                                       .codes = kCodes,
                                       .run = run,
                                       .needs = Needs::pairs};

}  // namespace distdoctor::checks
