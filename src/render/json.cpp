#include "codec/codec.h"
#include "codec/report.h"
#include "render/render.h"

namespace distdoctor::render {

void json(const Report& report, std::ostream& out) {
  out << codec::write_report(report.command, report.diagnosis, report.elapsed_s,
                             report.cluster.experiments, report.cluster.isolations,
                             report.cluster.pairs);
}

void facts(const NodeFacts& node, const Prediction* prediction, std::ostream& out) {
  out << codec::write_facts(node, prediction);
}

}  // namespace distdoctor::render
