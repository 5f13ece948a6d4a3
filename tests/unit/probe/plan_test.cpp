#include "probe/plan.h"

#include "probe/master_port.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace probe;

std::string line(const PlannedDial& dial) {
  std::string text = dial.from + " -> " + dial.to + " " + std::string(slug(dial.target.purpose));
  for (const Purpose purpose : dial.also) text += "+" + std::string(slug(purpose));
  text += " " + dial.target.address.text();
  if (dial.target.port != 0) text += ":" + std::to_string(dial.target.port);
  if (!dial.listen.empty()) text += " [" + dial.listen + "]";
  return text + (dial.target.nonce ? " nonce" : "");
}
std::vector<std::string> lines(const Round& round) {
  std::vector<std::string> all;
  for (const PlannedDial& dial : round.dials) all.push_back(line(dial));
  return all;
}
using Lines = std::vector<std::string>;

ClusterFacts cluster_of(std::size_t size) {
  World world;
  world.cluster = healthy_cluster(size);
  world.cluster.job.gloo = Use::yes;
  return world.cluster;
}

TEST_CASE("two nodes: MASTER_PORT first and by both, then each way what is announced") {
  const ProbePlan plan = make_plan(cluster_of(2), {}, 1);
  REQUIRE(plan.rounds.size() == 2);
  const Round& master = plan.rounds[0];
  REQUIRE(master.listens.size() == 1);
  CHECK(master.listens[0].host == "node0");
  CHECK(master.listens[0].request.port == 29500);
  CHECK_FALSE(master.listens[0].request.watch_only);
  CHECK(master.listens[0].request.hold_ms <= 2000);
  CHECK(lines(master) ==
        Lines{"node0 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10] nonce",
              "node1 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10] nonce"});
  CHECK(master.dials[0].target.nonce == master.listens[0].request.nonce);

  const Round& announced = plan.rounds[1];
  CHECK(announced.listens.size() == 4);
  for (const PlannedListen& listen : announced.listens) {
    CHECK(listen.request.spread == 8);
    CHECK_FALSE(listen.request.port.has_value());
  }
  CHECK(lines(announced) ==
        Lines{"node0 -> node1 bootstrap+data 10.20.0.11 [node1 10.20.0.11] nonce",
              "node0 -> node1 gloo 10.10.0.11 [node1 10.10.0.11] nonce",
              "node1 -> node0 bootstrap+data 10.20.0.10 [node0 10.20.0.10] nonce",
              "node1 -> node0 gloo 10.10.0.10 [node0 10.10.0.10] nonce"});
  REQUIRE(announced.paths.size() == 4);
  CHECK(announced.paths[0].target.purpose == Purpose::nccl_data);
  CHECK(announced.paths[0].target.destination == addr("10.20.0.11"));
  CHECK(announced.paths[0].target.source.unspecified());
  CHECK(announced.paths[1].target.purpose == Purpose::gloo);
  CHECK(plan.left_out.empty());

  REQUIRE(plan.duplicates.size() == 2);
  CHECK(plan.duplicates[0].host == "node0");
  CHECK(plan.duplicates[0].request.choices == std::vector<Choice>{{"eth1", addr("10.20.0.10")},
                                                                  {"eth0", addr("10.10.0.10")},
                                                                  {"eth1", addr("10.20.0.11")},
                                                                  {"eth0", addr("10.10.0.11")}});
}

TEST_CASE("nonces differ between sets and follow the seed") {
  std::set<std::uint64_t> nonces;
  for (const std::uint64_t seed : {1U, 2U}) {
    for (const Round& round : make_plan(cluster_of(4), {}, seed).rounds) {
      for (const PlannedListen& listen : round.listens) nonces.insert(listen.request.nonce);
    }
  }
  CHECK(nonces.size() == 2 * (1 + 4 * 2));
}

TEST_CASE("who dials where MASTER_ADDR leads for it") {
  struct Row {
    const char* name;
    void (*change)(ClusterFacts&);
    Lines dials;
    std::size_t listens;
  };
  const Row rows[] = {
      {"it resolves to loopback on node1",
       [](ClusterFacts& c) {
         auto names = *c.nodes[1].names;
         names[0] = resolution("node0", "127.0.0.1");
         c.nodes[1].names = names;
       },
       {"node0 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10] nonce",
        "node1 -> node1 master 127.0.0.1:29500"},
       1},
      {"loopback on node0, where the others cannot come",
       [](ClusterFacts& c) {
         auto names = *c.nodes[0].names;
         names[0] = resolution("node0", "127.0.0.1");
         c.nodes[0].names = names;
         c.predicted.master->addresses.push_back(addr("127.0.0.1"));
       },
       {"node0 -> node0 master 127.0.0.1:29500 [master node0 127.0.0.1] nonce",
        "node1 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10] nonce"},
       2},
      {"a literal address that no peer has",
       [](ClusterFacts& c) {
         c.predicted.master = Master{
             .host = "10.10.0.99", .port = std::uint16_t{29500}, .addresses = {addr("10.10.0.99")}};
       },
       {"node0 ->  master 10.10.0.99:29500", "node1 ->  master 10.10.0.99:29500"},
       0},
      {"node1 does not know the name",
       [](ClusterFacts& c) {
         auto names = *c.nodes[1].names;
         names[0].all = std::vector<Address>{};
         c.nodes[1].names = names;
       },
       {"node0 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10] nonce"},
       1},
      {"something of the job is alive: look, do not bind",
       [](ClusterFacts& c) {
         c.nodes[1].processes =
             std::vector<TrainingProcess>{{.pid = 7,
                                           .argv = {"torchrun", "--rdzv-endpoint=node0:29500"},
                                           .env = std::map<std::string, std::string>{}}};
       },
       {"node0 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10]",
        "node1 -> node0 master 10.10.0.10:29500 [master node0 10.10.0.10]"},
       1},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    ClusterFacts cluster = cluster_of(2);
    row.change(cluster);
    const ProbePlan plan = make_plan(cluster, {}, 1);
    CHECK(lines(plan.rounds.at(0)) == row.dials);
    CHECK(plan.rounds[0].listens.size() == row.listens);
    for (const PlannedListen& listen : plan.rounds[0].listens) {
      CHECK(listen.request.watch_only == !plan.rounds[0].dials[0].target.nonce.has_value());
    }
  }
}

TEST_CASE("what cannot be planned is left out by name") {
  ClusterFacts cluster = cluster_of(3);
  SUBCASE("a node that was not reached") {
    cluster.nodes[2].reached = false;
    const ProbePlan plan = make_plan(cluster, {}, 1);
    for (const Round& round : plan.rounds) {
      for (const PlannedDial& dial : round.dials)
        CHECK((dial.from != "node2" && dial.to != "node2"));
    }
    CHECK(plan.rounds[0].listens.at(0).request.watch_only);  // what it runs is not known
  }
  SUBCASE("no settings") {
    cluster.predicted.master.reset();
    CHECK(make_plan(cluster, {}, 1).rounds.size() == 1);
  }
  SUBCASE("names unseen") {
    cluster.nodes[1].names = Unknown{.text = "getent: timed out"};
    const ProbePlan plan = make_plan(cluster, {}, 1);
    REQUIRE(plan.left_out.size() == 1);
    CHECK(plan.left_out[0].node == "node1");
    CHECK(plan.left_out[0].what == "MASTER_PORT");
  }
  SUBCASE("0 is no port: nobody dials it") {
    cluster.predicted.master->port = 0;
    const ProbePlan plan = make_plan(cluster, {}, 1);
    CHECK(plan.rounds.size() == 1);
    REQUIRE(plan.left_out.size() == 1);
    CHECK(plan.left_out[0].what == "MASTER_PORT");
    CHECK(plan.left_out[0].why.text == "0 is no port");
  }
  SUBCASE("nothing predicted for a node") {
    cluster.predicted.nodes[1].nccl = Unknown{.text = "no links"};
    cluster.predicted.nodes[1].gloo = Unknown{.text = "no links"};
    const ProbePlan plan = make_plan(cluster, {}, 1);
    REQUIRE(plan.left_out.size() == 1);
    CHECK(plan.left_out[0].what == "announced");
  }
  SUBCASE("one machine alone") {
    const ProbePlan plan = make_plan(cluster_of(1), {}, 1);
    CHECK(plan.rounds.size() == 1);
    CHECK(lines(plan.rounds[0]).size() == 1);
  }
  SUBCASE("nobody") {
    CHECK(make_plan({}, {}, 1).rounds.empty());
  }
}

TEST_CASE("a loopback address is listened to and dialled, but nothing is measured") {
  ClusterFacts cluster = cluster_of(2);
  cluster.predicted.nodes[1].gloo = GlooChoice{.devices = {{"lo", addr("127.0.1.1")}}};
  const Round round = make_plan(cluster, {}, 1).rounds.at(1);
  CHECK(lines(round)[1] == "node0 -> node1 gloo 127.0.1.1 [node1 127.0.1.1] nonce");
  for (const PlannedPath& path : round.paths) CHECK_FALSE(path.target.destination.loopback());
}

TEST_CASE("a link-local address gets the dialler's own zone") {
  ClusterFacts cluster = cluster_of(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string zone = i == 0 ? "ib0" : "ib1";
    cluster.predicted.nodes[i].gloo =
        GlooChoice{.devices = {{zone, addr("fe80::" + std::to_string(i + 1) + "%" + zone)}}};
  }
  CHECK(lines(make_plan(cluster, {}, 1).rounds.at(1))[1] ==
        "node0 -> node1 gloo fe80::2%ib0 [node1 fe80::2%ib1] nonce");
}

TEST_CASE("all pairs up to the limit, above it a bounded plan that says so") {
  for (const std::size_t size : {32U, 33U, 200U}) {
    CAPTURE(size);
    const ProbePlan plan = make_plan(cluster_of(size), {}, 1);
    const Round& round = plan.rounds.at(1);
    std::map<std::string, std::set<std::string>> targets;
    for (const PlannedDial& dial : round.dials) targets[dial.from].insert(dial.to);
    CHECK(targets.size() == size);
    for (const auto& [from, to] : targets) {
      CHECK(to.size() == (size == 32 ? 31 : 4));
      CHECK_FALSE(to.contains(from));
      for (const std::string& other : to) CHECK(targets[other].contains(from));
    }
    CHECK(plan.left_out.size() == (size == 32 ? 0 : 1));
    CHECK(plan.rounds[0].dials.size() == size);  // MASTER_PORT is everybody's
  }
}

Listener listener() {
  return {.address = {}, .port = 29500};
}
Connection connection(TcpState state, std::uint16_t local, std::uint16_t remote) {
  return {.state = state, .local = {}, .local_port = local, .remote = {}, .remote_port = remote};
}

using Variables = std::map<std::string, std::string>;

TrainingProcess agent(const std::vector<std::string>& argv, const Variables& env = {}) {
  TrainingProcess process{.pid = 7, .role = ProcessRole::agent, .argv = argv};
  process.env = env;
  return process;
}

TEST_CASE("when the job's own port may be bound") {
  struct Row {
    const char* name;
    void (*change)(ClusterFacts&);
    const char* why;
  };
  const auto with_process = [](ClusterFacts& c, TrainingProcess process) {
    c.nodes[1].processes = std::vector<TrainingProcess>{std::move(process)};
  };
  static const auto process = with_process;
  const Row rows[] = {
      {"nobody is there", [](ClusterFacts&) {}, ""},
      {"another job's worker",
       [](ClusterFacts& c) {
         process(c, {.pid = 7,
                     .argv = {"python", "--port=129500", "29501"},
                     .env = std::map<std::string, std::string>{{"MASTER_PORT", "29501"}}});
       },
       ""},
      {"a worker in another network namespace",
       [](ClusterFacts& c) { process(c, {.pid = 7, .argv = {"x:29500"}, .our_network = false}); },
       ""},
      {"a worker has it in its environment",
       [](ClusterFacts& c) {
         process(c,
                 {.pid = 7, .env = std::map<std::string, std::string>{{"MASTER_PORT", "29500"}}});
       },
       "process 7 on node1 has the port in its environment"},
      {"torchrun has it in its arguments",
       [](ClusterFacts& c) {
         process(c, {.pid = 7,
                     .argv = {"torchrun", "--master_port", "29500"},
                     .env = std::map<std::string, std::string>{}});
       },
       "process 7 on node1 has the port in its arguments"},
      {"a worker whose environment cannot be read",
       [](ClusterFacts& c) { process(c, {.pid = 7, .env = Unknown{.kind = Why::denied}}); },
       "the environment of process 7 on node1 is unseen"},
      {"a torchrun with all its defaults, before its workers start",
       [](ClusterFacts& c) {
         process(c, agent({"torchrun", "--nnodes", "2", "--master_addr", "node0", "t.py"}));
       },
       "process 7 on node1 may be about to use it"},
      {"c10d with its default port",
       [](ClusterFacts& c) {
         c.predicted.master->port = std::uint16_t{29400};
         process(c, agent({"torchrun", "--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=node0",
                           "t.py"}));
       },
       "process 7 on node1 may be about to use it"},
      {"a port by PET_MASTER_PORT",
       [](ClusterFacts& c) {
         process(c, agent({"torchrun", "--nnodes=2", "t.py"}, {{"PET_MASTER_PORT", "29500"}}));
       },
       "process 7 on node1 has the port in its environment"},
      {"a torchrun with another port",
       [](ClusterFacts& c) {
         process(c, agent({"torchrun", "--nnodes=2", "--master-port", "29501", "t.py"}));
       },
       ""},
      {"a torchrun with another endpoint",
       [](ClusterFacts& c) {
         process(c, agent({"torchrun", "--nnodes=2", "--rdzv_endpoint", "node0:1234", "t.py"}));
       },
       ""},
      {"a torchrun with its default, which is not ours",
       [](ClusterFacts& c) {
         c.predicted.master->port = std::uint16_t{4000};
         process(c, agent({"torchrun", "--nnodes=2", "t.py"}));
       },
       ""},
      {"a torchrun for its own node",
       [](ClusterFacts& c) { process(c, agent({"torchrun", "--nproc_per_node=8", "t.py"})); }, ""},
      {"a torchrun for one node, on the master",
       [](ClusterFacts& c) {
         c.nodes[0].processes =
             std::vector<TrainingProcess>{agent({"torchrun", "--nproc_per_node=8", "t.py"})};
       },
       "process 7 on node0 may be about to use it"},
      {"a worker that meets at home",
       [](ClusterFacts& c) {
         process(c, {.pid = 7,
                     .env = Variables{{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "29500"}}});
       },
       ""},
      {"a worker that says no port",
       [](ClusterFacts& c) { process(c, {.pid = 7, .env = Variables{{"SLURM_PROCID", "1"}}}); },
       "process 7 on node1 may be about to use it"},
      {"an srun of who knows what",
       [](ClusterFacts& c) {
         TrainingProcess srun = agent({"/usr/bin/srun", "train.sh"});
         srun.role = ProcessRole::launcher;
         process(c, srun);
       },
       "process 7 on node1 may be about to use it"},
      {"an srun with another port",
       [](ClusterFacts& c) {
         TrainingProcess srun = agent({"/usr/bin/srun", "train.sh"}, {{"MASTER_PORT", "29501"}});
         srun.role = ProcessRole::launcher;
         process(c, srun);
       },
       ""},
      {"the srun that carries our agents",
       [](ClusterFacts& c) {
         TrainingProcess srun = agent({"srun", "--overlap", "/opt/bin/distdoctor", "agent"});
         srun.role = ProcessRole::launcher;
         process(c, srun);
       },
       ""},
      {"a zombie",
       [](ClusterFacts& c) { process(c, {.pid = 7, .state = "Z", .env = Variables{}}); }, ""},
      {"processes unseen", [](ClusterFacts& c) { c.nodes[1].processes = Unknown{}; },
       "the processes of node1 are unseen"},
      {"sockets unseen", [](ClusterFacts& c) { c.nodes[0].sockets = Unknown{}; },
       "the sockets of node0 are unseen"},
      {"sockets cut off",
       [](ClusterFacts& c) { c.nodes[0].sockets = SocketFacts{.truncated = true}; },
       "not all sockets of node0 were seen"},
      {"a listener on the master",
       [](ClusterFacts& c) { c.nodes[0].sockets = SocketFacts{.listeners = {listener()}}; },
       "something listens on it already"},
      {"a listener elsewhere",
       [](ClusterFacts& c) { c.nodes[1].sockets = SocketFacts{.listeners = {listener()}}; }, ""},
      {"somebody is knocking",
       [](ClusterFacts& c) {
         c.nodes[1].sockets =
             SocketFacts{.connections = {connection(TcpState::syn_sent, 40000, 29500)}};
       },
       "somebody on node1 is connecting to it"},
      {"half open, left by somebody who listened a moment ago",
       [](ClusterFacts& c) {
         c.nodes[0].sockets =
             SocketFacts{.connections = {connection(TcpState::syn_recv, 29500, 40000)}};
       },
       ""},
      {"an outgoing connection sits on it",
       [](ClusterFacts& c) {
         c.nodes[0].sockets =
             SocketFacts{.connections = {connection(TcpState::established, 29500, 22)}};
       },
       "a connection uses it already"},
      {"a node was not reached", [](ClusterFacts& c) { c.nodes[1].reached = false; },
       "node1 was not reached"},
      {"no peer has the address", [](ClusterFacts& c) { c.predicted.master->node.clear(); },
       "no peer has the address"},
      {"no port", [](ClusterFacts& c) { c.predicted.master->port.reset(); }, "no port is known"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    ClusterFacts cluster = cluster_of(2);
    row.change(cluster);
    CHECK(why_not_bind(cluster, *cluster.predicted.master) == row.why);
  }
}

TEST_CASE("an address that nobody can listen at yet is not planned") {
  World world;
  world.cluster = cluster_of(2);
  world.change_link(0, "eth1", [](Link& link) { link.addresses[0].tentative = true; });
  CHECK(lines(make_plan(world.cluster, {}, 1).rounds[1]) ==
        Lines{"node0 -> node1 bootstrap+data 10.20.0.11 [node1 10.20.0.11] nonce",
              "node0 -> node1 gloo 10.10.0.11 [node1 10.10.0.11] nonce",
              "node1 -> node0 gloo 10.10.0.10 [node0 10.10.0.10] nonce"});
}

}  // namespace
}  // namespace distdoctor::testing
