#include "rules/torch/endpoint.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

struct Claim {
  std::string name;
  std::string endpoint;
  std::vector<std::string> own;     // addresses of the own hostname, which is node0
  std::vector<std::string> theirs;  // addresses of the endpoint's host as this node resolves it
  std::string_view claims;          // yes, no, unknown
};

const std::vector<Claim> kClaims = {
    {"own name", "node0", {"10.0.0.1"}, {}, "yes"},
    {"own name that does not resolve", "node0", {}, {}, "yes"},
    {"own address", "10.0.0.1", {"10.0.0.1"}, {}, "yes"},
    {"an address of another link", "10.1.0.1", {"10.0.0.1"}, {}, "no"},
    {"Debian's line hides the own address", "10.0.0.1", {"127.0.1.1"}, {}, "no"},
    {"localhost", "localhost", {}, {}, "yes"},
    {"loopback", "127.0.0.1", {"10.0.0.1"}, {}, "yes"},
    {"IPv6 loopback", "::1", {"10.0.0.1"}, {}, "yes"},
    {"another node", "node1", {"10.0.0.1"}, {"10.0.0.2"}, "no"},
    {"another node, both on Debian's line", "node1", {"127.0.1.1"}, {"127.0.1.1"}, "unknown"},
    {"full name: the version decides", "node0.example.org", {"10.0.0.1"}, {"10.0.0.1"}, "unknown"},
    {"name of another link", "node0-fast", {"10.0.0.1"}, {"10.1.0.1"}, "no"},
    {"own name does not resolve: torchrun fails", "node1", {}, {"10.0.0.2"}, "no"},
    {"the endpoint does not resolve", "nowhere", {"10.0.0.1"}, {}, "no"},
};

std::vector<Address> addresses(const std::vector<std::string>& texts) {
  std::vector<Address> all;
  for (const std::string& text : texts) all.push_back(addr(text));
  return all;
}

NodeFacts node_of(const Claim& row) {
  NodeFacts node;
  node.identity = Identity{.hostname = "node0"};
  node.names = std::vector<Resolution>{{.name = "node0", .all = addresses(row.own)},
                                       {.name = row.endpoint, .all = addresses(row.theirs)}};
  return node;
}

std::string_view word(const Observed<bool>& claim) {
  if (!claim.known()) return "unknown";
  return *claim ? "yes" : "no";
}

}  // namespace

TEST_CASE("claims_endpoint") {
  for (const Claim& row : kClaims) {
    CAPTURE(row.name);
    CHECK(word(rules::claims_endpoint(node_of(row), row.endpoint)) == row.claims);
  }
}

TEST_CASE("claims_endpoint: what was not seen is no answer") {
  NodeFacts node;
  node.names = std::vector<Resolution>{};
  CHECK_FALSE(rules::claims_endpoint(node, "node1").known());
  node.identity = Identity{.hostname = "node0"};
  CHECK_FALSE(rules::claims_endpoint(node, "node1").known());
  CHECK(rules::claims_endpoint(node, "node0").known());
  node.names = std::vector<Resolution>{{.name = "node0", .all = addresses({"10.0.0.1"})}};
  CHECK_FALSE(rules::claims_endpoint(node, "node1").known());
  CHECK(rules::claims_endpoint(node, "10.0.0.1").known());
}

TEST_CASE("parse_endpoint") {
  using rules::Endpoint;
  CHECK(rules::parse_endpoint("node0", 29400) == Endpoint{"node0", 29400});
  CHECK(rules::parse_endpoint(" node0:1234 ", 29400) == Endpoint{"node0", 1234});
  CHECK(rules::parse_endpoint("", 29400) == Endpoint{"localhost", 29400});
  CHECK(rules::parse_endpoint("[fd00::1]:1234", 29400) == Endpoint{"fd00::1", 1234});
  CHECK(rules::parse_endpoint("[fd00::1]", 29400) == Endpoint{"fd00::1", 29400});
  CHECK(rules::parse_endpoint("localhost:0", 29400) == Endpoint{"localhost", 0});
  for (const std::string_view bad : {"node0:", "node0:x", "node0:65536", "node0:-1", "a b:1", "$H",
                                     "node0:000080", ":1", "http://node0:1"}) {
    CAPTURE(bad);
    CHECK_FALSE(rules::parse_endpoint(bad, 29400).has_value());
  }
}
