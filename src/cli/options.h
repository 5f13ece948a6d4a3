// The command line, parsed and checked.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "exam/exam.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor::cli {

enum class Format : std::uint8_t { text, json };

struct Options {
  std::string command = {};
  exam::Options exam = {};
  Format format = Format::text;
  bool verbose = false;
  bool dry_run = false;
  std::string save = {};                      // a file for the facts
  std::string output = {};                    // facts --save FILE
  std::vector<std::string> facts_files = {};  // judge these instead of the machines
  std::string since = {};                     // a file of earlier facts
  std::string code = {};                      // explain CODE
  std::string root = {};                      // facts --root: a captured machine
  bool classes = false;                       // list --classes
  std::string capture = {};                   // facts --capture: a file for this machine
  std::optional<std::string> anonymous = {};  // facts --anonymous: the word; empty: any
  std::string node = {};                      // env --node
  Deadline by = Deadline::after({});          // the end of the budget
};

// Nothing to run: help or version was printed, or a mistake was.
struct Done {
  int exit_code;
};

// `argv` without the program's name; reads files that it names and our own environment.
std::variant<Options, Done> parse_options(const std::vector<std::string>& argv);

}  // namespace distdoctor::cli
