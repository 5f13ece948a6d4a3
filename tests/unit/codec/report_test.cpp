#include "codec/report.h"

#include "codec/json.h"
#include "support/diagnoses.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::codec;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("write_report: the shape that other tools rely on") {
  const std::string text = write_report("check", testing::dropped_port_diagnosis(), 1.5);
  CAPTURE(text);
  const auto document = Document::parse(text, std::size_t{1} << 20).value();
  const auto member = [](Value object, std::string_view key) { return object.find(key).value(); };
  const Value root = document.root();
  CHECK(member(root, "schema").string() == "distdoctor/1");
  CHECK(member(root, "command").string() == "check");
  CHECK(member(root, "verdict").string() == "problems");
  CHECK(member(root, "exit_code").natural() == 1);
  CHECK(member(root, "elapsed_s").real() == 1.5);
  CHECK_FALSE(member(root, "interrupted").boolean());

  const Value cause = member(root, "diagnosis").at(0);
  CHECK(member(cause, "code").string() == "rendezvous-port-dropped");
  CHECK(member(cause, "class").string() == "firewall");
  CHECK(member(cause, "severity").string() == "blocker");
  CHECK(member(cause, "symptom").string() == "hang");
  CHECK(member(cause, "certainty").string() == "proved");
  CHECK(member(member(cause, "subjects"), "pairs").at(0).at(1).string() == "node1");
  CHECK(member(member(cause, "evidence").at(0), "command").string() == "nft list ruleset");
  const Value env = member(member(cause, "fix").at(1), "env");
  CHECK(member(env, "NCCL_SOCKET_IFNAME").string() == "=eth1");
  CHECK(member(env, "NCCL_IB_DISABLE").kind() == Kind::null);
  CHECK(member(member(cause, "explains").at(0), "code").string() == "run-agent-timed-out");

  const Value gaps = member(root, "gaps");  // one row a node
  REQUIRE(gaps.size() == 2);
  CHECK(member(gaps.at(1), "node").string() == "node3");
  CHECK(member(gaps.at(1), "why").string() == "EACCES");
  CHECK(member(gaps.at(1), "kind").string() == "denied");
  CHECK(member(member(root, "checks").at(0), "result").string() == "blocker");
  CHECK_FALSE(member(member(root, "nodes").at(1), "reached").boolean());
}
