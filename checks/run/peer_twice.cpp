// Each peer is a machine of its own.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>

#include <fmt/format.h>

#include <utility>

namespace distdoctor::checks {
namespace {

void report(const NodeFacts& node, Judge& judge) {
  Finding finding{.code = "run-peer-twice",
                  .severity = Severity::notice,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.same_as, node.host}},
                  .summary = fmt::format("{} and {} are one machine", node.same_as, node.host)};
  finding.evidence.push_back(
      {.node = node.host,
       .fact = "boot id and network namespace",
       .observed = "those of " + node.same_as,
       .expected = "its own",
       .command = "cat /proc/sys/kernel/random/boot_id; readlink /proc/self/ns/net"});
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = fmt::format("name each machine once in --peers; if they should be two, "
                                      "mend the name that leads wrong (`getent ahosts {}; getent "
                                      "ahosts {}` here)",
                                      shell_quote(node.same_as), shell_quote(node.host))}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    if (!node.reached) {
      judge.miss({node.host, "node", {Why::failed, node.not_reached}});
    } else if (!node.same_as.empty()) {
      report(node, judge);
    }
  }
}

constexpr Page kPage{
    .meaning =
        "Two names of the list of peers lead to one machine and one network namespace, so that "
        "what is said about the two is said about one. A job started this way has fewer nodes "
        "than it counts.",
    .confirm =
        "`cat /proc/sys/kernel/random/boot_id` and `readlink /proc/self/ns/net` print the same "
        "through both names.",
    .fix = "Name each machine once; or mend the name that leads to the wrong machine.",
    .verify = "The two commands print different lines through each name."};
constexpr Code kCodes[] = {{.id = "run-peer-twice",
                            .fault_class = FaultClass::tool_trouble,
                            .worst = Severity::notice,
                            .title = "Two peers are one machine",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check run_peer_twice{
    .title = "Each peer is a machine of its own", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
