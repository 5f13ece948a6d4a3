#include "rules/launch/shell_scope.h"

#include "base/text.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {
namespace {

Scope example() {
  Scope scope;
  scope.variables["A"] = {.value = "one"};
  scope.variables["TWO"] = {.value = "x  y"};
  scope.variables["EMPTY"] = {};
  scope.variables["N"] = {.value = "8"};
  scope.variables["LIST"] = {.value = "p", .items = {"p", "q r"}, .is_array = true};
  scope.arguments = {"first", "second one"};
  return scope;
}

struct Row {
  std::string_view text;
  std::string_view fields;  // joined by '|'; what is unresolved stands in <>
};

const std::vector<Row> kRows = {
    {"$A", "one"},
    {"a${A}b", "aoneb"},
    {"$TWO", "x|y"},
    {"\"$TWO\"", "x  y"},
    {"a$TWO", "ax|y"},
    {"'$A'", "$A"},
    {"$EMPTY", ""},
    {"\"$EMPTY\"", ""},
    {"x$EMPTY", "x"},
    {"$NOBODY", "<$NOBODY>"},
    {"${NOBODY:-d $A}", "d|one"},
    {"${NOBODY:-${NOTHING:-e}}", "e"},
    {"${EMPTY:-d}", "d"},
    {"${A:-d}", "one"},
    {"${RANK:-0}", "<${RANK:-0}>"},
    {"$1-$2", "first-second|one"},
    {"$3", ""},
    {"${3:-z}", "z"},
    {"$@", "first|second|one"},
    {"\"$@\"", "first|second one"},
    {"${LIST[@]}", "p|q|r"},
    {"\"${LIST[@]}\"", "p|q r"},
    {"$LIST", "p"},
    {"$((N*2))", "16"},
    {"$((NOBODY*2))", "<$((NOBODY*2))>"},
    {"$(a b)x", "<$(a b)>x"},
};

TEST_CASE("words are expanded with what the script set") {
  const Scope scope = example();
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.text));
    const auto statements = parse_shell(row.text);
    REQUIRE(statements.size() == 1);
    std::string seen = join(scope.expand(statements.front().words.front()), "|");
    for (char& c : seen) {
      if (c == kOuterMark) c = '<';
      if (c == kEndMark) c = '>';
    }
    CHECK(seen == row.fields);
  }
}

TEST_CASE("marks: who expands, and that they never reach a person") {
  Scope task;
  task.per_task = true;
  const auto statements = parse_shell("$SLURM_NODEID");
  const std::string inner = task.expand(statements.front().words.front()).front();
  const std::string outer = Scope().expand(statements.front().words.front()).front();
  CHECK(as_written(inner) == "$SLURM_NODEID");
  CHECK(as_written("a" + outer) == "a$SLURM_NODEID");
  CHECK(outer_sources(inner).empty());
  CHECK(outer_sources("x" + outer) == std::vector<std::string>{"$SLURM_NODEID"});
  CHECK_FALSE(resolved(inner).has_value());
  CHECK(resolved("plain") == "plain");
  CHECK(without_marks(outer) == "?$SLURM_NODEID?");
}

struct SumRow {
  std::string_view text;
  std::optional<long long> result;
};

const std::vector<SumRow> kSums = {
    {"1+2*3", 7},
    {" ( 1 + 2 ) * 3 ", 9},
    {"$N / 3 % 2", 0},
    {"${N}-10", -2},
    {"N", 8},
    {"1/0", std::nullopt},
    {"010", std::nullopt},
    {"1 <<2", std::nullopt},
    {"", std::nullopt},
    {"(1", std::nullopt},
    {"1)", std::nullopt},
    {"NOBODY", std::nullopt},
    {"999999999999*999999999999", std::nullopt},
    {"99999999999999999999", std::nullopt},
    {"((((((((((((((((((((1", std::nullopt},
};

TEST_CASE("arithmetic") {
  const auto value = [](std::string_view name) -> std::optional<long long> {
    if (name == "N") return 8;
    return std::nullopt;
  };
  for (const SumRow& row : kSums) {
    CAPTURE(std::string(row.text));
    CHECK(evaluate_arithmetic(row.text, value) == row.result);
  }
}

}  // namespace
}  // namespace distdoctor::rules
