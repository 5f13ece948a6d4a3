// Plain TCP is about as fast from and to each node. It is measured only where a collective was run.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/wire_speeds.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace distdoctor::checks {
namespace {

constexpr double kFarSlower = 0.5;  // than the middle one of the others
// Two nodes have nobody to compare with: then one direction against the other takes more.
constexpr double kLopsided = 0.25;
// Where the kernel knows no speed of the links (virtual machines, containers) a processor may be
// what limits a wire that is faster than this.
constexpr double kAnyProcessor = 1.25;  // GB/s
// Of physical links: up to here any processor fills them. What is slower than others and faster
// than this may be a processor that has other work.
constexpr double kEasilyFilled = 3.125;  // GB/s

using Wires = std::vector<MeasuredWire>;

double speed(const MeasuredWire& row) {
  return best_wire(*row.path);
}

// Seen twice, in runs of their own.
bool repeated(const MeasuredWire& row) {
  return wire_figures(*row.path, most_streams(*row.path)).size() > 1;
}

// Its links are slow, and it is as fast as they are.
bool as_fast_as_its_links(const MeasuredWire& row) {
  const auto links = claimed_gb_per_s(row);
  return links && speed(row) >= kFarSlower * *links;
}

bool may_be_the_processor(const MeasuredWire& row) {
  return !claimed_gb_per_s(row) && speed(row) >= kAnyProcessor;
}

// The lower middle one; none where there are less than two.
std::optional<double> middle(const Wires& rows) {
  std::vector<double> speeds;
  for (const MeasuredWire& row : rows) speeds.push_back(speed(row));
  if (speeds.size() < 2) return std::nullopt;
  std::ranges::sort(speeds);
  return speeds[(speeds.size() - 1) / 2];
}

bool far_slower(const MeasuredWire& row, double others) {
  return repeated(row) && speed(row) < kFarSlower * others && !may_be_the_processor(row);
}

bool touches(const MeasuredWire& row, const NodeFacts* node) {
  return row.from == node || row.to == node;
}

// --- words ---

// In bits, as links are sold.
std::string speed_text(double gb_per_s) {
  const double gbps = 8 * gb_per_s;
  return gbps < 1 ? fmt::format("{:.3g} Mb/s", 1000 * gbps) : fmt::format("{:.3g} Gb/s", gbps);
}

std::string way_text(const MeasuredWire& row) {
  return row.from->host + " -> " + row.to->host;
}

Evidence evidence_of(const MeasuredWire& row, std::string expected) {
  const std::string to = row.path->destination.text();
  const int streams = most_streams(*row.path);
  std::vector<std::string> speeds;
  for (const WireSpeed& figure : *row.path->wire) {
    speeds.push_back(fmt::format("{} by {}", speed_text(figure.gb_per_s), figure.streams));
  }
  return {.node = row.from->host,
          .fact = fmt::format("TCP to {} ({}) by {}", row.to->host, to, row.path->interface),
          .observed = fmt::format("{} streams", fmt::join(speeds, ", ")),
          .expected = std::move(expected),
          .command = fmt::format("iperf3 -c {} -P {}", shell_quote(to), streams)};
}

// --- findings ---

// What a person looks at, on a node with the interface that is slow there.
void add_fixes(const NodeFacts& node, const std::string& interface, Finding& finding) {
  if (interface.empty()) return;
  const std::string link = shell_quote(interface);
  Fix look{.node = node.host, .kind = Fix::Kind::shell, .text = ""};
  look.command =
      fmt::format("ethtool {0}; tc -s qdisc show dev {0}; ip -s -s link show dev {0}", link);
  look.text = "reads only: the speed that was negotiated, a rate limit, errors that grow";
  Fix mend{.node = node.host, .kind = Fix::Kind::manual, .text = ""};
  mend.text = fmt::format(
      "if it shows a tbf, htb or netem that nobody wants: `tc qdisc del dev {0} root` (as root); "
      "if the speed is less than the card's: cable, optics, switch port, then `ethtool -r {0}`; "
      "else what else uses the link, and a limit in the switch or of the virtual machine",
      link);
  finding.fix.insert(finding.fix.end(), {look, mend});
}

Finding finding_about(const Wires& slow, std::string summary) {
  Finding finding{.code = "net-wire-slow",
                  .severity = Severity::degraded,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::slow,
                  .summary = std::move(summary)};
  for (const MeasuredWire& row : slow) {
    finding.subjects.pairs.emplace_back(row.from->host, row.to->host);
  }
  return finding;
}

// --- a node among others ---

enum class Side : std::uint8_t { sends, receives };

Wires side_of(const Wires& all, const NodeFacts& node, Side side) {
  Wires rows;
  std::ranges::copy_if(all, std::back_inserter(rows), [&](const MeasuredWire& row) {
    return (side == Side::sends ? row.from : row.to) == &node;
  });
  return rows;
}

std::string link_name(const MeasuredWire& row, Side side) {
  if (side == Side::sends) return row.path->interface;
  const Link* link = receiving_link(row);
  return link == nullptr ? "" : link->name;
}

struct SlowNode {
  const NodeFacts* node;
  Wires wires = {};
  std::vector<Side> sides = {};
  double others = 0;  // GB/s
};

std::optional<SlowNode> slow_node(const Wires& all, const NodeFacts& node) {
  Wires rest = all;
  std::erase_if(rest, [&](const MeasuredWire& row) { return touches(row, &node); });
  const auto others = middle(rest);
  if (!others) return std::nullopt;
  SlowNode found{.node = &node, .others = *others};
  for (const Side side : {Side::sends, Side::receives}) {
    const Wires rows = side_of(all, node, side);
    const bool slow = rows.size() > 1 && std::ranges::all_of(rows, [&](const MeasuredWire& row) {
                        return far_slower(row, *others);
                      });
    if (!slow) continue;
    found.sides.push_back(side);
    found.wires.insert(found.wires.end(), rows.begin(), rows.end());
  }
  return found.sides.empty() ? std::nullopt : std::optional(std::move(found));
}

std::string what_it_does(const SlowNode& found) {
  if (found.sides.size() > 1) return "sends and receives";
  return found.sides.front() == Side::sends ? "sends" : "receives";
}

void report(const SlowNode& found, Judge& judge) {
  const double most = speed(std::ranges::max(found.wires, {}, speed));
  const bool explained = std::ranges::all_of(found.wires, as_fast_as_its_links);
  Finding finding = finding_about(
      found.wires,
      fmt::format("{} {} at {} at most by plain TCP, where the others reach {} among themselves{}",
                  found.node->host, what_it_does(found), speed_text(most), speed_text(found.others),
                  explained ? ": its link is that slow, by its own word" : ""));
  if (explained) finding.severity = Severity::notice;
  if (!explained && most >= kEasilyFilled) {
    finding.severity = Severity::notice;
    finding.certainty = Certainty::possible;
    finding.summary += "; at that speed a busy processor may be what limits it";
  }
  finding.subjects.nodes = {found.node->host};
  for (const MeasuredWire& row : found.wires) {
    finding.evidence.push_back(
        evidence_of(row, fmt::format("about {}, as among the others", speed_text(found.others))));
  }
  add_fixes(*found.node, link_name(found.wires.front(), found.sides.front()), finding);
  judge.report(std::move(finding));
}

// --- a pair that is slow, and its ends are not ---

void judge_pair(const Wires& all, const MeasuredWire& row, Judge& judge) {
  Wires rest = all;
  std::erase_if(rest, [&](const MeasuredWire& other) { return other.path == row.path; });
  const auto others = middle(rest);
  if (!others || !far_slower(row, *others)) return;
  const auto at_speed = [&](const MeasuredWire& other) {
    return speed(other) >= kFarSlower * *others;
  };
  const Wires sent = side_of(rest, *row.from, Side::sends);
  const Wires received = side_of(rest, *row.to, Side::receives);
  if (std::ranges::none_of(sent, at_speed) || std::ranges::none_of(received, at_speed)) return;
  Finding finding = finding_about(
      {row}, fmt::format("plain TCP {} reaches {}, and {} with others: it is what lies between",
                         way_text(row), speed_text(speed(row)), speed_text(*others)));
  finding.subjects.nodes = {row.from->host, row.to->host};
  finding.evidence = {evidence_of(row, fmt::format("about {}", speed_text(*others)))};
  Fix look{.node = "*", .kind = Fix::Kind::manual, .text = ""};
  look.text = fmt::format(
      "look at the way from {} to {}: switches and ports on it, `ip route get {}`, `tracepath -n "
      "{}`",
      row.from->host, row.to->host, shell_quote(row.path->destination.text()),
      shell_quote(row.path->destination.text()));
  finding.fix = {look};
  judge.report(std::move(finding));
}

// --- two nodes ---

// A card of the machine itself. That of a virtual machine claims any speed; of a bond each stream
// gets one member.
bool physical(const NodeFacts& node, const Link* link) {
  return link != nullptr && link->kind == LinkKind::ethernet && node.pci.known() &&
         !node.pci->virtual_machine;
}
bool physical(const MeasuredWire& row) {
  return physical(*row.from, sending_link(row)) && physical(*row.to, receiving_link(row));
}

// Against its own links, or against the other direction: why it is too slow; empty: it is not.
std::string too_slow(const MeasuredWire& row, const MeasuredWire& back) {
  if (!repeated(row) || may_be_the_processor(row) || as_fast_as_its_links(row)) return "";
  if (speed(row) < kLopsided * speed(back)) {
    return fmt::format("about {}, as the other way", speed_text(speed(back)));
  }
  const auto links = claimed_gb_per_s(row);
  const bool far_below =
      links && *links <= kEasilyFilled && speed(row) < kFarSlower * *links && physical(row);
  return far_below ? fmt::format("about {}, the speed of the links", speed_text(*links)) : "";
}

void judge_two(const Wires& all, Judge& judge) {
  if (all.size() != 2 || all[0].from != all[1].to) return;
  Wires slow;
  std::vector<std::string> reasons;
  for (const std::size_t i : {0U, 1U}) {
    const std::string reason = too_slow(all[i], all[1 - i]);
    if (reason.empty()) continue;
    slow.push_back(all[i]);
    reasons.push_back(reason);
  }
  if (slow.empty()) return;
  Finding finding = finding_about(
      slow, fmt::format("plain TCP {} reaches {}, expected {}; {} or {}, or what lies between",
                        way_text(slow.front()), speed_text(speed(slow.front())), reasons.front(),
                        slow.front().from->host, slow.front().to->host));
  finding.certainty = Certainty::possible;
  finding.subjects.nodes = {slow.front().from->host, slow.front().to->host};
  for (std::size_t i = 0; i < slow.size(); ++i) {
    finding.evidence.push_back(evidence_of(slow[i], reasons[i]));
  }
  add_fixes(*slow.front().from, link_name(slow.front(), Side::sends), finding);
  add_fixes(*slow.front().to, link_name(slow.front(), Side::receives), finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const Wires all = measured_wires(c.cluster);
  if (all.empty()) judge.skip("plain TCP was not measured: bisect does so");
  std::vector<const NodeFacts*> nodes;
  for (const NodeFacts& node : c.cluster.nodes) {
    const bool measured =
        std::ranges::any_of(all, [&](const MeasuredWire& row) { return touches(row, &node); });
    if (measured) nodes.push_back(&node);
  }
  if (nodes.size() == 2) return judge_two(all, judge);
  std::vector<const NodeFacts*> slow;
  for (const NodeFacts* node : nodes) {
    const auto found = slow_node(all, *node);
    if (!found) continue;
    report(*found, judge);
    slow.push_back(node);
  }
  for (const MeasuredWire& row : all) {
    const bool told =
        std::ranges::any_of(slow, [&](const NodeFacts* node) { return touches(row, node); });
    if (!told) judge_pair(all, row, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kCauses[] = {"collective-place-slow", "collective-below-links"};
constexpr Page kPage{
    .meaning =
        "`bisect` fills the wire with plain TCP for a second, by one stream and by several, "
        "between the addresses that the collective uses and while nothing else of its own is under "
        "way. One node, or one way between two, carried less than half of what the others carry, "
        "and did so again. A collective is never faster than its slowest wire.",
    .confirm =
        "`iperf3 -s` on one node, `iperf3 -c ADDRESS -P 8` on the other; both ways, and between "
        "others.",
    .fix =
        "`ethtool LINK` (a speed that was negotiated too low), `tc -s qdisc show dev LINK` (a rate "
        "limit), `ip -s -s link show dev LINK` (errors), who else uses the link (`sar -n DEV 1`), "
        "the switch port, the limit of a virtual machine's type. Until then: another interface "
        "(NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME), or without this node.",
    .verify = "iperf3 shows the same between all nodes; `distdoctor bisect` no longer tells this."};
constexpr Code kCodes[] = {{.id = "net-wire-slow",
                            .fault_class = FaultClass::one_slow_node,
                            .worst = Severity::degraded,
                            .title = "A node's wire is far slower than the others'",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_slow_wire{.title = "Plain TCP is as fast from and to each node",
                                 .codes = kCodes,
                                 .run = run,
                                 .needs = Needs::pairs};

}  // namespace distdoctor::checks
