#include <distdoctor/setting_text.h>

#include "support/planted_names.h"

#include <doctest/doctest.h>

#include <string>

namespace distdoctor::testing {
namespace {

struct Row {
  const char* name;
  const char* where;
  const char* command;
};
constexpr Row kRows[] = {
    {"a process", "pid 4711", "tr '\\0' '\\n' < /proc/4711/environ | grep ^A="},
    {"a process in the words of a strange agent", "pid 1; reboot", "printenv A"},
    {"no number at all", "pid ", "printenv A"},
    {"a file", "/etc/nccl.conf:3", "grep -n A /etc/nccl.conf"},
    {"a file with an odd name", "a b.sh:3", "grep -n A 'a b.sh'"},
    {"neither", "--env", "printenv A"},
};

TEST_CASE("how to see a setting again") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const Setting setting{.value = "1", .origin = {.where = row.where}};
    CHECK(setting_command("A", setting) == row.command);
  }
  CHECK(setting_command("A;x", {}) == "printenv 'A;x'");
}

TEST_CASE("planted names are found where no quote takes them away") {
  CHECK(unquoted("ip link show dev 'eth0;x'") == "ip link show dev ");
  CHECK(unquoted("a'b'\\''c'd") == "ad");
  Finding finding{.code = "",
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::hang,
                  .summary = "eth0;x is a name, no command"};
  finding.fix = {{.node = "a", .kind = Fix::Kind::manual, .text = "`ethtool 'eth0;x'` says so"}};
  CHECK(unsafe_commands(finding).empty());
  finding.fix[0].text = "`ethtool eth0;x` says so";
  CHECK(unsafe_commands(finding).size() == 1);
}

}  // namespace
}  // namespace distdoctor::testing
