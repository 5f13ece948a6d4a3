// `-o json` of check, bisect, gate, join and log (design.md 5b): distdoctor/1.
#pragma once

#include <distdoctor/diagnosis.h>
#include <distdoctor/facts/experiment.h>
#include <distdoctor/facts/pairs.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::codec {

// Indented, with a line end. `command` is the subcommand's name; experiments, and what they
// isolate, stand in it where there were any; of pairs the wires that were measured.
std::string write_report(std::string_view command,
                         const Diagnosis& diagnosis,
                         double elapsed_s,
                         const std::vector<Experiment>& experiments = {},
                         const std::vector<Isolation>& isolations = {},
                         const std::vector<PairFacts>& pairs = {});

}  // namespace distdoctor::codec
