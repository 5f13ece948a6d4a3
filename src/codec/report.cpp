#include "codec/report.h"

#include "codec/shapes.h"
#include "codec/write.h"

#include <utility>

namespace distdoctor::codec {
namespace {

std::vector<GapRow> gap_rows(const std::vector<MergedGap>& gaps) {
  std::vector<GapRow> rows;
  for (const MergedGap& gap : gaps) {
    const GapRow row{.fact = gap.fact, .kind = gap.why.kind, .why = gap.why.text};
    if (gap.nodes.empty()) rows.push_back(row);
    for (const std::string& node : gap.nodes) {
      rows.push_back(row);
      rows.back().node = node;
    }
  }
  return rows;
}

std::vector<WireRow> wire_rows(const std::vector<PairFacts>& pairs) {
  std::vector<WireRow> rows;
  for (const PairFacts& pair : pairs) {
    for (const Path& path : pair.paths) {
      if (!path.wire.known()) continue;
      rows.push_back({.from = pair.from,
                      .to = pair.to,
                      .interface = path.interface,
                      .source = path.source,
                      .destination = path.destination,
                      .rtt_ms = path.rtt_ms,
                      .speeds = *path.wire});
    }
  }
  return rows;
}

}  // namespace

std::string write_report(std::string_view command,
                         const Diagnosis& diagnosis,
                         double elapsed_s,
                         const std::vector<Experiment>& experiments,
                         const std::vector<Isolation>& isolations,
                         const std::vector<PairFacts>& pairs) {
  ReportShape report{.command = std::string(command),
                     .elapsed_s = elapsed_s,
                     .diagnosis = diagnosis,
                     .gaps = gap_rows(diagnosis.gaps)};
  if (!experiments.empty()) report.experiments.value = experiments;
  if (!isolations.empty()) report.isolations.value = isolations;
  if (auto wires = wire_rows(pairs); !wires.empty()) report.wires.value = std::move(wires);
  return indented(write_json(report));
}

}  // namespace distdoctor::codec
