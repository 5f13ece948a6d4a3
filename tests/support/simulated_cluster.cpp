#include "support/simulated_cluster.h"

#include "support/builders.h"
#include "support/gpu_nodes.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>
#include <utility>

namespace distdoctor::testing {
namespace {

constexpr double kSlow = 0.2;  // a slow part does this much of its usual rate
constexpr double kHcaGBps = 25;
constexpr std::int64_t kBytes = std::int64_t{256} << 20;

std::string hca_name(int i) {
  return "mlx5_" + std::to_string(i);
}

void give_gpus(NodeFacts& node, const SimulatedShape& shape) {
  Nvml nvml{.driver = "550.54.15", .cuda = "12.4"};
  GpuFacts gpus{.nvidia_driver = "550.54.15", .peermem = true};
  Pci pci{.config_readable = true};
  for (int i = 0; i < shape.gpus; ++i) {
    gpus.gpus.push_back(fake_gpu(i, shape.nvswitch ? "NVIDIA H100 80GB HBM3" : "NVIDIA L40S"));
    PciDevice device = fake_gpu_device(i);
    device.max_speed_gts = 16;
    pci.devices.push_back(device);
    nvml.gpus.push_back({.index = i,
                         .pci = gpu_address(i),
                         .capability = shape.nvswitch ? "9.0" : "8.9",
                         .nvlinks = shape.nvswitch ? 18 : 0,
                         .nvlinks_active = shape.nvswitch ? 18 : 0});
    for (int j = 0; j < i; ++j) {
      nvml.pairs.push_back({.a = j, .b = i, .path = shape.nvswitch ? "NV18" : "PHB"});
    }
  }
  if (shape.nvswitch) {
    pci.devices.push_back({.address = "0000:c0:00.0", .vendor = 0x10de, .device_class = 0x068000});
  }
  node.nvml = nvml;
  node.gpu = gpus;
  node.pci = pci;
}

void give_network(NodeFacts& node, Prediction& prediction, const SimulatedShape& shape) {
  std::vector<Link> links = *node.links;
  for (Link& link : links) {
    if (link.name == "eth0") link.speed_mbps = 10'000;
    if (link.name == "eth1") link.speed_mbps = 25'000;
  }
  node.links = links;
  Rdma rdma;
  NcclHcas hcas;
  for (int i = 0; i < shape.hcas; ++i) {
    const RdmaPort port{.state = "ACTIVE", .layer = RdmaLayer::infiniband, .rate_gbps = 200};
    rdma.devices.push_back({.name = hca_name(i), .driver = "mlx5_core", .ports = {port}});
    hcas.used.push_back({.device = hca_name(i)});
  }
  node.rdma = rdma;
  prediction.hcas = hcas;
  Software software;
  if (shape.plugin) software.plugins.push_back({.path = "/opt/libnccl-net.so", .kind = "net"});
  node.software = software;
}

// "=a,b" takes a and b, "^=a" all but a.
bool listed(std::string_view list, std::string_view name) {
  if (list.empty()) return true;
  const bool except = list.starts_with("^");
  if (except) list.remove_prefix(1);
  if (list.starts_with("=")) list.remove_prefix(1);
  bool found = false;
  for (const auto part : std::views::split(list, ',')) {
    found = found || std::string_view(part.begin(), part.end()) == name;
  }
  return found != except;
}

std::size_t ranks_on(const Experiment& run, const std::string& node) {
  return static_cast<std::size_t>(std::ranges::count_if(
      run.ranks, [&](const RankRun& rank) { return rank.place.node == node; }));
}

bool several_nodes(const Experiment& run) {
  return std::ranges::any_of(run.ranks, [&](const RankRun& rank) {
    return rank.place.node != run.ranks.front().place.node;
  });
}

}  // namespace

struct SimulatedCluster::Connection {
  RunPlace from = {};
  RunPlace to = {};
  std::string transport = {};
  std::vector<std::string> by = {};  // HCAs or interfaces
  bool gdr = false;
};

SimulatedCluster::SimulatedCluster(const SimulatedShape& shape, SimulatedFault fault, unsigned seed)
    : facts(healthy_cluster(shape.nodes)), shape_(shape), fault_(std::move(fault)), dice_(seed) {
  for (std::size_t i = 0; i < shape.nodes; ++i) {
    give_gpus(facts.nodes[i], shape);
    give_network(facts.nodes[i], facts.predicted.nodes[i], shape);
  }
  options.places = bisect::places_of(facts, std::nullopt);
  options.max_runs = 60;
}

std::string SimulatedCluster::env(const Experiment& run, const std::string& name) const {
  if (std::ranges::find(deaf, name) != deaf.end()) return "";
  const auto given = run.switches.find(name);
  if (given != run.switches.end()) return given->second;
  const auto own = facts.predicted.nodes.front().settings.find(name);
  return own == facts.predicted.nodes.front().settings.end() ? "" : own->second.value;
}

// As many as ranks share them.
std::vector<std::string> SimulatedCluster::hcas_for(const Experiment& run, std::size_t most) const {
  std::vector<std::string> used;
  for (int i = 0; i < shape_.hcas && used.size() < most; ++i) {
    if (listed(env(run, "NCCL_IB_HCA"), hca_name(i))) used.push_back(hca_name(i));
  }
  return used;
}

void SimulatedCluster::by_network(const Experiment& run, Connection& way) const {
  const auto hcas =
      hcas_for(run, std::min(ranks_on(run, way.from.node), ranks_on(run, way.to.node)));
  const bool sockets = env(run, "NCCL_NET") == "Socket" || env(run, "NCCL_IB_DISABLE") == "1";
  if (!sockets && !hcas.empty()) {
    way.by = hcas;
    way.gdr = env(run, "NCCL_NET_GDR_LEVEL") != "LOC";
    way.transport = way.gdr ? "NET/IB/0/GDRDMA" : "NET/IB/0";
    return;
  }
  for (const char* name : {"eth0", "eth1"}) {
    if (listed(env(run, "NCCL_SOCKET_IFNAME"), name)) way.by.emplace_back(name);
  }
  way.transport = "NET/Socket/0";
}

SimulatedCluster::Connection SimulatedCluster::connect(const Experiment& run,
                                                       RunPlace from,
                                                       RunPlace to) const {
  Connection way{.from = std::move(from), .to = std::move(to)};
  const bool near = way.from.node == way.to.node;
  if (near && env(run, "NCCL_P2P_DISABLE") != "1") {
    way.transport = env(run, "NCCL_CUMEM_ENABLE") == "0" ? "P2P/IPC" : "P2P/CUMEM";
  } else if (near && env(run, "NCCL_SHM_DISABLE") != "1") {
    way.transport = "SHM/direct/direct";
  } else {
    by_network(run, way);
  }
  return way;
}

std::vector<SimulatedCluster::Connection> SimulatedCluster::connections(
    const Experiment& run) const {
  std::vector<Connection> all;
  const std::size_t n = run.ranks.size();
  for (std::size_t i = 0; n > 1 && i < (n == 2 ? 1 : n); ++i) {
    all.push_back(connect(run, run.ranks[i].place, run.ranks[(i + 1) % n].place));
  }
  return all;
}

// --- the fault ---

bool SimulatedCluster::blamed(const RunPlace& place) const {
  return fault_.places.empty() || std::ranges::any_of(fault_.places, [&](const RunPlace& one) {
           return one.node == place.node && (one.device < 0 || one.device == place.device);
         });
}

bool SimulatedCluster::in_place(const Connection& way) const {
  const bool between = fault_.places.size() == 2 &&
                       (fault_.places.front().device >= 0 || fault_.layer == Layer::link);
  return between ? blamed(way.from) && blamed(way.to) &&
                       (way.from.node != way.to.node || fault_.places.front().device >= 0)
                 : blamed(way.from) || blamed(way.to);
}

bool SimulatedCluster::hits(const Experiment& run, const Connection& way) const {
  const bool near = way.from.node == way.to.node;
  const bool named = std::ranges::any_of(fault_.names, [&](const std::string& name) {
    return std::ranges::find(way.by, name) != way.by.end();
  });
  const auto is = [&](std::string_view word) { return way.transport.starts_with(word); };
  if (!in_place(way)) return false;
  switch (fault_.layer) {
    case Layer::p2p:
      return is("P2P");
    case Layer::cumem:
      return is("P2P/CUMEM");
    case Layer::shm:
      return is("SHM") && fault_.pools_that_fit == 0;
    case Layer::gdr:
      return way.gdr;
    case Layer::ib:
      return is("NET/IB");
    case Layer::plugin:
      return !near && shape_.plugin && is("NET/IB") && env(run, "NCCL_NET_PLUGIN") != "none";
    case Layer::hca:
      return is("NET/IB") && named;
    case Layer::interface:
      return is("NET/Socket") && named;
    case Layer::rail:
      return is("NET/IB") && way.by.size() > 1 && env(run, "NCCL_CROSS_NIC") != "0";
    case Layer::pxn:
      return !near && is("NET/IB") && env(run, "NCCL_PXN_DISABLE") != "1" &&
             ranks_on(run, way.from.node) > 1;
    case Layer::streams:
      return is("NET/Socket") && env(run, "NCCL_NSOCKS_PERTHREAD").empty();
    case Layer::link:
      return true;
    case Layer::node:
      return fault_.only_with_others && !near;
    case Layer::gpu:
      return fault_.only_with_others;
    default:
      return false;
  }
}

// Faults that are not of one connection.
bool SimulatedCluster::hits(const Experiment& run) const {
  const bool there =
      std::ranges::any_of(run.ranks, [&](const RankRun& rank) { return blamed(rank.place); });
  const auto crowded = [&](const RankRun& rank) {
    return blamed(rank.place) &&
           ranks_on(run, rank.place.node) > static_cast<std::size_t>(fault_.pools_that_fit);
  };
  switch (fault_.layer) {
    case Layer::nvls:
      return shape_.nvswitch && env(run, "NCCL_NVLS_ENABLE") != "0" &&
             env(run, "NCCL_P2P_DISABLE") != "1" &&
             std::ranges::any_of(run.ranks, [&](const RankRun& rank) {
               return blamed(rank.place) && ranks_on(run, rank.place.node) > 1;
             });
    case Layer::shm:
      return fault_.pools_that_fit > 0 && several_nodes(run) &&
             std::ranges::any_of(run.ranks, crowded);
    case Layer::algorithm:
      return env(run, "NCCL_ALGO") != "Ring";
    case Layer::protocol:
      return env(run, "NCCL_PROTO") != "Simple";
    case Layer::tuner:
      return env(run, "NCCL_TUNER_PLUGIN") != "none";
    case Layer::settings:
      return !env(run, fault_.names.front()).empty();
    case Layer::setup:
      return true;
    case Layer::node:
    case Layer::gpu:
      return there && !fault_.only_with_others;
    case Layer::straggler:
      return there;
    default:
      return false;
  }
}

// --- the outcome ---

double SimulatedCluster::speed_of(const Connection& way) const {
  if (way.transport.starts_with("P2P")) return shape_.nvswitch ? 360 : 16;
  if (way.transport.starts_with("SHM")) return 7;
  const double by = static_cast<double>(way.by.size());
  if (way.transport.starts_with("NET/IB")) return 0.9 * kHcaGBps * by * (way.gdr ? 1 : 0.6);
  return way.by == std::vector<std::string>{"eth0"} ? 1.1 : 2.8;
}

void SimulatedCluster::time(Experiment& run, double gb_per_s) const {
  const double n = static_cast<double>(run.ranks.size());
  const double seconds = static_cast<double>(kBytes) * 2 * (n - 1) / n / (gb_per_s * 1e9);
  for (RankRun& rank : run.ranks) {
    const bool late = fault_.layer == Layer::straggler && blamed(rank.place);
    rank.timings = {{.bytes = kBytes,
                     .seconds = seconds,
                     .own_seconds = seconds * (late ? 0.8 : 0.15),
                     .bus_gb_per_s = gb_per_s}};
  }
}

void SimulatedCluster::tell(Experiment& run, bool sick) const {
  constexpr std::array<RunOutcome, 4> kOutcomes = {RunOutcome::failed, RunOutcome::hung,
                                                   RunOutcome::wrong_result, RunOutcome::ok};
  run.outcome = sick ? kOutcomes.at(static_cast<std::size_t>(fault_.ailment)) : RunOutcome::ok;
  const bool nothing_loads = sick && fault_.layer == Layer::setup && fault_.names.empty();
  const bool no_channels = sick && fault_.layer == Layer::setup;
  for (RankRun& rank : run.ranks) {
    rank.outcome = run.outcome;
    rank.reached = sick ? RunStage::comm_init : RunStage::done;
    if (no_channels) rank.reached = nothing_loads ? RunStage::none : RunStage::device;
    if (sick && fault_.pools_that_fit > 0 && blamed(rank.place)) {
      rank.error = "Error: failed to extend /dev/shm/nccl-a1b2c3 to 34210180 bytes";
    }
  }
}

Experiment SimulatedCluster::run(Experiment planned) {
  const auto ways = connections(planned);
  const bool slow = fault_.ailment == Ailment::slow;
  bool sick = hits(planned);
  double slowest = ways.empty() ? 100 : 1e9;
  for (const Connection& way : ways) {
    const bool hit = hits(planned, way);
    sick = sick || hit;
    slowest = std::min(slowest, speed_of(way) * (hit && slow ? kSlow : 1));
  }
  if (slow && hits(planned)) slowest *= kSlow;
  sick = sick && !slow && std::bernoulli_distribution(fault_.probability)(dice_);
  for (const auto& [name, value] : planned.switches) {
    if (std::ranges::find(deaf, name) != deaf.end()) planned.unheeded.push_back(name);
  }
  tell(planned, sick);
  for (const Connection& way : ways) {
    for (RankRun& rank : planned.ranks) {
      if (rank.reached >= RunStage::comm_init && rank.place == way.from) {
        rank.transports.push_back(way.transport);
      }
    }
  }
  if (planned.outcome == RunOutcome::ok) time(planned, slowest);
  return planned;
}

bisect::Step SimulatedCluster::bisected() {
  while (true) {
    bisect::Step step = bisect::next(facts, options);
    auto* planned = std::get_if<Experiment>(&step);
    if (planned == nullptr) return step;
    facts.experiments.push_back(run(std::move(*planned)));
  }
}

}  // namespace distdoctor::testing
