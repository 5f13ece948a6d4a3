#include "base/hostlist.h"

#include "base/text.h"

#include <doctest/doctest.h>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

struct GoodRow {
  std::string_view name;
  std::string_view text;
  std::string_view hosts;  // joined by one blank
};

const std::vector<GoodRow> kGood = {
    {"one", "node0", "node0"},
    {"several", "node0,node1", "node0 node1"},
    {"a file", "node0\nnode1\r\n\n  node2\n", "node0 node1 node2"},
    {"padded", "node[01-04,7],login1", "node01 node02 node03 node04 node7 login1"},
    {"not padded", "n[8-11]", "n8 n9 n10 n11"},
    {"padding that the numbers outgrow", "n[98-101]", "n98 n99 n100 n101"},
    {"one number", "n[5]", "n5"},
    {"two brackets", "r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
    {"text behind the bracket", "n[1-2].local", "n1.local n2.local"},
    {"no common prefix", "[1-2]", "1 2"},
    {"addresses", "10.0.0.1,fe80::1", "10.0.0.1 fe80::1"},
    {"stray commas", ",a,,b,", "a b"},
    {"the order of the text", "b,a", "b a"},
    {"a zero", "n[0-1]", "n0 n1"},
    {"a user", "root@a,ann@n[1-2],a", "root@a ann@n1 ann@n2 a"},
};

struct BadRow {
  std::string_view name;
  std::string_view text;
  std::string_view message;  // what the line ends in
};

const std::vector<BadRow> kBad = {
    {"empty", "", "it names no node (column 1)"},
    {"only commas", " , ,", "it names no node (column 1)"},
    {"not closed", "a,n[1-2", "'[' is never closed (column 4)"},
    {"not opened", "n1-2]", "is made of letters, digits and . _ : - (column 1)"},
    {"empty bracket", "n[]", "'' is no number or range of numbers (column 3)"},
    {"no number", "n[1,x]", "'x' is no number or range of numbers (column 5)"},
    {"three ends", "n[1-2-3]", "'1-2-3' is no number or range of numbers (column 3)"},
    {"negative", "n[-2]", "'-2' is no number or range of numbers (column 3)"},
    {"nested", "n[1[2]]", "'1[2' is no number or range of numbers (column 3)"},
    {"backwards", "n[4-2]", "the range 4-2 runs backwards (column 3)"},
    {"two widths", "n[01-100]", "the ends of 01-100 are padded to different widths (column 3)"},
    {"too large a number", "n[1-99999999999999999999]",
     "is no number or range of numbers (column 3)"},
    {"an option for ssh", "a,-oProxyCommand=x", "cannot begin with '-' (column 3)"},
    {"an option out of a bracket", "-[1-2]", "cannot begin with '-' (column 1)"},
    {"shell", "a;reboot", "is made of letters, digits and . _ : - (column 1)"},
    {"an option for ssh with a user", "-oProxyCommand=x@a", "cannot begin with '-' (column 1)"},
    {"an option behind a user", "ann@-a", "cannot begin with '-' (column 1)"},
    {"nobody", "@a", "a node needs a name (column 1)"},
    {"a user alone", "ann@", "a node needs a name (column 1)"},
    {"two users", "a@b@c", "is made of letters, digits and . _ : - (column 1)"},
    {"escape", "a\x1b[2J", "'[' is never closed (column 3)"},
    {"control character", "a\x01", "'a\\x01': a node's name is made of"},
    {"twice", "a,b,a", "'a' twice (column 5)"},
    {"twice, by a range", "n[1-3],n2", "'n2' twice (column 8)"},
    {"too many", "n[0-65536]", "more than 65536 nodes (column 1)"},
    {"too many together", "n[0-65535],m", "more than 65536 nodes (column 12)"},
    {"too many by two brackets", "n[1-1000]m[1-1000]", "more than 65536 nodes (column 1)"},
    {"many brackets", "n[1][1][1][1][1][1][1][1][1]", "too many brackets in one name (column 26)"},
    {"far too many", "n[0-999999999999999999]", "more than 65536 nodes (column 1)"},
};

}  // namespace

TEST_CASE("parse_hostlist: what it names") {
  for (const GoodRow& row : kGood) {
    CAPTURE(row.name);
    const auto hosts = parse_hostlist(row.text);
    REQUIRE_MESSAGE(hosts.has_value(), row.text);
    CHECK(join(*hosts, " ") == row.hosts);
  }
}

TEST_CASE("parse_hostlist: what it refuses, in one line with the place") {
  for (const BadRow& row : kBad) {
    CAPTURE(row.name);
    const auto hosts = parse_hostlist(row.text);
    REQUIRE_FALSE(hosts.has_value());
    const std::string line = hosts.error().render();
    CAPTURE(line);
    CHECK(line.starts_with("read the node list: "));
    CHECK(line.find(row.message) != std::string::npos);
  }
}

TEST_CASE("the host of a peer; a host alone has no user") {
  CHECK(host_of_peer("ann@node0") == "node0");
  CHECK(host_of_peer("node0") == "node0");
  CHECK(bad_peer_name("ann@node0").empty());
  CHECK_FALSE(bad_host_name("ann@node0").empty());
  CHECK_FALSE(bad_peer_name("ann@" + std::string(252, 'x')).empty());
}

TEST_CASE("parse_hostlist: the largest list, and names too long for memory times that") {
  CHECK(parse_hostlist("n[0-65535]").value().size() == kMostHosts);
  const std::string tail(1'000'000, 'x');
  CHECK(parse_hostlist("n[0-65535]" + tail).error().reason.ends_with("at most 255 characters"));
  const std::string creeping = std::string(250, 'x') + "[1000]yy";
  CHECK(parse_hostlist(creeping).error().reason.ends_with("at most 255 characters"));
}
