// `-o json` of check, bisect, gate, join and log (design.md 5b): distdoctor/1.
#pragma once

#include <distdoctor/diagnosis.h>

#include <string>
#include <string_view>

namespace distdoctor::codec {

// Indented, with a line end. `command` is the subcommand's name.
std::string write_report(std::string_view command, const Diagnosis& diagnosis, double elapsed_s);

}  // namespace distdoctor::codec
