#include "fleet/greeting.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {
const std::string kNonce = "0123456789abcdef0123456789abcdef";
const std::string kLine = "distdoctor-agent/1 " + kNonce + "\n";
}  // namespace

TEST_CASE("find_greeting: the first line of an agent, whatever stands before it") {
  struct Row {
    std::string_view name;
    std::string received;
    std::string_view noise;
  };
  const std::vector<Row> rows = {
      {"alone", kLine, ""},
      {"a motd", "Welcome\n" + kLine, "Welcome\n"},
      {"a prompt on the same line", "$ " + kLine, "$ "},
      {"binary noise", std::string("\0\xff\n", 3) + kLine, std::string_view("\0\xff\n", 3)},
      {"our name in the noise", "the distdoctor-agent/1 is here\n" + kLine,
       "the distdoctor-agent/1 is here\n"},
      {"64 KiB of noise", std::string(kMaxNoise, 'x') + kLine, ""},
      {"frames behind it", kLine + "\0\0\0", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto found = find_greeting(row.received);
    REQUIRE(found.has_value());
    REQUIRE(found->has_value());
    CHECK((*found)->nonce == kNonce);
    CHECK((*found)->end == row.received.find(kLine) + kLine.size());
    if (!row.noise.empty()) CHECK((*found)->noise == row.noise);
  }
}

TEST_CASE("find_greeting: not yet") {
  const std::vector<std::string> rows = {"", "Welcome\n", kLine.substr(0, kLine.size() - 1),
                                         "distdoctor-agent/1 short\n",
                                         "distdoctor-agent/1 " + std::string(32, 'g') + "\n"};
  for (const std::string& received : rows) {
    CAPTURE(received);
    const auto found = find_greeting(received);
    CHECK((found.has_value() && !found->has_value()));
  }
}

TEST_CASE("find_greeting: the line that asks for the program") {
  const auto found = find_greeting("motd\ndistdoctor-push/1\n");
  REQUIRE((found.has_value() && found->has_value()));
  CHECK((*found)->nonce.empty());
}

TEST_CASE("find_greeting: what it refuses") {
  CHECK(find_greeting("distdoctor-agent/2 " + kNonce + "\n").error().reason ==
        "it speaks distdoctor-agent/2, we speak distdoctor-agent/1");
  const auto noisy = find_greeting(std::string(kMaxNoise, '\x1b') + "xx").error();
  CHECK(noisy.reason.starts_with("more than 65536 bytes of something else: \\x1b\\x1b"));
  CHECK(noisy.reason.size() < 300);
}

TEST_CASE("in_one_line: a launcher's words for a report") {
  CHECK(in_one_line("\nWarning: a\r\n\n  ssh: b \n", 100) == "Warning: a; ssh: b");
  CHECK(in_one_line("\x1b[31mred\n", 100) == "\\x1b[31mred");
  CHECK(in_one_line(std::string(1000, 'x'), 10) == "xxxxxxx...");
}
