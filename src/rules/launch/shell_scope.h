// The variables of a shell as far as a script sets them, and words expanded with them.
#pragma once

#include "rules/launch/shell_text.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

// What only a shell knows stands in an expanded text between a begin mark and an end mark, as it
// was written. There are two begin marks: a shell above srun or mpirun expands once, for all nodes;
// a shell that runs as a task expands anew on each.
constexpr char kTaskMark = '\x01';
constexpr char kOuterMark = '\x03';
constexpr char kEndMark = '\x02';

// The text when nothing in it is unresolved.
std::optional<std::string> resolved(std::string_view text);
// For people: marks taken off, "$(hostname):29500".
std::string as_written(std::string_view text);
// The sources of what an outer shell expands: "$SLURM_NODEID".
std::vector<std::string> outer_sources(std::string_view text);
// A text that came from outside cannot hold marks.
std::string without_marks(std::string_view text);

struct Variable {
  std::string value = {};
  std::vector<std::string> items = {};  // of an array
  bool is_array = false;
  bool exported = false;
  bool fallback = false;  // X=${X:-value}
  std::string where = {};
};

class Scope {
 public:
  std::map<std::string, Variable, std::less<>> variables = {};
  std::vector<std::string> arguments = {};  // $1, $2, ...
  bool per_task = false;                    // this shell runs once for each task
  bool export_all = false;                  // set -a

  // The fields that the word becomes: none, one or several.
  [[nodiscard]] std::vector<std::string> expand(const Word& word) const;
  // As on the right of an assignment: one text, never split.
  [[nodiscard]] std::string expand_value(const Word& word) const;
  [[nodiscard]] std::vector<std::string> expand_all(const std::vector<Word>& words) const;
  // Whether the word is ${NAME:-value} with a NAME that nobody set here, and that value.
  [[nodiscard]] bool is_fallback(const Word& word, std::string_view name) const;

  // What a child process gets.
  void leave_only_exported();

 private:
  struct Fields;
  void add_piece(const Piece& piece, Fields& fields) const;
  [[nodiscard]] std::string text_of(const Piece& piece) const;
  [[nodiscard]] std::optional<std::vector<std::string>> list_of(const Piece& piece) const;
  [[nodiscard]] std::string variable_text(const Piece& piece) const;
  [[nodiscard]] std::string unresolved(std::string_view written) const;
  [[nodiscard]] std::string number(const Piece& piece) const;
};

// + - * / % and brackets over whole numbers and names; none for anything else, or out of range.
std::optional<long long> evaluate_arithmetic(
    std::string_view text,
    const std::function<std::optional<long long>(std::string_view name)>& value);

}  // namespace distdoctor::rules
