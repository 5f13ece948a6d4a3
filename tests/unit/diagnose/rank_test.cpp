#include <distdoctor/check.h>

#include "diagnose/diagnose.h"
#include "diagnose/subjects.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace distdoctor::diagnose {
namespace {

// link-down -> no-route -> dropped;  mtu -> dropped;  odd stands alone.
constexpr std::string_view kLinkCauses[] = {"net-no-route"};
constexpr std::string_view kRouteCauses[] = {"net-dropped"};
constexpr std::string_view kMtuCauses[] = {"net-dropped"};
constexpr Code code(std::string_view id,
                    FaultClass fault_class,
                    std::span<const std::string_view> causes) {
  return {.id = id,
          .fault_class = fault_class,
          .worst = Severity::blocker,
          .title = id,
          .causes = causes,
          .page = {}};
}
constexpr Code kCodes[] = {code("net-link-down", FaultClass::link_down, kLinkCauses),
                           code("net-no-route", FaultClass::no_route, kRouteCauses),
                           code("net-mtu", FaultClass::mtu_mismatch, kMtuCauses),
                           code("net-dropped", FaultClass::firewall, {}),
                           code("net-filtered", FaultClass::firewall, kMtuCauses),
                           code("net-odd", FaultClass::packet_loss, {}),
                           code("net-busy", FaultClass::port_in_use, {})};
constexpr Check kCheck{.title = "", .codes = kCodes, .run = nullptr};
constexpr NamedCheck kChecks[] = {{.name = "net/all", .check = &kCheck}};
const std::vector<std::string> peers = {"node0", "node1", "node2"};

Finding finding(const char* id,
                std::vector<std::string> nodes,
                Severity severity = Severity::blocker,
                Certainty certainty = Certainty::proved) {
  return {.code = id,
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::hang,
          .subjects = {.nodes = std::move(nodes)},
          .summary = id};
}

// "code(nested, nested)+also" of each root, in order.
std::vector<std::string> shape(const std::vector<Cause>& causes) {
  std::vector<std::string> lines;
  for (const Cause& cause : causes) {
    std::string line = cause.finding.code;
    for (const Cause& nested : cause.explains) line += " (" + nested.finding.code + ")";
    for (const std::string& also : cause.also_explains) line += " +" + also;
    lines.push_back(line);
  }
  return lines;
}

struct Row {
  const char* name;
  std::vector<Finding> findings;
  std::vector<std::string> expected;
};

TEST_CASE("roots come first, consequences nest under them") {
  const std::vector<Row> rows = {
      {"nothing", {}, {}},
      {"over several steps, though the middle one was not found",
       {finding("net-dropped", {"node1"}), finding("net-link-down", {"node1"})},
       {"net-link-down (net-dropped)"}},
      {"other nodes are another story",
       {finding("net-dropped", {"node2"}), finding("net-link-down", {"node1"})},
       {"net-dropped", "net-link-down"}},
      {"no subject is the whole job",
       {finding("net-dropped", {}), finding("net-link-down", {"node1"})},
       {"net-link-down (net-dropped)"}},
      {"a notice hides no blocker",
       {finding("net-dropped", {"node1"}), finding("net-mtu", {"node1"}, Severity::notice)},
       {"net-dropped", "net-mtu"}},
      {"a guess hides nothing that is proved",
       {finding("net-dropped", {"node1"}),
        finding("net-mtu", {"node1"}, Severity::blocker, Certainty::possible)},
       {"net-dropped", "net-mtu"}},
      {"two causes: the one that explains more takes it, the other says so",
       {finding("net-dropped", {"node1"}), finding("net-mtu", {"node1"}),
        finding("net-no-route", {"node1"}), finding("net-link-down", {"node1"})},
       {"net-link-down (net-no-route) (net-dropped)", "net-mtu +net-dropped"}},
      {"severity, then certainty, then prior",
       {finding("net-odd", {"node0"}, Severity::degraded),
        finding("net-mtu", {"node0"}, Severity::blocker, Certainty::likely),
        finding("net-busy", {"node0"}), finding("net-link-down", {"node2"})},
       {"net-busy", "net-link-down", "net-mtu", "net-odd"}},
      {"subjects in job order break a tie",
       {finding("net-busy", {"node2"}), finding("net-busy", {"node1"})},
       {"net-busy", "net-busy"}},
  };
  for (const Row& row : rows) {
    const std::string name = row.name;
    CAPTURE(name);
    CHECK(shape(rank(row.findings, kChecks, peers)) == row.expected);
  }
}

TEST_CASE("one filter that ends several connections: its fix opens the way for all of them") {
  Finding master = finding("net-filtered", {"node0"});
  Finding data = finding("net-dropped", {"node0"});
  Finding link = finding("net-link-down", {"node1"});
  Finding lost = finding("net-dropped", {"node1"});
  const auto shell = [](const char* node, const char* command) {
    return Fix{.node = node, .kind = Fix::Kind::shell, .command = command, .text = ""};
  };
  const Fix ask{.node = "node0", .kind = Fix::Kind::manual, .text = "ask"};
  master.fix = {shell("node0", "open 29500"), ask};
  data.fix = {shell("node0", "open 32768-60999"), ask};
  link.fix = {shell("node1", "ip link set eth0 up")};
  lost.fix = {shell("node1", "open 40000")};
  const auto causes = rank({master, data, link, lost}, kChecks, peers);
  REQUIRE(shape(causes) ==
          std::vector<std::string>{"net-filtered (net-dropped)", "net-link-down (net-dropped)"});
  CHECK(causes[0].finding.fix == std::vector{master.fix[0], master.fix[1], data.fix[0]});
  CHECK(causes[0].explains[0].finding.fix == data.fix);
  CHECK(causes[1].finding.fix == link.fix);  // what a link's end brings goes with it
}

TEST_CASE("shuffling the findings changes nothing") {
  std::vector<Finding> findings;
  for (const char* id : {"net-link-down", "net-no-route", "net-mtu", "net-dropped", "net-odd"}) {
    for (const char* node : {"node2", "node0", "node1"}) findings.push_back(finding(id, {node}));
  }
  const auto first = rank(findings, kChecks, peers);
  std::mt19937 dice(7);  // NOLINT(bugprone-random-generator-seed): the same shuffles each time
  for (int i = 0; i < 50; ++i) {
    std::ranges::shuffle(findings, dice);
    const auto again = rank(findings, kChecks, peers);
    REQUIRE(again.size() == first.size());
    for (std::size_t k = 0; k < first.size(); ++k) {
      CHECK(again[k].finding == first[k].finding);
      CHECK(again[k].because == first[k].because);
    }
    CHECK(shape(again) == shape(first));
  }
}

TEST_CASE("subjects overlap") {
  const Subjects node1{.nodes = {"node1"}};
  const Subjects pair01{.pairs = {{"node0", "node1"}}};
  const Subjects pair02{.pairs = {{"node0", "node2"}}};
  const Subjects hca{.devices = {"node1/mlx5_0"}};
  CHECK(overlap({}, node1));
  CHECK(overlap(node1, pair01));
  CHECK_FALSE(overlap(node1, pair02));
  CHECK_FALSE(overlap(pair01, pair02));
  CHECK(overlap(pair01, {.pairs = {{"node1", "node0"}}}));
  CHECK(overlap(hca, node1));
  CHECK_FALSE(overlap(hca, {.devices = {"node2/mlx5_0"}}));
  CHECK_FALSE(overlap({.ranks = {1}}, {.ranks = {2}}));
}

}  // namespace
}  // namespace distdoctor::diagnose
