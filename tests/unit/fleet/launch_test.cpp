#include "fleet/launch.h"

#include "base/text.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {

using Words = std::vector<std::string>;

const Program kProgram{.path = "/opt/it's/distdoctor"};

Words begin_of(const Words& argv, std::size_t count) {
  REQUIRE(argv.size() >= count);
  return {argv.begin(), argv.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

TEST_CASE("split_shell_words: as a shell would, without expanding anything") {
  struct Row {
    std::string_view name;
    std::string_view text;
    Words words;
  };
  const std::vector<Row> rows = {
      {"blanks", "  ip netns\texec {host} ", {"ip", "netns", "exec", "{host}"}},
      {"single quotes", "a 'b c' d", {"a", "b c", "d"}},
      {"double quotes", R"(a "b \" c")", {"a", "b \" c"}},
      {"quotes inside a word", "--a='b c'd", {"--a=b cd"}},
      {"an empty word", "a '' b", {"a", "", "b"}},
      {"a backslash", R"(a\ b \\)", {"a b", "\\"}},
      {"a backslash in single quotes", R"('a\b')", {"a\\b"}},
      {"nothing is expanded", "$HOME `id` *", {"$HOME", "`id`", "*"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto words = split_shell_words(row.text);
    REQUIRE(words.has_value());
    CHECK(*words == row.words);
  }
  CHECK(split_shell_words("a 'b").error().reason == "a quote is not closed");
  CHECK(split_shell_words("a \"b").error().reason == "a quote is not closed");
  CHECK(split_shell_words("  ").error().reason == "it has no word");
}

TEST_CASE("launch_argv: ssh") {
  const auto argv = launch_argv("node1", {}, kProgram, 5).value();
  CHECK(argv.front() == "ssh");
  CHECK(join(argv, " ").find("-o BatchMode=yes -o ConnectTimeout=5 ") != std::string::npos);
  CHECK(argv[argv.size() - 3] == "--");
  CHECK(argv[argv.size() - 2] == "node1");
  // One word, quoted for the remote login shell.
  CHECK(argv.back().starts_with("sh -c 'p=$0; "));
  CHECK(argv.back().ends_with(R"( '/opt/it'\''s/distdoctor')"));
}

TEST_CASE("launch_argv: templates") {
  const auto argv =
      launch_argv("node1", {.launch_template = "ip netns exec {host}"}, kProgram, 5).value();
  CHECK(begin_of(argv, 6) == Words{"ip", "netns", "exec", "node1", "sh", "-c"});
  CHECK(argv.back() == "/opt/it's/distdoctor");  // argv is passed on as it is
  const auto inside =
      launch_argv("n1", {.launch_template = "run --on={host}/{host} --"}, kProgram, 5).value();
  CHECK(begin_of(inside, 3) == Words{"run", "--on=n1/n1", "--"});
  const auto ssh =
      launch_argv("n1", {.launch_template = "sudo /usr/bin/ssh {host}"}, kProgram, 5).value();
  CHECK(ssh.size() == 4);  // ssh would join and split the words again
}

TEST_CASE("launch_argv: the remote command is the same for every peer") {
  const auto one = launch_argv("node1", {}, kProgram, 5).value();
  const auto two = launch_argv("node2", {}, kProgram, 5).value();
  CHECK(one.back() == two.back());
}

TEST_CASE("launch_argv: user@host goes to the launcher as it was given") {
  const auto argv = launch_argv("ann@node1", {}, kProgram, 5).value();
  CHECK(argv[argv.size() - 2] == "ann@node1");
  const auto other =
      launch_argv("ann@node1", {.launch_template = "ssh -p 22 {host}"}, kProgram, 5).value();
  CHECK(begin_of(other, 4) == Words{"ssh", "-p", "22", "ann@node1"});
}

TEST_CASE("launch_argv: names that no argv should see") {
  for (const char* host : {"-oProxyCommand=x", "-oProxyCommand=x@a", "a@-b", "a@b@c", "a b", "a;b",
                           "$(id)", "", "a\nb"}) {
    CAPTURE(host);
    CHECK_FALSE(launch_argv(host, {}, kProgram, 5).has_value());
    CHECK_FALSE(launch_argv(host, {.launch_template = "x {host}"}, kProgram, 5).has_value());
  }
}
