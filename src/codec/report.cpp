#include "codec/report.h"

#include "codec/shapes.h"
#include "codec/write.h"

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

}  // namespace

std::string write_report(std::string_view command,
                         const Diagnosis& diagnosis,
                         double elapsed_s,
                         const std::vector<Experiment>& experiments,
                         const std::vector<Isolation>& isolations) {
  ReportShape report{.command = std::string(command),
                     .elapsed_s = elapsed_s,
                     .diagnosis = diagnosis,
                     .gaps = gap_rows(diagnosis.gaps)};
  if (!experiments.empty()) report.experiments.value = experiments;
  if (!isolations.empty()) report.isolations.value = isolations;
  return indented(write_json(report));
}

}  // namespace distdoctor::codec
