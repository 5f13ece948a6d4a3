#include "render/render.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <utility>

namespace distdoctor::render {
namespace {

Cause dropped() {
  Cause cause{.finding = {.code = "rendezvous-port-dropped",
                          .severity = Severity::blocker,
                          .certainty = Certainty::proved,
                          .symptom = Symptom::hang,
                          .subjects = {.nodes = {"node0"}, .pairs = {{"node1", "node0"}}},
                          .summary = "node0 drops what node1 sends to port 29500"},
              .fault_class = FaultClass::firewall,
              .title = "MASTER_PORT is dropped",
              .because = "proved blocker"};
  cause.finding.evidence = {{.node = "node1",
                             .fact = "dial 10.10.0.10:29500",
                             .observed = "timed out",
                             .expected = "connected",
                             .command = "nc -vz -w 3 10.10.0.10 29500"}};
  cause.finding.fix = {
      {.node = "node0", .kind = Fix::Kind::shell, .command = "nft add rule x", .text = "as root"},
      {.node = "*",
       .kind = Fix::Kind::env,
       .env = {{"NCCL_SOCKET_IFNAME", "=eth1"}, {"NCCL_IB_DISABLE", std::nullopt}},
       .text = "for NCCL"}};
  cause.explains = {{.finding = {.code = "net-ephemeral-dropped",
                                 .severity = Severity::blocker,
                                 .certainty = Certainty::proved,
                                 .symptom = Symptom::hang,
                                 .summary = "all ports"}}};
  cause.also_explains = {"net-one-way-dropped"};
  return cause;
}

Diagnosis sick() {
  return {.causes = {dropped()},
          .checks = {{.name = "net/a", .title = "A is well", .result = CheckResult::pass},
                     {.name = "net/b", .title = "B is well", .result = CheckResult::pass},
                     {.name = "rendezvous/port",
                      .title = "The port is open",
                      .result = CheckResult::blocker,
                      .detail = "it is not"},
                     {.name = "host/shm",
                      .title = "shm fits",
                      .result = CheckResult::unknown,
                      .detail = "denied"}},
          .gaps = {{.nodes = {"node1"}, .fact = "shm", .why = {Why::denied, "EPERM"}}},
          .nodes = {{"node0", true, ""}, {"node1", false, "ssh: no\x1b[2Jroute"}},
          .verdict = Verdict::problems,
          .exit_code = 1};
}

std::string printed(const Diagnosis& diagnosis, const TextOptions& options) {
  std::ostringstream out;
  const ClusterFacts cluster = testing::healthy_cluster(2);
  text({.command = "check", .diagnosis = diagnosis, .cluster = cluster, .elapsed_s = 1.9}, options,
       out);
  return out.str();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE(
    "a diagnosis says code, evidence with its command, fix, consequence and where to read on") {
  const std::string out = printed(sick(), {.utf8 = false});
  for (const char* part :
       {"1. X rendezvous-port-dropped  [blocker, proved, symptom: hang]", "MASTER_PORT is dropped",
        "About: node0, node1 -> node0",
        "node1: dial 10.10.0.10:29500 is timed out, expected connected",
        "$ nc -vz -w 3 10.10.0.10 29500", "on node0: as root", "nft add rule x",
        "in the job's environment, on every node: for NCCL", "export NCCL_SOCKET_IFNAME='=eth1'",
        "unset NCCL_IB_DISABLE", "net-ephemeral-dropped: all ports",
        "Would also explain: net-one-way-dropped", "distdoctor explain rendezvous-port-dropped",
        "MASTER_ADDR=node0  (option, --env)"}) {
    CAPTURE(part);
    CHECK(has(out, part));
  }
}

Cause without_plugin(const std::string& host, const std::string& count) {
  Cause cause{.finding = {.code = "software-efa-not-usable",
                          .severity = Severity::degraded,
                          .certainty = Certainty::likely,
                          .symptom = Symptom::slow,
                          .subjects = {.nodes = {host}},
                          .summary = host + " has " + count + " devices and no plugin"},
              .title = "NCCL cannot use EFA",
              .because = "likely degraded"};
  cause.finding.evidence = {
      {.node = host, .fact = "EFA", .observed = count, .expected = "a plugin", .command = "ls"}};
  cause.finding.fix = {{.node = host, .kind = Fix::Kind::manual, .text = "install it on " + host}};
  return cause;
}

TEST_CASE("the same on another node is told in short, and with -v in full") {
  const Diagnosis alike{.causes = {without_plugin("node0", "4"), without_plugin("node1", "2")}};
  const std::string brief = printed(alike, {.utf8 = false});
  CHECK(has(brief, "install it on node0"));
  CHECK_FALSE(has(brief, "install it on node1"));
  CHECK(has(brief,
            "   node1 has 2 devices and no plugin\n"
            "   Evidence and fix as under 1, on node1 (-v shows all)\n"));
  CHECK(has(printed(alike, {.utf8 = false, .verbose = true}), "install it on node1"));
}

TEST_CASE("what differs in more than the node is told in full") {
  const auto full = [](void (*change)(Cause&)) {
    Diagnosis two{.causes = {without_plugin("node0", "4"), without_plugin("node1", "4")}};
    change(two.causes[1]);
    const std::string out = printed(two, {.utf8 = false});
    return !has(out, "as under 1");
  };
  CHECK_FALSE(full([](Cause&) {}));
  CHECK(full([](Cause& cause) { cause.finding.fix[0].text = "another way"; }));
  CHECK(full([](Cause& cause) { cause.finding.evidence[0].command = "ls /opt"; }));
  CHECK(full([](Cause& cause) { cause.finding.severity = Severity::notice; }));
  CHECK(full([](Cause& cause) { cause.also_explains = {"net-one-way-dropped"}; }));
  CHECK(full([](Cause& cause) { cause.finding.subjects.nodes = {"node0"}; }));
  CHECK(full([](Cause& cause) { cause.finding.subjects.pairs = {{"node0", "node1"}}; }));
}

TEST_CASE("a setting says where it comes from, once") {
  ClusterFacts cluster = testing::healthy_cluster(2);
  const auto line = [&](const Origin& origin) {
    cluster.job.settings["MASTER_ADDR"] = {"node0", origin};
    std::ostringstream out;
    text({.command = "check", .diagnosis = {}, .cluster = cluster, .elapsed_s = 1.9}, {}, out);
    const auto begin = out.str().find("MASTER_ADDR=");
    return out.str().substr(begin, out.str().find('\n', begin) - begin);
  };
  CHECK(line({.source = Source::command_line, .where = "command line"}) ==
        "MASTER_ADDR=node0  (command line)");
  CHECK(line({.source = Source::command_line, .where = "job.sh:3"}) ==
        "MASTER_ADDR=node0  (command line, job.sh:3)");
  CHECK(line({.source = Source::process, .node = "node1", .where = "pid 7"}) ==
        "MASTER_ADDR=node0  (process, pid 7 on node1)");
  CHECK(line({.source = Source::environment}) == "MASTER_ADDR=node0  (environment)");
}

TEST_CASE("the last two lines are the verdict and what was not checked") {
  const std::string out = printed(sick(), {.utf8 = false});
  CHECK(
      has(out, "\nVerdict: problems (1 blocker) after 1.9 s\nNot checked: shm on node1 (EPERM)\n"));
  const std::string healthy = printed({.nodes = {{"node0", true, ""}}}, {});
  CHECK(has(healthy, "Not checked: nothing was left out\n"));
  // And where that is nothing at all, what was not tried.
  CHECK(has(healthy, "distdoctor bisect runs tiny all-reduces"));
  CHECK_FALSE(has(out, "distdoctor bisect"));
  CHECK(has(healthy, "Verdict: healthy"));
}

TEST_CASE("passes are one line a module, and a line each with -v") {
  const std::string brief = printed(sick(), {.utf8 = false});
  CHECK(has(brief, "net\n  ok 2 checks passed\n"));
  CHECK_FALSE(has(brief, "A is well"));
  CHECK(has(brief, "X The port is open\n      it is not\n"));
  const std::string verbose = printed(sick(), {.utf8 = false, .verbose = true});
  CHECK(has(verbose, "ok A is well\n"));
  CHECK(has(verbose, "? shm fits\n      denied\n"));
}

TEST_CASE("symbols by locale, colour on request, never a control character of others") {
  const std::string plain = printed(sick(), {.utf8 = true});
  CHECK(has(plain, "✗ rendezvous-port-dropped"));
  CHECK_FALSE(has(plain, "\x1b"));
  CHECK(has(plain, "node1 was not reached: ssh: no\\x1b[2Jroute"));
  CHECK(has(printed(sick(), {.colour = true}), "\x1b[1;31m"));
}

TEST_CASE("interrupted says so") {
  Diagnosis diagnosis = sick();
  diagnosis.interrupted = true;
  CHECK(has(printed(diagnosis, {}), "cut short by Ctrl-C or the budget, so this is a part only"));
}

TEST_CASE("wires that were measured stand below the runs, the slowest first") {
  ClusterFacts cluster = testing::healthy_cluster(4);
  const auto shown = [&](const TextOptions& options) {
    std::ostringstream out;
    text({.command = "bisect", .diagnosis = {}, .cluster = cluster, .elapsed_s = 1.9}, options,
         out);
    return out.str();
  };
  CHECK_FALSE(has(shown({}), "plain TCP"));
  for (PairFacts& pair : cluster.pairs) {
    pair.paths[0].wire = std::vector<WireSpeed>{{1, 2.5, 0.7}, {8, 3, 0.7}, {8, 3.2, 0.7}};
  }
  cluster.pairs[5].paths[0].wire = std::vector<WireSpeed>{{1, 0.0075, 0.7}};
  CHECK(has(
      shown({}),
      "plain TCP below them\n  node1 -> node3 by eth1: 0.0075 GB/s by 1 stream, 0.2 ms round trip\n"
      "  node0 -> node1 by eth1: 2.5 GB/s by 1 stream, 3.2 by 8, 0.2 ms round trip\n"));
  CHECK(has(shown({}), "  and 6 faster ones (-v)\n"));
  CHECK_FALSE(has(shown({.verbose = true}), "faster ones"));
}

}  // namespace
}  // namespace distdoctor::render
