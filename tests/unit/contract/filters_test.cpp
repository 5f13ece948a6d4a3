#include <distdoctor/filters.h>
#include <distdoctor/firewall_fix.h>

#include "collect/nft_rules.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

constexpr PortRange kEphemeral = {32768, 60999};

Firewall input(const std::string& lines) {
  return {.chains = collect::parse_nft_ruleset(
              "table inet filter { # handle 1\n\tchain input { # handle 2\n\t\ttype filter hook "
              "input priority filter; policy accept;\n" +
              lines + "\t}\n}\n")};
}
// Node1 with these rules.
NodeFacts node_with(const std::string& lines) {
  NodeFacts node = healthy_node(1, 2);
  node.firewall = input(lines);
  return node;
}
Passage to_node(const NodeFacts& node) {
  return {.node = &node, .own = addr(fast(1)), .peer = addr(fast(0))};
}
std::string says(const NodeFacts& node, const Passage& passage, std::uint16_t port = 40000) {
  const auto result = outlook({passage.node == nullptr ? &node : passage.node, passage.way,
                               passage.own, passage.peer, passage.interface},
                              port);
  return result ? std::string(slug(result->says)) : "no rules";
}

TEST_CASE("a node whose rules were not read has no outlook") {
  NodeFacts node = healthy_node(1, 2);
  node.firewall = Unknown{};
  CHECK(says(node, to_node(node)) == "no rules");
  CHECK(outlooks(to_node(node), kEphemeral).empty());
  CHECK(stops_of(to_node(node), kEphemeral).empty());
}

TEST_CASE("the interface is the one that is told, else the one that has the address, or lo") {
  const NodeFacts eth1 = node_with("iifname eth1 drop # handle 4\n");
  CHECK(says(eth1, to_node(eth1)) == "stopped");
  Passage told = to_node(eth1);
  told.interface = "eth0";
  CHECK(says(eth1, told) == "passes");
  const NodeFacts lo = node_with("iifname lo drop # handle 4\n");
  Passage itself = to_node(lo);
  itself.peer = itself.own;
  CHECK(says(lo, to_node(lo)) == "passes");
  CHECK(says(lo, itself) == "stopped");
}

TEST_CASE("a node that keeps the answers from passing does not let the connection pass") {
  const NodeFacts node = node_with("ct state established drop # handle 4\n");
  Passage out = to_node(node);
  CHECK(says(node, out) == "passes");  // its answers go out
  out.way = Way::out;
  CHECK(says(node, out) == "stopped");
}

TEST_CASE("a rule on PSH lets the handshake pass and ends the data") {
  const NodeFacts node = node_with("tcp dport 29500 tcp flags psh / psh drop # handle 4\n");
  Passage passage = to_node(node);
  CHECK(says(node, passage, 29500) == "passes");
  passage.data = true;
  REQUIRE(outlook(passage, 29500));
  CHECK(outlook(passage, 29500)->says == FilterSays::stopped);
  CHECK(outlook(passage, 29501)->says == FilterSays::passes);
}

TEST_CASE("a rule on the port that answers come from is named, and mended on their way") {
  NodeFacts node = healthy_node(1, 2);
  node.firewall =
      Firewall{.chains = {{.tool = FilterTool::iptables,
                           .family = "ip",
                           .table = "filter",
                           .name = "OUTPUT",
                           .hook = "output",
                           .rules = {{.conditions = {{FilterField::protocol, false, {"tcp"}},
                                                     {FilterField::source_port, false, {"29500"}}},
                                      .verdict = FilterVerdict::drop,
                                      .number = 1,
                                      .text = "-A OUTPUT -p tcp -m tcp --sport 29500 -j DROP"}}}}};
  CHECK(says(node, to_node(node), 29500) == "stopped");
  CHECK(says(node, to_node(node), 29501) == "passes");
  const auto stops = stops_of(to_node(node), {29500, 29500});
  REQUIRE(stops.size() == 1);
  CHECK(stops[0].answer);
  const auto fixes = open_before_fix({.node = "node1", .peers = {}, .ports = {29500, 29500}},
                                     *node.firewall, {{addr(fast(0)), stops[0]}});
  REQUIRE(fixes.size() == 1);
  CHECK(fixes[0].command ==
        "iptables -I OUTPUT 1 -d " + fast(0) + " -p tcp --sport 29500 -j ACCEPT");
  const std::size_t pieces = outlooks(to_node(node), {29000, 30000}).size();
  CHECK(pieces == 3);
}

TEST_CASE("a bridge sees what its own chains do to it") {
  NodeFacts node = node_with("");
  auto links = *node.links;
  links[2].kind = LinkKind::bridge;
  node.links = links;
  CHECK(says(node, to_node(node)) == "passes");
  node.firewall = Firewall{.chains = {{.family = "bridge",
                                       .table = "b",
                                       .name = "in",
                                       .hook = "input",
                                       .policy = FilterVerdict::drop}}};
  CHECK(says(node, to_node(node)) == "unknown");
}

TEST_CASE("neighbouring ports that are treated alike are one piece; each stop is told once") {
  const NodeFacts node = node_with(
      "tcp dport 40000-50000 drop # handle 4\ntcp dport 45000-56000 drop # handle 5\n"
      "tcp dport 33000 accept # handle 6\n");
  std::vector<std::string> pieces;
  for (const Outlook& piece : outlooks(to_node(node), kEphemeral)) {
    pieces.push_back(piece.ports.text() + " " + std::string(slug(piece.result.says)));
  }
  CHECK(pieces == std::vector<std::string>{"32768-39999 passes", "40000-50000 stopped",
                                           "50001-56000 stopped", "56001-60999 passes"});
  CHECK(stops_of(to_node(node), kEphemeral).size() == 2);
  CHECK(stops_of(to_node(node), {45000, 45000}).size() == 1);
  CHECK(stops_of(to_node(node), {32768, 39999}).empty());
}

TEST_CASE("more rules about ports than pieces: of the rest nothing is known") {
  std::string lines;
  for (int port = 32770; port < 33000; port += 2) {
    lines += "tcp dport " + std::to_string(port) + " accept # handle 4\n";
  }
  const NodeFacts node = node_with(lines + "drop # handle 5\n");
  CHECK(outlooks(to_node(node), kEphemeral).back().result.says == FilterSays::unknown);
}

}  // namespace
}  // namespace distdoctor::testing
