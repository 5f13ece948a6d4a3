// The links that carry the job's data run at one speed on all nodes.
#include <distdoctor/check.h>

#include "carried.h"

#include <utility>

namespace distdoctor::checks {
namespace {

constexpr int kFarSlower = 2;  // times
// Of copper: what is left of 1 Gb/s and more with two pairs out of four. No card of today is
// made for it.
constexpr int kFallenBack = 100;  // Mb/s

struct Slow {
  std::vector<InUse> uses = {};
  const InUse* model = nullptr;  // what they are held against
  bool clear = false;            // most nodes are as fast as that
};

// Nodes that use as many links as most do. Of two, or of as many on each side, the slower ones.
Slow slower_ones(const std::vector<InUse>& uses) {
  Slow slow;
  const auto count = [](const InUse& use) { return use.links.size(); };
  const auto usual = usual_value(uses, &InUse::mbps);
  const auto links = usual_value(uses, count);
  if (!usual || !links) return slow;
  slow.clear = usual->clear;
  const int wanted = usual->clear ? usual->value : std::ranges::max(uses, {}, &InUse::mbps).mbps;
  slow.model = &*std::ranges::find(uses, wanted, &InUse::mbps);
  for (const InUse& use : uses) {
    if (use.mbps < wanted && use.links.size() == slow.model->links.size()) slow.uses.push_back(use);
  }
  return slow;
}

bool far_slower(const InUse& use, const InUse& model) {
  return model.mbps >= kFarSlower * use.mbps;
}

bool fell_back(const InUse& use, const InUse& model) {
  return use.links.size() == 1 && use.mbps <= kFallenBack && model.mbps >= 10 * kFallenBack;
}

// Two kinds of machines may be meant; one machine that is not like the others rarely is.
bool proved_odd(const Slow& slow) {
  return std::ranges::all_of(slow.uses, [&](const InUse& use) {
    return fell_back(use, *slow.model) || (slow.clear && far_slower(use, *slow.model));
  });
}

void add(const InUse& use, const InUse& model, Finding& finding) {
  const std::string& host = use.node->host;
  const std::string link = shell_quote(use.links.front());
  finding.subjects.nodes.push_back(host);
  for (const std::string& name : use.links) finding.subjects.devices.push_back(host + "/" + name);
  finding.evidence.push_back(
      {.node = host,
       .fact = "data.link",
       .observed = carried_by(use),
       .expected = fmt::format("{}, as on {}", speed_text(model.mbps), model.node->host),
       .command = "ethtool " + link});
  finding.fix.push_back(
      {.node = host,
       .kind = Fix::Kind::manual,
       .text =
           fmt::format("`ethtool {0}` lists what the card and its partner can do; where both can "
                       "do more: cable, transceiver, the switch's port, `ethtool -s {0} autoneg "
                       "on` (the link is down for seconds: while no job uses it)",
                       link)});
}

void judge_library(const Case& c, const Library& library, Judge& judge) {
  std::vector<InUse> uses;
  for (const NodeFacts& node : c.cluster.nodes) {
    auto use = in_use(c, library, node);
    if (!use) return;
    uses.push_back(*std::move(use));
  }
  const Slow slow = slower_ones(uses);
  if (slow.uses.empty()) return;
  const bool odd = proved_odd(slow);
  Finding finding{
      .code = "net-link-speed-differs",
      .severity = capped_by_use(odd ? Severity::degraded : Severity::notice, library.use),
      .certainty = odd ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::slow,
      .summary = ""};
  for (const InUse& use : slow.uses) add(use, *slow.model, finding);
  finding.summary = fmt::format(
      "{}'s data goes over {} on {}, and over {} on {}: all wait for the slowest", library.name,
      carried_by(slow.uses.front()), fmt::join(finding.subjects.nodes, ", "),
      carried_by(*slow.model), slow.clear ? "most nodes" : slow.model->node->host);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Library& library : carrying_data(c, judge)) judge_library(c, library, judge);
}

constexpr std::string_view kCauses[] = {"net-wire-slow", "collective-place-slow",
                                        "collective-below-links"};
constexpr Page kPage{
    .meaning =
        "A collective is as fast as its slowest link. On some nodes the link that carries the data "
        "says that it is slower than that of the others: it was negotiated down (a damaged cable "
        "leaves 100 Mb/s of 1 Gb/s), sits in another port of the switch, or is another card.",
    .confirm =
        "`ethtool LINK` on both: `Speed`, `Supported link modes`, `Link partner advertised "
        "link modes`.",
    .fix =
        "Cable, transceiver, the switch's port; autonegotiation on at both ends. Machines that are "
        "meant to differ: nothing, or jobs on machines of one kind.",
    .verify = "`ethtool LINK` shows one `Speed` on all nodes."};
constexpr Code kCodes[] = {{.id = "net-link-speed-differs",
                            .fault_class = FaultClass::nic_speed,
                            .worst = Severity::degraded,
                            .title = "A node's link is slower than those of the others",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_link_speed{.title = "Links that carry the data are equally fast",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::pairs};

}  // namespace distdoctor::checks
