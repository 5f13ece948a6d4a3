#include "base/nccl_config.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)

namespace {

struct Row {
  std::string_view name;
  std::string_view text;
  std::vector<NcclConfigLine> lines;
};

// Table G: what the real library read of such files.
const std::vector<Row> kRows = {
    {"a line", "NCCL_SOCKET_IFNAME=eth1\n", {{"NCCL_SOCKET_IFNAME", "eth1", 1}}},
    {"no newline at the end", "A=1\nB=2", {{"A", "1", 1}, {"B", "2", 2}}},
    {"comment, empty line", "#A=1\n\nB=2\n", {{"B", "2", 3}}},
    {"a comment begins in the first column", " #A=1\n", {{" #A", "1", 1}}},
    {"the first one wins", "A=1\nA=2\n", {{"A", "1", 1}}},
    {"blanks belong to both", "A = 1\n", {{"A ", " 1", 1}}},
    {"leading blank", " A=1\n", {{" A", "1", 1}}},
    {"export", "export A=1\n", {{"export A", "1", 1}}},
    {"comment behind a value", "A=eth1 # c\n", {{"A", "eth1 # c", 1}}},
    {"quotes", "A=\"eth1\"\n", {{"A", "\"eth1\"", 1}}},
    {"CRLF", "A=eth1\r\n", {{"A", "eth1\r", 1}}},
    {"empty value", "A=\n", {{"A", "", 1}}},
    {"'=' in the value", "A=b=c\n", {{"A", "b=c", 1}}},
    {"no '='", "A\nB=1\n", {{"B", "1", 2}}},
    {"no name", "=1\n", {}},
    {"NUL ends a line", std::string_view("A=1\0x\nB\0=2\n", 11), {{"A", "1", 1}}},
    {"nothing", "", {}},
};

}  // namespace

TEST_CASE("parse_nccl_config: table G") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    CHECK(parse_nccl_config(row.text) == row.lines);
  }
}

TEST_CASE("parse_nccl_config: long names and values are cut") {
  const std::string longer(2000, 'x');
  const auto lines = parse_nccl_config(longer + "=" + longer + "\n");
  CHECK(lines.at(0).name.size() == 1023);
  CHECK(lines.at(0).value.size() == 1023);
}

TEST_CASE("nccl_config_lines: what is set twice, too") {
  CHECK(nccl_config_lines("A=1\n#A=0\nA=2\r\n") ==
        std::vector<NcclConfigLine>{{"A", "1", 1}, {"A", "2\r", 3}});
}
