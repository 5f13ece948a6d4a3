// SIMULATED faults of every kind, in many places: the planner has to name layer and place.
#include "bisect/bisect.h"
#include "support/simulated_cluster.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

using Places = std::vector<RunPlace>;
using Names = std::vector<std::string>;

constexpr SimulatedShape kTwoByFour{.nodes = 2, .gpus = 4, .hcas = 2};
constexpr SimulatedShape kTwoByEight{.nodes = 2, .gpus = 8, .nvswitch = true, .hcas = 8};
constexpr SimulatedShape kTwoByEightPcie{.nodes = 2, .gpus = 8, .hcas = 2};
constexpr SimulatedShape kOneByEight{.nodes = 1, .gpus = 8};
constexpr SimulatedShape kOneByEightSwitched{.nodes = 1, .gpus = 8, .nvswitch = true};
constexpr SimulatedShape kFourByOne{.nodes = 4, .gpus = 1, .hcas = 1};
constexpr SimulatedShape kTcpTwoByFour{.nodes = 2, .gpus = 4};
constexpr SimulatedShape kTcpFourByOne{.nodes = 4, .gpus = 1};
constexpr SimulatedShape kFourByEight{.nodes = 4, .gpus = 8, .nvswitch = true, .hcas = 8};
constexpr SimulatedShape kWithPlugin{.nodes = 2, .gpus = 4, .hcas = 2, .plugin = true};

RunPlace gpu(int node, int device) {
  return {.node = "node" + std::to_string(node), .device = device};
}
RunPlace whole(int node) {
  return gpu(node, -1);
}

struct Row {
  std::string_view name;
  SimulatedShape shape;
  SimulatedFault fault;
  Layer layer;
  Places places = {};
  Names names = {};
  const char* own = nullptr;  // "NAME=VALUE" that the job has set
};

const std::vector<Row> rows = {
    {"P2P hangs everywhere on a node",
     kTwoByFour,
     {.layer = Layer::p2p, .places = {whole(1)}},
     Layer::p2p,
     {whole(1)}},
    {"P2P hangs on every node", kTwoByFour, {.layer = Layer::p2p}, Layer::p2p, {}},
    {"P2P hangs between two GPUs",
     kTwoByEightPcie,
     {.layer = Layer::p2p, .places = {gpu(1, 3), gpu(1, 4)}},
     Layer::p2p,
     {gpu(1, 3), gpu(1, 4)}},
    {"P2P of one GPU corrupts",
     kTwoByEightPcie,
     {.layer = Layer::p2p, .ailment = Ailment::corrupts, .places = {gpu(0, 5)}},
     Layer::p2p,
     {gpu(0, 5)}},
    {"P2P of one GPU fails on a single node",
     kOneByEight,
     {.layer = Layer::p2p, .ailment = Ailment::fails, .places = {gpu(0, 2)}},
     Layer::p2p,
     {gpu(0, 2)}},
    {"P2P hangs all over a single node",
     kOneByEight,
     {.layer = Layer::p2p},
     Layer::p2p,
     {whole(0)}},
    {"NVLS fails on one node",
     kTwoByEight,
     {.layer = Layer::nvls, .ailment = Ailment::fails, .places = {whole(0)}},
     Layer::nvls,
     {whole(0)}},
    {"NVLS fails on a single node",
     kOneByEightSwitched,
     {.layer = Layer::nvls, .ailment = Ailment::fails},
     Layer::nvls,
     {whole(0)}},
    {"cuMem between GPUs fails",
     kTwoByFour,
     {.layer = Layer::cumem, .ailment = Ailment::fails, .places = {whole(0)}},
     Layer::cumem,
     {whole(0)}},
    {"pools do not fit into /dev/shm",
     kTwoByEightPcie,
     {.layer = Layer::shm, .ailment = Ailment::fails, .places = {whole(1)}, .pools_that_fit = 1},
     Layer::shm,
     {whole(1)}},
    {"GDR hangs", kTwoByEight, {.layer = Layer::gdr}, Layer::gdr},
    {"GDR of one of four nodes corrupts",
     kFourByOne,
     {.layer = Layer::gdr, .ailment = Ailment::corrupts, .places = {whole(2)}},
     Layer::gdr,
     {whole(2)}},
    {"IB fails between all nodes",
     kTwoByFour,
     {.layer = Layer::ib, .ailment = Ailment::fails},
     Layer::ib},
    {"IB of one of four nodes hangs",
     kFourByOne,
     {.layer = Layer::ib, .places = {whole(1)}},
     Layer::ib,
     {whole(1)}},
    {"one of eight HCAs hangs",
     kTwoByEight,
     {.layer = Layer::hca, .names = {"mlx5_5"}},
     Layer::hca,
     {},
     {"mlx5_5"}},
    {"one of two HCAs fails",
     kTwoByFour,
     {.layer = Layer::hca, .ailment = Ailment::fails, .names = {"mlx5_0"}},
     Layer::hca,
     {},
     {"mlx5_0"}},
    {"rails do not reach each other", kTwoByEight, {.layer = Layer::rail}, Layer::rail},
    {"PXN hangs", kTwoByEight, {.layer = Layer::pxn}, Layer::pxn},
    {"a network plugin fails",
     kWithPlugin,
     {.layer = Layer::plugin, .ailment = Ailment::fails},
     Layer::plugin},
    {"the chosen interface hangs",
     kTcpTwoByFour,
     {.layer = Layer::interface, .names = {"eth1"}},
     Layer::interface,
     {},
     {"eth1"}},
    {"the chosen interface of one of four nodes hangs",
     kTcpFourByOne,
     {.layer = Layer::interface, .places = {whole(3)}, .names = {"eth1"}},
     Layer::interface,
     {whole(3)},
     {"eth1"}},
    {"an algorithm hangs", kTwoByFour, {.layer = Layer::algorithm}, Layer::algorithm},
    {"a protocol corrupts",
     kTwoByFour,
     {.layer = Layer::protocol, .ailment = Ailment::corrupts},
     Layer::protocol},
    {"an own switch breaks it",
     kTwoByFour,
     {.layer = Layer::settings, .ailment = Ailment::fails, .names = {"NCCL_ALGO"}},
     Layer::settings,
     {},
     {"NCCL_ALGO"},
     "NCCL_ALGO=Tree"},
    {"a GPU is broken",
     kTwoByEight,
     {.layer = Layer::gpu, .ailment = Ailment::fails, .places = {gpu(1, 6)}},
     Layer::gpu,
     {gpu(1, 6)}},
    {"a GPU computes wrong results",
     kOneByEight,
     {.layer = Layer::gpu, .ailment = Ailment::corrupts, .places = {gpu(0, 0)}},
     Layer::gpu,
     {gpu(0, 0)}},
    {"a GPU hangs with any partner",
     kTwoByFour,
     {.layer = Layer::gpu, .places = {gpu(0, 3)}, .only_with_others = true},
     Layer::gpu,
     {gpu(0, 3)}},
    {"a node is broken",
     kTwoByFour,
     {.layer = Layer::node, .places = {whole(1)}},
     Layer::node,
     {whole(1)}},
    {"a node of four hangs with any other",
     kTcpFourByOne,
     {.layer = Layer::node, .places = {whole(2)}, .only_with_others = true},
     Layer::node,
     {whole(2)}},
    {"two nodes, tested with each other only",
     kTcpTwoByFour,
     {.layer = Layer::node, .places = {whole(0)}, .only_with_others = true},
     Layer::link,
     {whole(0), whole(1)}},
    {"a link between two of four nodes",
     kTcpFourByOne,
     {.layer = Layer::link, .places = {whole(1), whole(2)}},
     Layer::link,
     {whole(1), whole(2)}},
    {"a broken GPU among 32",
     kFourByEight,
     {.layer = Layer::gpu, .places = {gpu(2, 7)}},
     Layer::gpu,
     {gpu(2, 7)}},
    {"nothing loads", kTwoByFour, {.layer = Layer::setup, .ailment = Ailment::fails}, Layer::setup},
    {"no communicator comes up",
     kTwoByFour,
     {.layer = Layer::setup, .ailment = Ailment::fails, .names = {"late"}},
     Layer::setup},
    {"P2P is slow on a single node",
     kOneByEight,
     {.layer = Layer::p2p, .ailment = Ailment::slow},
     Layer::p2p,
     {whole(0)}},
    {"P2P is slow on one node",
     kTwoByFour,
     {.layer = Layer::p2p, .ailment = Ailment::slow, .places = {whole(1)}},
     Layer::p2p,
     {whole(1)}},
    {"GDR is slow", kTwoByEight, {.layer = Layer::gdr, .ailment = Ailment::slow}, Layer::gdr},
    {"one HCA of eight is slow",
     kTwoByEight,
     {.layer = Layer::hca, .ailment = Ailment::slow, .names = {"mlx5_2"}},
     Layer::hca,
     {},
     {"mlx5_2"}},
    {"one TCP connection is slow",
     kTcpFourByOne,
     {.layer = Layer::streams, .ailment = Ailment::slow},
     Layer::streams},
    {"a switch of the job's makes it slow",
     kTwoByFour,
     {.layer = Layer::settings, .ailment = Ailment::slow, .names = {"NCCL_MAX_NCHANNELS"}},
     Layer::settings,
     {},
     {"NCCL_MAX_NCHANNELS"},
     "NCCL_MAX_NCHANNELS=1"},
    {"one of four nodes is slow",
     kTcpFourByOne,
     {.layer = Layer::node,
      .ailment = Ailment::slow,
      .places = {whole(3)},
      .only_with_others = true},
     Layer::node,
     {whole(3)}},
    {"a GPU straggles",
     kTwoByFour,
     {.layer = Layer::straggler, .ailment = Ailment::slow, .places = {gpu(1, 2)}},
     Layer::straggler,
     {gpu(1, 2)}},
};

void set_own(SimulatedCluster& cluster, const char* own) {
  if (own == nullptr) return;
  const std::string_view text(own);
  const auto equals = text.find('=');
  for (Prediction& node : cluster.facts.predicted.nodes) {
    node.settings[std::string(text.substr(0, equals))] = {.value =
                                                              std::string(text.substr(equals + 1))};
  }
}

std::string text_of(const bisect::Step& step) {
  if (const auto* found = std::get_if<Isolation>(&step)) {
    std::string text(slug(found->layer));
    for (const RunPlace& place : found->places) {
      text += " " + place.node + ":" + std::to_string(place.device);
    }
    for (const std::string& name : found->names) text += " " + name;
    return text;
  }
  if (const auto* inconclusive = std::get_if<bisect::Inconclusive>(&step)) return inconclusive->why;
  return std::holds_alternative<bisect::Healthy>(step) ? "healthy" : "a run";
}

std::string runs_text(const SimulatedCluster& cluster) {
  std::string text;
  for (const Experiment& run : cluster.facts.experiments) {
    text += "\n  " + std::to_string(run.number) + " " + run.what + ": " +
            std::string(slug(run.outcome));
  }
  return text;
}

// Every switch with every node, pair of GPUs in a node, pair of nodes, and all.
std::size_t exhaustive(const SimulatedShape& shape) {
  const auto pairs = [](std::size_t n) { return n * (n - 1) / 2; };
  constexpr std::size_t kSwitches = 12;
  const auto gpus = static_cast<std::size_t>(shape.gpus);
  return kSwitches * (1 + shape.nodes + pairs(shape.nodes) + shape.nodes * pairs(gpus));
}

template <class T>
T median(std::vector<T> all) {
  std::ranges::sort(all);
  return all[all.size() / 2];
}

TEST_CASE("bisect locates SIMULATED faults") {
  std::vector<std::size_t> runs;
  std::vector<std::size_t> all;
  for (const Row& row : rows) {
    const std::string name(row.name);
    CAPTURE(name);
    SimulatedCluster cluster(row.shape, row.fault);
    set_own(cluster, row.own);
    const bisect::Step step = cluster.bisected();
    const std::string said = text_of(step) + runs_text(cluster);
    const auto* found = std::get_if<Isolation>(&step);
    REQUIRE_MESSAGE(found != nullptr, said);
    CHECK_MESSAGE(found->layer == row.layer, said);
    CHECK_MESSAGE(found->places == row.places, said);
    CHECK_MESSAGE(found->names == row.names, said);
    CHECK(found->ailment == row.fault.ailment);
    CHECK_FALSE(found->flaky);
    CHECK(cluster.runs() <= 32);
    runs.push_back(cluster.runs());
    all.push_back(exhaustive(row.shape));
  }
  MESSAGE(rows.size(), " SIMULATED faults located; runs: median ", median(runs), ", most ",
          std::ranges::max(runs), "; an exhaustive matrix takes ", median(all));
}

TEST_CASE("bisect finds nothing in healthy shapes") {
  for (const SimulatedShape& shape :
       {kTwoByFour, kTwoByEight, kTwoByEightPcie, kOneByEight, kOneByEightSwitched, kFourByOne,
        kTcpTwoByFour, kTcpFourByOne, kFourByEight, kWithPlugin,
        SimulatedShape{.nodes = 1, .gpus = 1}}) {
    SimulatedCluster cluster(shape, {});
    const bisect::Step step = cluster.bisected();
    CHECK_MESSAGE(std::holds_alternative<bisect::Healthy>(step), text_of(step), runs_text(cluster));
    CHECK(cluster.runs() <= 4);
  }
}

TEST_CASE("bisect knows a fault that comes and goes") {
  const std::vector<Row> flaky = {
      {"P2P of a node",
       kTwoByFour,
       {.layer = Layer::p2p, .places = {whole(1)}, .probability = 0.6},
       Layer::p2p,
       {whole(1)}},
      {"GDR", kTwoByEight, {.layer = Layer::gdr, .probability = 0.7}, Layer::gdr},
      {"one of four nodes",
       kFourByOne,
       {.layer = Layer::ib, .places = {whole(1)}, .probability = 0.7},
       Layer::ib,
       {whole(1)}},
  };
  for (const Row& row : flaky) {
    const std::string name(row.name);
    CAPTURE(name);
    int right = 0;
    int wrong = 0;
    for (unsigned seed = 1; seed <= 40; ++seed) {
      SimulatedCluster cluster(row.shape, row.fault, seed);
      cluster.options.max_runs = 150;
      const bisect::Step step = cluster.bisected();
      const auto* found = std::get_if<Isolation>(&step);
      if (found == nullptr) continue;
      const bool exact = found->layer == row.layer && found->places == row.places;
      (exact ? right : wrong) += 1;
    }
    MESSAGE(name, ": ", right, " of 40 right, ", wrong, " wrong");
    CHECK(right >= 30);
    CHECK(wrong <= 4);
  }
}

}  // namespace
}  // namespace distdoctor::testing
