// A pair of nodes must be open both ways: who listens and who connects is not ours to choose.
#include "lanes.h"

namespace distdoctor::checks {
namespace {

void report(const Case& c, const LaneReadings& rows, Judge& judge) {
  const std::string from = list(hosts_of(rows, &Lane::from));
  const std::string to = list(hosts_of(rows, &Lane::to));
  Finding finding = finding_about(c, rows, "net-one-way-dropped");
  finding.summary = fmt::format("{} can connect to {}, but all that {} opens to {} is dropped {}",
                                to, from, from, to, spot_text(rows));
  finding.fix = open_the_way(rows);
  conclude(c, rows, std::move(finding), judge);
}

void run(const Case& c, Judge& judge) {
  note_untested(c.cluster, judge);
  const auto lanes = lanes_in(c.cluster, {LaneState::one_way});
  note_doubts(lanes, judge);
  for (const auto& rows : by_spot(lanes)) report(c, rows, judge);
}

constexpr std::string_view kCauses[] = {"rendezvous-port-dropped", "net-ephemeral-dropped",
                                        "collective-interface-wrong"};
constexpr Page kPage{
    .meaning =
        "One direction is open, new connections in the other one vanish, on every port: a stateful "
        "filter that lets answers pass, or a security group that names only one of the two. Which "
        "ranks listen follows from their numbers, so the job hangs.",
    .confirm =
        "`nc -l 40000` on the one node and `nc -vz -w 3 ADDRESS 40000` on the other; then the "
        "other way round.",
    .fix = "Allow TCP from the peer in the filter of the node that drops, or in what lies between.",
    .verify = "`nc -vz` succeeds in both directions."};
constexpr Code kCodes[] = {{.id = "net-one-way-dropped",
                            .fault_class = FaultClass::firewall,
                            .worst = Severity::blocker,
                            .title = "Connections pass in one direction only",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_one_way{.title = "Connections pass in both directions",
                               .codes = kCodes,
                               .run = run,
                               .needs = Needs::pairs};

}  // namespace distdoctor::checks
