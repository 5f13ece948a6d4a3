// The shapes of our three outputs (design.md 5b) as structs with `fields`, so that the writer and
// the schema cannot disagree. They are written, never read back.
#pragma once

#include <distdoctor/diagnosis.h>
#include <distdoctor/facts.h>

#include "codec/write.h"

#include <string>
#include <vector>

namespace distdoctor {

template <class V, Is<Subjects> T>
void fields(V& v, T& x) {
  v("nodes", x.nodes);
  v("ranks", x.ranks);
  v("devices", x.devices);
  v("pairs", x.pairs);
}
template <class V, Is<Evidence> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("fact", x.fact);
  v("observed", x.observed);
  v("expected", x.expected);
  v("context", x.context);
  v("command", x.command);
}
template <class V, Is<Fix> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("kind", x.kind);
  v("command", x.command);
  v("env", x.env);
  v("text", x.text);
}
template <class V, Is<Cause> T>
void fields(V& v, T& x) {
  v("code", x.finding.code);
  v("class", slug(x.fault_class));
  v("severity", x.finding.severity);
  v("symptom", x.finding.symptom);
  v("certainty", x.finding.certainty);
  v("title", x.title);
  v("summary", x.finding.summary);
  v("because", x.because);
  v("subjects", x.finding.subjects);
  v("evidence", x.finding.evidence);
  v("fix", x.finding.fix);
  v("explains", x.explains);
  v("also_explains", x.also_explains);
}
template <class V, Is<CheckLine> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("result", x.result);
  v("detail", x.detail);
}
template <class V, Is<NodeLine> T>
void fields(V& v, T& x) {
  v("host", x.host);
  v("reached", x.reached);
  v("why", x.why);
}

}  // namespace distdoctor

namespace distdoctor::codec {

// A merged gap is written as one row a node.
struct GapRow {
  std::string node = {};
  std::string fact = {};
  Why kind = Why::not_collected;
  std::string why = {};
};
// What plain TCP carries from one node to another.
struct WireRow {
  std::string from = {};
  std::string to = {};
  std::string interface = {};
  Address source = {};
  Address destination = {};
  Observed<double> rtt_ms = {};
  std::vector<WireSpeed> speeds = {};
};
struct ReportShape {
  Constant schema = {"distdoctor/1"};
  std::string command = {};
  double elapsed_s = 0;
  Diagnosis diagnosis = {};
  std::vector<GapRow> gaps = {};
  Sometimes<std::vector<Experiment>> experiments = {};  // of a bisect
  Sometimes<std::vector<Isolation>> isolations = {};    // of these
  Sometimes<std::vector<WireRow>> wires = {};           // below them
};
template <class V, Is<GapRow> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("fact", x.fact);
  v("kind", x.kind);
  v("why", x.why);
}
template <class V, Is<WireRow> T>
void fields(V& v, T& x) {
  v("from", x.from);
  v("to", x.to);
  v("interface", x.interface);
  v("source", x.source);
  v("destination", x.destination);
  v("rtt_ms", x.rtt_ms);
  v("speeds", x.speeds);
}
template <class V, Is<ReportShape> T>
void fields(V& v, T& x) {
  v("schema", x.schema);
  v("command", x.command);
  v("verdict", x.diagnosis.verdict);
  v("exit_code", x.diagnosis.exit_code);
  v("elapsed_s", x.elapsed_s);
  v("interrupted", x.diagnosis.interrupted);
  v("diagnosis", x.diagnosis.causes);
  v("gaps", x.gaps);
  v("checks", x.diagnosis.checks);
  v("nodes", x.diagnosis.nodes);
  v("experiments", x.experiments);
  v("isolations", x.isolations);
  v("wires", x.wires);
}

struct ClusterShape {
  Constant schema = {"distdoctor-cluster/1"};
  const ClusterFacts& cluster;
};
template <class V, Is<ClusterShape> T>
void fields(V& v, T& x) {
  v("schema", x.schema);
  fields(v, x.cluster);
}

// What a library chooses, or its own words why it cannot.
struct ChoiceOrError {
  Sometimes<std::string> interface = {};
  Sometimes<Address> address = {};
  Sometimes<std::string> error = {};
};
struct HcaShape {
  std::string device = {};
  int port = 1;
  std::string link_layer = {};  // in NCCL's words
  std::optional<int> gid_index = {};
};
struct NcclShape {
  std::string library = {};
  std::string version = {};
  bool version_known = false;
  NcclRules rules = NcclRules::from_2_28_3;
  ChoiceOrError bootstrap = {};
  std::vector<Choice> net_socket = {};
  Sometimes<std::string> net_socket_error = {};
  std::vector<NcclChoice> others = {};  // of older rules, where they differ
  Observed<std::vector<HcaShape>> hca = {};
};
struct GlooShape {
  ChoiceOrError first = {};  // the only one, unless GLOO_SOCKET_IFNAME names several
  std::vector<Choice> devices = {};
  GlooReason reason = GlooReason::hostname;
};
struct NodeShape {
  Constant schema = {"distdoctor-facts/1"};
  const NodeFacts& node;
  Observed<NcclShape> nccl = {};
  Observed<GlooShape> gloo = {};
};
template <class V, Is<ChoiceOrError> T>
void fields(V& v, T& x) {
  v("interface", x.interface);
  v("address", x.address);
  v("error", x.error);
}
template <class V, Is<HcaShape> T>
void fields(V& v, T& x) {
  v("device", x.device);
  v("port", x.port);
  v("link_layer", x.link_layer);
  v("gid_index", x.gid_index);
}
template <class V, Is<NcclShape> T>
void fields(V& v, T& x) {
  v("library", x.library);
  v("version", x.version);
  v("version_known", x.version_known);
  v("rules", x.rules);
  v("bootstrap", x.bootstrap);
  v("net_socket", x.net_socket);
  v("net_socket_error", x.net_socket_error);
  v("others", x.others);
  v("hca", x.hca);
}
template <class V, Is<GlooShape> T>
void fields(V& v, T& x) {
  fields(v, x.first);
  v("devices", x.devices);
  v("reason", x.reason);
}
template <class V, Is<NodeShape> T>
void fields(V& v, T& x) {
  v("schema", x.schema);
  fields(v, x.node);
  v("nccl", x.nccl);
  v("gloo", x.gloo);
}

}  // namespace distdoctor::codec
