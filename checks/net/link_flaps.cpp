// The links that carry the job's data by TCP stay up, as the kernel's log and counters tell.
#include <distdoctor/check.h>
#include <distdoctor/link_flaps.h>

#include "carried.h"

namespace distdoctor::checks {
namespace {

struct InJob {
  const Link* link;
  Use use;
  std::string library;
};

// Each link once, for the library that surely uses it if there is one.
void add_links(const std::vector<Choice>& choices,
               const Library& library,
               const NodeFacts& node,
               std::vector<InJob>& all) {
  for (const Choice& choice : choices) {
    const Link* link = find_link(*node.links, choice.interface);
    if (link == nullptr || link->kind == LinkKind::loopback) continue;
    if (std::ranges::find(all, link, &InJob::link) == all.end()) {
      all.push_back({link, library.use, library.name});
    }
  }
}

std::vector<InJob> links_of(const Case& c,
                            const std::vector<Library>& libraries,
                            const NodeFacts& node) {
  std::vector<InJob> all;
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.links.known()) return all;
  for (const Library& library : libraries) {
    add_links(data_choices(library, *prediction), library, node, all);
  }
  return all;
}

LinkLosses losses_of(const Link& link, const EarlierCounters* earlier, const KernelLog* log) {
  LinkLosses losses;
  if (earlier != nullptr) {
    losses.counted = gained(earlier->carrier_downs, link.name, link.carrier_downs);
    losses.counted_s = earlier->ago_s;
    losses.of_interface = losses.counted > 0;
  }
  if (log != nullptr) {
    add_logged(*log, [&](std::string_view text) { return names_word(text, link.name); }, losses);
  }
  return losses;
}

void judge_link(const NodeFacts& node, const InJob& row, const LinkLosses& losses, Judge& judge) {
  const bool again = flaps(losses);
  const std::string& name = row.link->name;
  Finding finding{.code = "net-link-flaps",
                  .severity = capped_by_use(again ? Severity::degraded : Severity::notice, row.use),
                  .certainty = again ? Certainty::likely : Certainty::possible,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {node.host}, .devices = {node.host + "/" + name}},
                  .summary = fmt::format("{} of {}, which carries the data of {}, lost its link {}",
                                         name, node.host, row.library, losses_text(losses))};
  if (losses.counted > 0) {
    finding.evidence.push_back(counted_row(
        node.host, losses, fmt::format("net.{}.carrier_downs", name), see_carrier_downs(name)));
  }
  if (!losses.logged.empty()) finding.evidence.push_back(logged_row(node.host, losses));
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = fmt::format("unless somebody set the interface up anew: look at the "
                                      "cable, the transceiver and the switch port of {} (`ethtool "
                                      "-S {}` shows their errors)",
                                      name, shell_quote(name))}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.nodes.size() < 2) return judge.skip("one node alone");
  const auto libraries = carrying_data(c, judge);
  if (libraries.empty()) return judge.skip("no library is known to send the job's data by TCP");
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto links = links_of(c, libraries, node);
    if (links.empty()) continue;
    const EarlierCounters* earlier = settled_earlier(node, judge);
    const KernelLog* log = judge.see(node, "kernel_log", node.kernel_log);
    for (const InJob& row : links) {
      const LinkLosses losses = losses_of(*row.link, earlier, log);
      if (losses.any()) judge_link(node, row, losses, judge);
    }
  }
}

constexpr Page kPage{
    .meaning =
        "An interface that carries the job's data by TCP lost its carrier and got it back: by the "
        "kernel's log of the last hour, or by what its counter gained since an earlier look "
        "(`check --save FILE`, later `check --since FILE`). TCP survives seconds without a link; "
        "a longer loss ends connections, or hangs what waits for them. Once is a notice, again "
        "and again is a fault. A change of the MTU or of the rings of a card, and taking the "
        "interface down by hand, raise the same counter: what the counter alone says is a notice, "
        "and none where the log of a driver that tells of losses has none.",
    .confirm =
        "`dmesg -T | grep -i link`; `cat /sys/class/net/eth0/carrier_down_count` twice, some "
        "minutes apart.",
    .fix = "Cable, transceiver or switch port; drain the node until then.",
    .verify = "carrier_down_count no longer rises."};
constexpr Code kCodes[] = {{.id = "net-link-flaps",
                            .fault_class = FaultClass::link_down,
                            .worst = Severity::degraded,
                            .title = "A link that carries the job's data goes down and up",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check net_link_flaps{.title = "Links that carry data by TCP stay up",
                                  .codes = kCodes,
                                  .run = run,
                                  .needs = Needs::pairs};

}  // namespace distdoctor::checks
