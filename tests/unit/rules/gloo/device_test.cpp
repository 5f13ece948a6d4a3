#include "rules/gloo/device.h"

#include "support/builders.h"
#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

const std::string kLinks =
    "lo=127.0.0.1/8,::1/128 eth0=10.0.0.1/24,10.0.0.2/24@eth0:1,fd00::1/64,fe80::1/64 "
    "eth1~=10.1.0.1/24 ib0=fe80::9/64";

struct Row {
  std::string name;
  std::vector<std::string> settings;
  std::vector<std::string> resolved;  // what the own hostname resolves to
  std::string expected;               // devices or error, and the reason
};

const std::vector<Row> kRows = {
    {"a name", {"GLOO_SOCKET_IFNAME=eth0"}, {}, "eth0/10.0.0.1 variable"},
    {"two names", {"GLOO_SOCKET_IFNAME=eth0,lo"}, {}, "eth0/10.0.0.1 lo/127.0.0.1 variable"},
    {"trailing comma", {"GLOO_SOCKET_IFNAME=lo,"}, {}, "lo/127.0.0.1 variable"},
    {"a label is a name", {"GLOO_SOCKET_IFNAME=eth0:1"}, {}, "eth0:1/10.0.0.2 variable"},
    {"down or not", {"GLOO_SOCKET_IFNAME=eth1"}, {}, "eth1/10.1.0.1 variable"},
    {"only fe80", {"GLOO_SOCKET_IFNAME=ib0"}, {}, "ib0/fe80::9%ib0 variable"},
    {"no prefixes",
     {"GLOO_SOCKET_IFNAME=eth"},
     {"10.0.0.1"},
     "Unable to find address for: eth variable"},
    {"no NCCL grammar",
     {"GLOO_SOCKET_IFNAME==eth0"},
     {"10.0.0.1"},
     "Unable to find address for: =eth0 variable"},
    {"blank", {"GLOO_SOCKET_IFNAME= eth0"}, {}, "Unable to find address for:  eth0 variable"},
    {"the second is wrong",
     {"GLOO_SOCKET_IFNAME=eth0,ib7"},
     {},
     "Unable to find address for: ib7 variable"},
    {"empty element",
     {"GLOO_SOCKET_IFNAME=,eth0"},
     {},
     "GlooDeviceFactory::makeTCPDevice(): interface or hostname can't be empty variable"},
    {"one character is unset", {"GLOO_SOCKET_IFNAME=x"}, {"10.0.0.1"}, "eth0/10.0.0.1 hostname"},
    {"empty is unset", {"GLOO_SOCKET_IFNAME="}, {"10.0.0.1"}, "eth0/10.0.0.1 hostname"},
    {"hostname", {}, {"10.0.0.1"}, "eth0/10.0.0.1 hostname"},
    {"hostname, second address", {}, {"10.0.0.2"}, "eth0/10.0.0.2 hostname"},
    {"hostname, IPv6 first", {}, {"fd00::1", "10.0.0.1"}, "eth0/fd00::1 hostname"},
    {"Debian's line", {}, {"127.0.1.1"}, "lo/127.0.1.1 hostname"},
    {"another machine's address first", {}, {"10.9.9.9", "10.0.0.1"}, "eth0/10.0.0.1 hostname"},
    {"a link that is down can be bound", {}, {"10.1.0.1"}, "eth1/10.1.0.1 hostname"},
    {"link-local without its link", {}, {"fe80::1"}, "lo/127.0.0.1 fallback"},
    {"link-local with its link", {}, {"fe80::1%eth0"}, "eth0/fe80::1%eth0 hostname"},
    {"no such name", {}, {}, "lo/127.0.0.1 fallback"},
};

NodeFacts node_of(const std::vector<std::string>& resolved) {
  NodeFacts node;
  node.links = links_from(kLinks);
  node.identity = Identity{.hostname = "self"};
  std::vector<Address> addresses;
  for (const std::string& text : resolved) addresses.push_back(addr(text));
  node.names = std::vector<Resolution>{{.name = "other", .all = std::vector{addr("10.0.0.2")}},
                                       {.name = "self", .all = addresses}};
  return node;
}

std::string words(const GlooChoice& choice) {
  std::string text = choice.error;
  for (const Choice& device : choice.devices) {
    text += (text.empty() ? "" : " ") + device.interface + "/" + device.address.text();
  }
  return text + " " + std::string(slug(choice.reason));
}

}  // namespace

TEST_CASE("gloo_choice") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const auto choice = rules::gloo_choice(node_of(row.resolved), settings_from(row.settings));
    CHECK(words(*choice) == row.expected);
  }
}

TEST_CASE("gloo_choice: tentative addresses and a lo without address cannot be bound") {
  NodeFacts node = node_of({"fd00::1"});
  auto links = links_from("lo~ eth0=fd00::1/64");
  node.links = links;
  CHECK(words(*rules::gloo_choice(node, {})) == "eth0/fd00::1 hostname");
  links.at(1).addresses.at(0).tentative = true;
  node.links = links;
  CHECK(words(*rules::gloo_choice(node, {})) == "Unable to find address for: 127.0.0.1 fallback");
}

TEST_CASE("gloo_choice: what was not seen makes no choice") {
  NodeFacts node = node_of({"10.0.0.1"});
  node.names = std::vector<Resolution>{};
  CHECK(rules::gloo_choice(node, {}).why().kind == Why::not_collected);
  node.names = Unknown{.kind = Why::timed_out};
  CHECK(rules::gloo_choice(node, {}).why().kind == Why::timed_out);
  CHECK(rules::gloo_choice(node, settings_from({"GLOO_SOCKET_IFNAME=eth0"})).known());
  node.identity = Unknown{.kind = Why::failed};
  CHECK(rules::gloo_choice(node, {}).why().kind == Why::failed);
  node.links = Unknown{.kind = Why::denied};
  CHECK(rules::gloo_choice(node, {}).why().kind == Why::denied);
}
