// One row for each branch of the planner: which run comes next, and which never does.
#include "bisect/bisect.h"
#include "support/simulated_cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

using Texts = std::vector<std::string>;

constexpr SimulatedShape kTwoByFour{.nodes = 2, .gpus = 4, .hcas = 2};
constexpr SimulatedShape kTcp{.nodes = 2, .gpus = 4};
constexpr SimulatedShape kOneEach{.nodes = 2, .gpus = 1, .hcas = 1};
constexpr SimulatedShape kOneNode{.nodes = 1, .gpus = 4};
constexpr SimulatedShape kSwitched{.nodes = 1, .gpus = 4, .nvswitch = true};

// Whatever is switched off: it hangs wherever several ranks are.
const SimulatedFault kAlways{.layer = Layer::link};

Texts runs_of(const SimulatedCluster& cluster) {
  Texts whats;
  for (const Experiment& run : cluster.facts.experiments) whats.push_back(run.what);
  return whats;
}

bool ran(const SimulatedCluster& cluster, std::string_view what) {
  const Texts whats = runs_of(cluster);
  return std::ranges::find(whats, what) != whats.end();
}

void set(SimulatedCluster& cluster, const std::string& name, const std::string& value) {
  for (Prediction& node : cluster.facts.predicted.nodes) {
    node.settings[name] = {.value = value, .origin = {.source = Source::option, .where = "--env"}};
  }
}

struct Row {
  std::string_view name;
  SimulatedShape shape;
  std::function<void(SimulatedCluster&)> change;
  Texts run = {};
  Texts not_run = {};
};

const std::vector<Row> rows = {
    {"all that can matter on two nodes",
     kTwoByFour,
     [](auto&) {},
     {"P2P off", "P2P and SHM off", "sockets only", "CUMEM off", "ALGO=Ring", "PROTO=Simple"},
     {"NVLS off", "tuner off", "without the job's own switches"}},
    {"one GPU a node: nothing inside the nodes",
     kOneEach,
     [](auto&) {},
     {"sockets only", "ALGO=Ring"},
     {"P2P off", "SHM off", "P2P and SHM off", "CUMEM off", "NVLS off"}},
    {"one node: no network",
     kOneNode,
     [](auto&) {},
     {"P2P off", "ALGO=Ring"},
     {"sockets only", "by eth0 alone"}},
    {"an NVSwitch brings NVLS", kSwitched, [](auto&) {}, {"NVLS off"}, {}},
    {"so does a bus that was not seen",
     kOneNode,
     [](auto& cluster) { cluster.facts.nodes[0].pci = Unknown{}; },
     {"NVLS off"},
     {}},
    {"no RDMA, no sockets-only run; the other interface instead",
     kTcp,
     [](auto&) {},
     {"by eth0 alone"},
     {"sockets only"}},
    {"an interface that leads nowhere is no way",
     kTcp,
     [](auto& cluster) {
       std::vector<Link> links = *cluster.facts.nodes[1].links;
       for (Link& link : links) link.running = link.name != "eth0";
       cluster.facts.nodes[1].links = links;
     },
     {},
     {"by eth0 alone"}},
    {"a tuner that may be there",
     kTwoByFour,
     [](auto& cluster) { cluster.facts.nodes[0].software = Unknown{}; },
     {"tuner off"},
     {}},
    {"the job's own switches first; what they switch off already is not run again",
     kOneNode,
     [](auto& cluster) { set(cluster, "NCCL_P2P_DISABLE", "1"); },
     {"without the job's own switches", "P2P and SHM off"},
     {"P2P off"}},
    {"only the layers that are asked for",
     kTwoByFour,
     [](auto& cluster) { cluster.options.only = {Layer::p2p}; },
     {"P2P off", "P2P and SHM off"},
     {"sockets only", "CUMEM off", "ALGO=Ring", "PROTO=Simple"}},
    {"Gloo knows none of these switches",
     kTcp,
     [](auto& cluster) {
       cluster.options.backend = RunBackend::gloo;
       for (std::size_t i = 0; i < 2; ++i) {
         cluster.facts.predicted.nodes[i].gloo = GlooChoice{.devices = {{.interface = "eth0"}}};
       }
     },
     {"by eth1 alone"},
     {"P2P off", "SHM off", "ALGO=Ring", "PROTO=Simple", "CUMEM off"}},
};

TEST_CASE("bisect runs what can matter, and nothing else") {
  for (const Row& row : rows) {
    const std::string name(row.name);
    CAPTURE(name);
    SimulatedCluster cluster(row.shape, kAlways);
    row.change(cluster);
    cluster.bisected();
    for (const std::string& what : row.run) CHECK_MESSAGE(ran(cluster, what), what);
    for (const std::string& what : row.not_run) CHECK_FALSE_MESSAGE(ran(cluster, what), what);
  }
}

TEST_CASE("the job's own switches come right after the baseline") {
  SimulatedCluster cluster(kTwoByFour, kAlways);
  set(cluster, "NCCL_ALGO", "Tree");
  cluster.bisected();
  CHECK(cluster.facts.experiments.at(2).what == "without the job's own switches");
  CHECK(cluster.facts.experiments.at(2).switches ==
        std::map<std::string, std::string>{{"NCCL_ALGO", ""}});
}

// Answers by hand: the baseline as given, what follows is only planned.
std::string after(SimulatedCluster& cluster, const std::function<void(Experiment&)>& baseline) {
  for (int i = 0; i < 2; ++i) {
    auto step = bisect::next(cluster.facts, cluster.options);
    Experiment run = std::get<Experiment>(step);
    baseline(run);
    cluster.facts.experiments.push_back(run);
  }
  const auto step = bisect::next(cluster.facts, cluster.options);
  const auto* run = std::get_if<Experiment>(&step);
  return run == nullptr ? "" : run->what;
}

void hang(Experiment& run, const std::string& transport, const std::string& error) {
  run.outcome = RunOutcome::hung;
  for (RankRun& rank : run.ranks) {
    rank.reached = RunStage::comm_init;
    if (!transport.empty()) rank.transports = {transport};
    rank.error = error;
  }
}

TEST_CASE("the baseline's own words decide what comes first") {
  const auto first = [](const SimulatedShape& shape, const char* transport, const char* error) {
    SimulatedCluster cluster(shape, {});
    return after(cluster, [&](Experiment& run) { hang(run, transport, error); });
  };
  CHECK(first(kTwoByFour, "", "") == "sockets only");
  CHECK(first(kOneNode, "", "") == "P2P off");
  CHECK(first(kSwitched, "", "") == "NVLS off");
  CHECK(first(kOneNode, "SHM/direct/direct", "") == "SHM off");
  CHECK(first(kOneNode, "P2P/CUMEM", "") == "P2P off");
  CHECK(first(kTwoByFour, "", "Failed to bind NVLink SHARP (NVLS) Multicast memory") ==
        "sockets only");  // without a switch there is no NVLS
  CHECK(first(kSwitched, "", "cuMem: failed to import") == "CUMEM off");
  CHECK(first(kOneNode, "", "Error: failed to extend /dev/shm/nccl-x to 9 bytes") == "SHM off");
}

TEST_CASE("ranks that never got their device are left out at once") {
  SimulatedCluster cluster(kTwoByFour, {});
  const std::string what = after(cluster, [](Experiment& run) {
    run.outcome = RunOutcome::failed;
    for (RankRun& rank : run.ranks) rank.reached = RunStage::device;
    run.ranks[5].reached = RunStage::loaded;
  });
  CHECK(what == "only node0:0-3 node1:0,2,3");
}

TEST_CASE("what could not be run is no verdict") {
  SimulatedCluster cluster(kTwoByFour, {});
  auto step = bisect::next(cluster.facts, cluster.options);
  cluster.facts.experiments.push_back(std::get<Experiment>(step));  // as planned: not run
  step = bisect::next(cluster.facts, cluster.options);
  REQUIRE(std::holds_alternative<bisect::Inconclusive>(step));
  CHECK_FALSE(std::get<bisect::Inconclusive>(step).out_of_runs);
  cluster.options.places.clear();
  CHECK(std::holds_alternative<bisect::Inconclusive>(bisect::next(cluster.facts, cluster.options)));
}

TEST_CASE("a switch that is not in force clears nothing") {
  SimulatedCluster cluster(kOneNode, {.layer = Layer::p2p});
  cluster.deaf = {"NCCL_P2P_DISABLE"};
  const auto step = cluster.bisected();
  const auto* found = std::get_if<Isolation>(&step);
  CHECK((found == nullptr || found->layer != Layer::p2p));
  CHECK(ran(cluster, "P2P off"));
}

TEST_CASE("a run that works without its switch in force proves nothing") {
  SimulatedCluster cluster(kOneNode, {});
  after(cluster, [](Experiment& run) { hang(run, "", ""); });
  while (true) {
    auto step = bisect::next(cluster.facts, cluster.options);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) {
      CHECK_FALSE(std::holds_alternative<Isolation>(step));
      break;
    }
    Experiment run = cluster.run(*planned);
    if (run.switches.empty() && run.ranks.size() > 1) hang(run, "", "");
    for (const auto& [name, value] : run.switches) run.unheeded.push_back(name);
    cluster.facts.experiments.push_back(run);
  }
}

TEST_CASE("a switch that works only by luck is no verdict") {
  SimulatedCluster cluster(kOneNode, {.layer = Layer::algorithm});
  bool lucky = true;
  while (true) {
    auto step = bisect::next(cluster.facts, cluster.options);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) {
      const auto* found = std::get_if<Isolation>(&step);
      REQUIRE(found != nullptr);
      CHECK(found->layer == Layer::algorithm);
      CHECK(found->flaky);
      break;
    }
    Experiment run = cluster.run(*planned);
    if (run.what == "P2P off" && lucky) {
      lucky = false;
      run.outcome = RunOutcome::ok;
    }
    cluster.facts.experiments.push_back(run);
  }
}

// Gloo on a healthy cluster; `spoil` may make of a sound run what it likes. What it ends with.
bisect::Step gloo_with(SimulatedCluster& cluster, const std::function<void(Experiment&)>& spoil) {
  cluster.options.backend = RunBackend::gloo;
  for (Prediction& node : cluster.facts.predicted.nodes) {
    node.gloo = GlooChoice{.devices = {{.interface = "eth0"}}};
  }
  while (true) {
    auto step = bisect::next(cluster.facts, cluster.options);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) return step;
    Experiment run = cluster.run(*planned);
    spoil(run);
    cluster.facts.experiments.push_back(std::move(run));
  }
}

void fail(Experiment& run, RunOutcome outcome, const std::string& error) {
  run.outcome = outcome;
  for (RankRun& rank : run.ranks) rank.reached = RunStage::comm_init;
  run.ranks[1].outcome = outcome;
  run.ranks[1].error = error;
}

TEST_CASE("one run of many that fails is chance, and blames no interface") {
  for (const int bad : {0, 1, 2}) {
    CAPTURE(bad);
    SimulatedCluster cluster(kTcp, {});
    const auto step = gloo_with(cluster, [&](Experiment& run) {
      if (run.number == bad) fail(run, RunOutcome::failed, "out of file descriptors");
    });
    REQUIRE(std::holds_alternative<bisect::Inconclusive>(step));
    CHECK(std::get<bisect::Inconclusive>(step).why ==
          "of 8 runs of the same setup 1 did not work (run " + std::to_string(bad) +
              "): too few to tell a cause from chance");
    CHECK_FALSE(ran(cluster, "by eth1 alone"));
  }
}

TEST_CASE("Gloo has no GPU to blame") {
  SimulatedCluster cluster({.nodes = 3, .gpus = 1}, {});
  const auto step = gloo_with(cluster, [](Experiment& run) {
    for (RankRun& rank : run.ranks) {
      if (rank.place.node != "node0" || run.ranks.size() == 1) continue;
      run.outcome = rank.outcome = RunOutcome::failed;
      rank.reached = RunStage::loaded;
      rank.error = "Unable to find address for: eth1";
    }
  });
  REQUIRE(std::holds_alternative<Isolation>(step));
  CHECK(std::get<Isolation>(step).layer == Layer::node);
  CHECK(std::get<Isolation>(step).places == std::vector<RunPlace>{{"node0", -1}});
}

TEST_CASE("a rank that was killed from outside costs its run and nothing else") {
  for (const char* signal : {"SIGKILL", "SIGTERM"}) {
    for (const int bad : {0, 1, 2}) {
      CAPTURE(bad);
      SimulatedCluster cluster(kTcp, {});
      const auto step = gloo_with(cluster, [&](Experiment& run) {
        if (run.number == bad) fail(run, RunOutcome::crashed, std::string("killed by ") + signal);
      });
      CHECK(std::holds_alternative<bisect::Healthy>(step));
      CHECK(cluster.runs() == 4);
    }
  }
}

TEST_CASE("ranks that are killed each time are no verdict, and end it soon") {
  SimulatedCluster cluster(kTcp, {});
  const auto step = gloo_with(cluster, [](Experiment& run) {
    fail(run, RunOutcome::crashed, "run gloo_allreduce rank: killed by SIGKILL");
  });
  REQUIRE(std::holds_alternative<bisect::Inconclusive>(step));
  CHECK(std::get<bisect::Inconclusive>(step).why ==
        "rank 1 on node0 was killed by SIGKILL in run 0, and again");
  CHECK(cluster.runs() == 2);
}

TEST_CASE("a crash of the library itself is a fault as before") {
  SimulatedCluster cluster(kTcp, {});
  const auto step = gloo_with(cluster, [](Experiment& run) {
    if (run.switches.empty()) fail(run, RunOutcome::crashed, "killed by SIGSEGV");
  });
  REQUIRE(std::holds_alternative<Isolation>(step));
  CHECK(std::get<Isolation>(step).layer == Layer::interface);
}

TEST_CASE("no more runs than allowed") {
  for (const int most : {0, 1, 2, 3, 5, 8, 13}) {
    SimulatedCluster cluster(kTwoByFour, {.layer = Layer::p2p, .places = {{"node1", -1}}});
    cluster.options.max_runs = most;
    const auto step = cluster.bisected();
    CHECK(cluster.runs() <= static_cast<std::size_t>(most));
    if (const auto* none = std::get_if<bisect::Inconclusive>(&step)) CHECK(none->out_of_runs);
  }
}

TEST_CASE("a layer that is proved is told even when no run is left for where") {
  SimulatedCluster cluster(kTwoByFour, {.layer = Layer::p2p, .places = {{"node1", -1}}});
  cluster.options.max_runs = 6;
  const auto step = cluster.bisected();
  const auto* found = std::get_if<Isolation>(&step);
  REQUIRE(found != nullptr);
  CHECK(found->layer == Layer::p2p);
  CHECK(found->places.empty());
}

TEST_CASE("both ways inside a node may be broken") {
  SimulatedCluster cluster(kOneNode, {});
  while (true) {
    auto step = bisect::next(cluster.facts, cluster.options);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) {
      const auto* found = std::get_if<Isolation>(&step);
      REQUIRE(found != nullptr);
      CHECK(found->layer == Layer::p2p);
      CHECK(found->workaround.size() == 2);
      CHECK(found->places == std::vector<RunPlace>{{"node0", -1}});
      break;
    }
    Experiment run = cluster.run(*planned);
    if (run.switches.size() < 2 && run.ranks.size() > 1) run.outcome = RunOutcome::hung;
    cluster.facts.experiments.push_back(run);
  }
}

TEST_CASE("a slow collective is judged by its links") {
  SimulatedCluster cluster(kTwoByFour, {.layer = Layer::setup, .ailment = Ailment::slow});
  auto step = cluster.bisected();  // whatever is run, it is slow
  const auto* found = std::get_if<Isolation>(&step);
  REQUIRE(found != nullptr);
  CHECK(found->layer == Layer::none);
  CHECK(found->ailment == Ailment::slow);
  CHECK(found->limit == "PCIe x16 at 16 GT/s of GPU 0 on node0");
  CHECK(found->bus_gb_per_s < 0.6 * found->allowed_gb_per_s);
  REQUIRE(found->proof.size() > 1);
}

TEST_CASE("without knowing the links only a much faster switch counts") {
  SimulatedCluster cluster(kOneNode, {.layer = Layer::p2p, .ailment = Ailment::slow});
  cluster.facts.nodes[0].pci = Unknown{};
  const auto step = cluster.bisected();
  const auto* found = std::get_if<Isolation>(&step);
  REQUIRE(found != nullptr);
  CHECK(found->layer == Layer::p2p);
  SimulatedCluster healthy(kOneNode, {});
  healthy.facts.nodes[0].pci = Unknown{};
  CHECK(std::holds_alternative<bisect::Healthy>(healthy.bisected()));
}

TEST_CASE("the better interface is found where the chosen one is slower than it could be") {
  SimulatedCluster cluster(kTcp, {});
  set(cluster, "NCCL_SOCKET_IFNAME", "=eth0");
  for (Prediction& node : cluster.facts.predicted.nodes) {
    NcclChoice choice = *node.nccl;
    choice.net_socket.front().interface = "eth0";
    node.nccl = choice;
  }
  const auto step = cluster.bisected();
  const auto* found = std::get_if<Isolation>(&step);
  REQUIRE(found != nullptr);
  CHECK(found->layer == Layer::interface);
  CHECK(found->names == std::vector<std::string>{"eth0"});
  CHECK(found->workaround == std::map<std::string, std::string>{{"NCCL_SOCKET_IFNAME", "=eth1"}});
  CHECK(found->other_gb_per_s > 2 * found->bus_gb_per_s);
}

TEST_CASE("the tree names what would be run") {
  SimulatedCluster cluster(kTwoByFour, {});
  const auto lines = bisect::tree(cluster.facts, cluster.options);
  const auto has = [&](std::string_view text) {
    return std::ranges::any_of(
        lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  CHECK(lines.front() == "1. 8 ranks on 2 nodes in the job's own environment");
  CHECK(has("P2P off: NCCL_P2P_DISABLE=1"));
  CHECK(has("sockets only: NCCL_NET=Socket NCCL_NET_PLUGIN=none"));
  CHECK_FALSE(has("NVLS"));
  CHECK(lines.back() == "Every verdict is run twice; 60 runs at most.");
}

TEST_CASE("layers by name") {
  using bisect::parse_layers;
  CHECK(parse_layers("p2p,SHM") == std::vector<Layer>{Layer::p2p, Layer::shm});
  CHECK(parse_layers("net")->size() == 9);
  CHECK_FALSE(parse_layers("p2p,none"));
  CHECK_FALSE(parse_layers("gpus"));
  CHECK_FALSE(parse_layers(""));
}

TEST_CASE("a rank on each GPU") {
  SimulatedCluster cluster(kTwoByFour, {});
  CHECK(bisect::places_of(cluster.facts, std::nullopt).size() == 8);
  CHECK(bisect::places_of(cluster.facts, 2).size() == 4);
  cluster.facts.nodes[0].nvml = Unknown{};
  CHECK(bisect::places_of(cluster.facts, std::nullopt).size() == 8);
  cluster.facts.nodes[0].gpu = Unknown{};
  CHECK(bisect::places_of(cluster.facts, std::nullopt).size() == 5);
  cluster.facts.nodes[1].reached = false;
  CHECK(bisect::places_of(cluster.facts, 3) ==
        std::vector<RunPlace>{{"node0", 0}, {"node0", 1}, {"node0", 2}});
}

}  // namespace
}  // namespace distdoctor::testing
