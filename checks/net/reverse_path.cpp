// Under strict rp_filter a packet must come in by the link that its answer would leave by.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/routing.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

struct Refused {
  RoutingTrouble trouble;
  Address source;  // what arrives: at the dialler it is the peer's address
  std::string other;
  Certainty certainty;
  Purpose purpose;
};

bool strict(const RoutingTrouble& trouble) {
  return trouble.kind == RoutingTrouble::Kind::strict_at_target ||
         trouble.kind == RoutingTrouble::Kind::strict_at_dialler;
}

std::optional<Refused> refused(const Case& c, const PairFacts& pair, const Dial& dial) {
  const NodeFacts* from = find_node(c.cluster, pair.from);
  const NodeFacts* to = find_node(c.cluster, pair.to);
  if (dial.outcome != Outcome::timed_out || from == nullptr || to == nullptr) return std::nullopt;
  RoutingTrouble trouble = routing_trouble(*from, *to, dial);
  const auto& source = source_of(dial);
  if (!strict(trouble) || !source) return std::nullopt;
  const bool at_target = trouble.kind == RoutingTrouble::Kind::strict_at_target;
  const bool seen = dial.syn_arrived.known() && *dial.syn_arrived;
  return Refused{std::move(trouble), at_target ? *source : dial.address,
                 at_target ? pair.from : pair.to, seen ? Certainty::proved : Certainty::likely,
                 dial.purpose};
}

// One finding for each node and link that packets come in by in vain.
using Group = std::vector<Refused>;
std::vector<Group> groups_of(const Case& c) {
  std::vector<Group> groups;
  for (const PairFacts& pair : c.cluster.pairs) {
    for (const Dial& dial : pair.dials) {
      const auto row = refused(c, pair, dial);
      if (!row) continue;
      const auto group = std::ranges::find_if(groups, [&](const Group& known) {
        return known.front().trouble.node == row->trouble.node &&
               known.front().trouble.arrives_by == row->trouble.arrives_by;
      });
      if (group == groups.end()) {
        groups.push_back({*row});
      } else {
        group->push_back(*row);
      }
    }
  }
  return groups;
}

std::string name_of_conf(const RoutingTrouble& trouble) {
  return fmt::format("net.ipv4.conf.{}.rp_filter", trouble.arrives_by);
}

void report(const Case& c, const Group& group, Judge& judge) {
  const Refused& first = group.front();
  const RoutingTrouble& trouble = first.trouble;
  std::vector<Purpose> purposes;
  for (const Refused& row : group) purposes.push_back(row.purpose);
  Finding finding{
      .code = "net-reverse-path",
      .severity = capped_by_purposes(c.cluster.job, Severity::blocker, purposes),
      .certainty = std::ranges::max(group, {}, &Refused::certainty).certainty,
      .symptom = Symptom::hang,
      .subjects = {.nodes = {trouble.node->host}},
      .summary = fmt::format("{} drops what comes in by {}: strict rp_filter, and its "
                             "answers would leave by {}",
                             trouble.node->host, trouble.arrives_by, trouble.leaves_by)};
  std::vector<Address> seen;
  for (const Refused& row : group) {
    if (std::ranges::find(seen, row.source) != seen.end()) continue;
    seen.push_back(row.source);
    finding.subjects.pairs.emplace_back(trouble.node->host, row.other);
    finding.evidence.push_back(
        {.node = trouble.node->host,
         .fact = name_of_conf(trouble),
         .observed =
             fmt::format("1 (strict); {} ({}) comes in by {}, the answer would leave by {}",
                         row.source.text(), row.other, trouble.arrives_by, row.trouble.leaves_by),
         .expected = "one link both ways, or 2 (loose)",
         .command =
             fmt::format("sysctl net.ipv4.conf.all.rp_filter {}; ip route get {}",
                         shell_quote(name_of_conf(trouble)), shell_quote(row.source.text()))});
  }
  finding.fix.push_back(
      {.node = trouble.node->host,
       .kind = Fix::Kind::shell,
       .command = fmt::format("sysctl -w {}=2", shell_quote(name_of_conf(trouble))),
       .text = "as root; loose mode still drops what no route leads back to. Or mend the route, so "
               "that answers leave by " +
               trouble.arrives_by});
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    judge.see(node, "net.kernel", node.kernel);
    judge.see(node, "net.routes", node.routes);
    judge.see(node, "net.rules", node.rules);
  }
  for (const Group& group : groups_of(c)) report(c, group, judge);
}

constexpr std::string_view kCauses[] = {"net-peer-unreachable", "net-one-way-dropped",
                                        "net-ephemeral-dropped", "rendezvous-port-unreachable",
                                        "rendezvous-port-dropped"};
constexpr Page kPage{
    .meaning =
        "Strict reverse path filtering (rp_filter=1, RFC 3704) drops a packet that came in by "
        "another link than the answer would leave by. With two links and routes that do not "
        "mirror each other the job's connections vanish without a trace.",
    .confirm =
        "`ip route get SOURCE` names another link than the one on which `tcpdump -ni any host "
        "SOURCE` sees the packets; `nstat -az TcpExtIPReversePathFilter` grows.",
    .fix = "Mend the routes, or `sysctl -w net.ipv4.conf.LINK.rp_filter=2`.",
    .verify = "`nstat -az TcpExtIPReversePathFilter` stays where it is while nodes connect."};
constexpr Code kCodes[] = {{.id = "net-reverse-path",
                            .fault_class = FaultClass::no_route,
                            .worst = Severity::blocker,
                            .title = "Strict rp_filter drops the job's packets",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_reverse_path{.title = "Packets come and go by the same link",
                                    .codes = kCodes,
                                    .run = run,
                                    .needs = Needs::pairs};

}  // namespace distdoctor::checks
