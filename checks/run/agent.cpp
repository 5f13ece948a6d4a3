// Our own agents did all that they were asked for.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace distdoctor::checks {
namespace {

void judge_version(const Case& c, const NodeFacts& node, Judge& judge) {
  if (node.version.empty() || c.cluster.version.empty() || node.version == c.cluster.version)
    return;
  Finding finding{.code = "run-agent-version",
                  .severity = Severity::notice,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} runs distdoctor {}, we are {}", node.host,
                                         node.version, c.cluster.version)};
  finding.evidence.push_back({.node = node.host,
                              .fact = "agent version",
                              .observed = node.version,
                              .expected = c.cluster.version,
                              .command = "distdoctor --version"});
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = "install one version everywhere: what the older one does not know is "
                          "missing from this answer"}};
  judge.report(std::move(finding));
}

template <class T>
void add_if_late(const char* name, const Observed<T>& fact, std::vector<std::string>& late) {
  if (!fact.known() && fact.why().kind == Why::timed_out) late.emplace_back(name);
}

std::vector<std::string> late_facts(const NodeFacts& node) {
  std::vector<std::string> late;
  add_if_late("identity", node.identity, late);
  add_if_late("links", node.links, late);
  add_if_late("routes", node.routes, late);
  add_if_late("rules", node.rules, late);
  add_if_late("neighbours", node.neighbours, late);
  add_if_late("kernel", node.kernel, late);
  add_if_late("sockets", node.sockets, late);
  add_if_late("names", node.names, late);
  add_if_late("shm", node.shm, late);
  add_if_late("limits", node.limits, late);
  add_if_late("devices", node.devices, late);
  add_if_late("processes", node.processes, late);
  add_if_late("settings", node.settings, late);
  add_if_late("nccl_config", node.nccl_config, late);
  add_if_late("nccl_library", node.nccl_library, late);
  add_if_late("pci", node.pci, late);
  add_if_late("rdma", node.rdma, late);
  add_if_late("gpu", node.gpu, late);
  add_if_late("kernel_log", node.kernel_log, late);
  add_if_late("firewall", node.firewall, late);
  add_if_late("site_checks", node.site_checks, late);
  return late;
}

void judge_lateness(const NodeFacts& node, Judge& judge) {
  const auto late = late_facts(node);
  if (late.empty()) return;
  Finding finding{.code = "run-agent-timed-out",
                  .severity = Severity::notice,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = {node.host}},
                  .summary = fmt::format("{} did not answer in time about {}", node.host,
                                         fmt::join(late, ", "))};
  finding.evidence.push_back({.node = node.host,
                              .fact = fmt::format("{}", fmt::join(late, ", ")),
                              .observed = "no answer before the deadline",
                              .expected = "an answer",
                              .command = "uptime; ps -eo pid,stat,wchan:20,args | grep ' D'"});
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = "look for a hung mount or driver, or a node under load; then try again, "
                          "with a larger --timeout"}};
  judge.report(std::move(finding));
}

// A node that was not reached at all is a gap of the whole run, not of this check.
void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    if (!node.reached) continue;
    judge_version(c, node, judge);
    judge_lateness(node, judge);
  }
}

constexpr Page kVersionPage{
    .meaning =
        "The agent on a node is another version than the coordinator. Verdicts are made at "
        "the coordinator alone, so they do not contradict each other; but what the older "
        "one cannot see is missing.",
    .confirm = "`distdoctor --version` on both.",
    .fix = "Install one version everywhere, or use --push.",
    .verify = "`distdoctor --version` prints the same on all nodes."};
constexpr Page kLatePage{
    .meaning =
        "A part of the agent on a node did not end before its deadline. What hangs is the "
        "node's own: a dead NFS server under a mount, a stuck driver, a silent name server, "
        "or a machine without a free moment.",
    .confirm = "`uptime` and `ps -eo pid,stat,wchan:20,args | grep ' D'` on the node.",
    .fix = "Mend what hangs, or give it more time with --timeout and --budget.",
    .verify = "The next run has no such line."};
constexpr Code kCodes[] = {{.id = "run-agent-version",
                            .fault_class = FaultClass::tool_trouble,
                            .worst = Severity::notice,
                            .title = "A node runs another version of distdoctor",
                            .causes = {},
                            .page = kVersionPage},
                           {.id = "run-agent-timed-out",
                            .fault_class = FaultClass::tool_trouble,
                            .worst = Severity::notice,
                            .title = "A node did not answer everything in time",
                            .causes = {},
                            .page = kLatePage}};

}  // namespace

extern const Check run_agent{.title = "Our agents answered in time", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
