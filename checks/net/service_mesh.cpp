// The sidecar of a service mesh takes each TCP connection of its pod, and answers for others.
#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/untested.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace distdoctor::checks {
namespace {

std::string mesh_of(const NodeFacts* node) {
  return node != nullptr && node->world.known() ? node->world->service_mesh : "";
}

// A connection came about, but not with whom it was meant for.
bool answered_by_another(const Dial& dial) {
  return dial.outcome == Outcome::wrong_answer || dial.outcome == Outcome::reset ||
         dial.outcome == Outcome::no_answer;
}

// To our own listeners: at others' ports there may be reasons for a reset.
struct Caught {
  const PairFacts* pair;
  const Dial* dial;
};
std::vector<Caught> caught(const ClusterFacts& cluster) {
  std::vector<Caught> all;
  for (const PairFacts& pair : cluster.pairs) {
    const bool between = !mesh_of(find_node(cluster, pair.from)).empty() ||
                         !mesh_of(find_node(cluster, pair.to)).empty();
    if (!between || pair.from == pair.to) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.ours && answered_by_another(dial)) all.push_back({&pair, &dial});
    }
  }
  return all;
}

Evidence row_of(const Caught& row) {
  const Dial& dial = *row.dial;
  return {.node = row.pair->from,
          .fact = fmt::format("dial {} of {}", dial.address.text(), row.pair->to),
          .observed = fmt::format("{} on port {}", slug(dial.outcome), dial.port),
          .expected = "an answer from there",
          .command = fmt::format("nc -vz -w 3 {} {}", shell_quote(dial.address.text()), dial.port)};
}

Evidence sidecar_row(const NodeFacts& node) {
  const bool istio = node.world->service_mesh == "istio";
  return {.node = node.host,
          .fact = "ports of a sidecar",
          .observed = istio ? "15001, 15006 and 15021 listen" : "4140, 4143 and 4191 listen",
          .expected = "none of the kind",
          .context = std::string(slug(node.context)),
          .command = istio ? "ss -ltn 'sport = :15001 or sport = :15006'"
                           : "ss -ltn 'sport = :4140 or sport = :4143'"};
}

Fix without_sidecar(const std::string& mesh) {
  const bool istio = mesh == "istio";
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text = istio ? "start the job's pods without the sidecar: annotation "
                          "sidecar.istio.io/inject: \"false\" in the pod template"
                        : "start the job's pods without the sidecar: annotation linkerd.io/inject: "
                          "disabled in the pod template"};
}

void add_rows(const std::vector<Caught>& rows, Finding& finding) {
  constexpr std::size_t kMostRows = 8;
  for (const Caught& row : rows) {
    const std::pair ends(row.pair->from, row.pair->to);
    auto& pairs = finding.subjects.pairs;
    if (std::ranges::find(pairs, ends) != pairs.end()) continue;
    pairs.push_back(ends);
    if (finding.evidence.size() < kMostRows) finding.evidence.push_back(row_of(row));
  }
}

Severity severity_of(const Case& c, const std::vector<Caught>& rows) {
  if (rows.empty()) return Severity::notice;
  std::vector<Purpose> purposes;
  for (const Caught& row : rows) purposes.push_back(row.dial->purpose);
  return capped_by_purposes(c.cluster.job, Severity::blocker, purposes);
}

void report(const Case& c, const std::vector<const NodeFacts*>& nodes, Judge& judge) {
  const std::vector<Caught> rows = caught(c.cluster);
  const std::string& mesh = nodes.front()->world->service_mesh;
  Finding finding{.code = "net-service-mesh",
                  .severity = severity_of(c, rows),
                  .certainty = rows.empty() ? Certainty::possible : Certainty::likely,
                  .symptom = Symptom::hang,
                  .summary = ""};
  for (const NodeFacts* node : nodes) {
    finding.subjects.nodes.push_back(node->host);
    finding.evidence.push_back(sidecar_row(*node));
  }
  add_rows(rows, finding);
  finding.summary = fmt::format(
      "{} {} a sidecar of {}, which takes the pod's TCP connections{}",
      fmt::join(finding.subjects.nodes, ", "), nodes.size() == 1 ? "has" : "have", mesh,
      rows.empty() ? "; what was tried went through it"
                   : ": connections to other nodes were answered by another than was meant");
  finding.fix = {without_sidecar(mesh)};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  std::vector<const NodeFacts*> nodes;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "world", node.world) != nullptr && !mesh_of(&node).empty()) {
      nodes.push_back(&node);
    }
  }
  if (nodes.empty() || c.cluster.nodes.size() < 2) return;
  note_untested(c.cluster, judge);
  report(c, nodes, judge);
}

constexpr std::string_view kCauses[] = {"rendezvous-wrong-service",       "rendezvous-not-up",
                                        "rendezvous-port-rejected",       "net-ephemeral-rejected",
                                        "net-nccl-interface-unreachable", "net-container-bridge",
                                        "net-gloo-interface-unreachable", "net-peer-unreachable"};
constexpr Page kPage{
    .meaning =
        "A service mesh puts a proxy into each pod and leads all TCP through it. It accepts a "
        "connection before the other side has, speaks its own protocol to its kind, and resets "
        "what it does not know: NCCL and Gloo, which connect from pod to pod at ports that change, "
        "hang or end with `Connection reset by peer`.",
    .confirm =
        "`kubectl get pod NAME -o jsonpath='{.spec.containers[*].name}'` lists istio-proxy or "
        "linkerd-proxy; `ss -ltn` in the pod shows its ports.",
    .fix =
        "Pods of the job without the sidecar: `sidecar.istio.io/inject: \"false\"`, "
        "`linkerd.io/inject: disabled`; or ports that it leaves alone "
        "(traffic.sidecar.istio.io/excludeInboundPorts).",
    .verify = "`kubectl get pod` lists one container less, and the dials go through."};
constexpr Code kCodes[] = {{.id = "net-service-mesh",
                            .fault_class = FaultClass::k8s_netpol,
                            .worst = Severity::blocker,
                            .title = "A service mesh takes the connections between the nodes",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check net_service_mesh{
    .title = "No service mesh between the nodes", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
