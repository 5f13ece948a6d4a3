// Diagnosis -> characters. Nothing is decided here.
#pragma once

#include <distdoctor/diagnosis.h>
#include <distdoctor/facts.h>

#include <ostream>
#include <string>
#include <string_view>

namespace distdoctor::render {

struct TextOptions {
  bool utf8 = true;  // symbols; else ASCII
  bool colour = false;
  bool verbose = false;  // expand passes
  int width = 100;
};

struct Report {
  std::string_view command;  // "check"
  const Diagnosis& diagnosis;
  const ClusterFacts& cluster;
  double elapsed_s = 0;
  bool selected = false;  // --only or --skip left checks out
};

void text(const Report& report, const TextOptions& options, std::ostream& out);
void json(const Report& report, std::ostream& out);  // distdoctor/1

// One node and what each library would choose there (distdoctor-facts/1). `prediction` may be null.
void facts(const NodeFacts& node, const Prediction* prediction, std::ostream& out);

}  // namespace distdoctor::render
