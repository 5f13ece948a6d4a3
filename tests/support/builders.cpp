#include "support/builders.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

Address addr(std::string_view text) {
  return Address::parse(text).value();
}

Link make_link(const std::string& name, int index, int mtu, std::string_view address) {
  Link link{.name = name,
            .index = index,
            .kind = name == "lo" ? LinkKind::loopback : LinkKind::ethernet,
            .mtu = mtu,
            .up = true,
            .running = true,
            .carrier = true,
            .operstate = name == "lo" ? "unknown" : "up",
            .mac = "02:00:00:00:00:0" + std::to_string(index)};
  link.addresses = {{.address = addr(address), .prefix = name == "lo" ? 8 : 24, .label = name}};
  return link;
}

std::string mgmt(std::size_t i) {
  return "10.10.0." + std::to_string(10 + i);
}

std::string fast(std::size_t i) {
  return "10.20.0." + std::to_string(10 + i);
}

std::vector<Link> healthy_links(std::size_t i) {
  Link eth0 = make_link("eth0", 2, 1500, mgmt(i));
  eth0.speed_mbps = 1'000;
  Link eth1 = make_link("eth1", 3, 9000, fast(i));
  eth1.speed_mbps = 100'000;
  return {make_link("lo", 1, 65536, "127.0.0.1"), eth0, eth1};
}

std::vector<Route> healthy_routes(std::size_t i) {
  return {{.destination = addr("10.10.0.0"),
           .prefix = 24,
           .interface = "eth0",
           .source = addr(mgmt(i))},
          {.destination = addr("10.20.0.0"),
           .prefix = 24,
           .interface = "eth1",
           .source = addr(fast(i))},
          {.destination = addr("0.0.0.0"),
           .prefix = 0,
           .interface = "eth0",
           .gateway = addr("10.10.0.1")}};
}

Resolution resolution(const std::string& name, std::string_view address) {
  return {.name = name,
          .files = {{addr(address)}},
          .dns = {std::vector<Address>{}},
          .all = {{addr(address)}}};
}

NodeFacts healthy_node(std::size_t i, std::size_t size) {
  NodeFacts node{
      .host = "node" + std::to_string(i), .reached = true, .channel = "ssh", .version = "0.1.0"};
  node.context = Context::pid;  // the job's own world, so that findings keep their severity
  node.identity = Identity{.hostname = node.host,
                           .boot_id = "boot-" + std::to_string(i),
                           .kernel = "6.1.0",
                           .user = "ann",
                           .uid = 1000};
  node.links = healthy_links(i);
  node.routes = healthy_routes(i);
  node.rules = std::vector<PolicyRule>{};
  node.neighbours = std::vector<Neighbour>{};
  KernelNet kernel{.somaxconn = 4096};
  for (const char* name : {"all", "lo", "eth0", "eth1"}) {
    kernel.conf[name] = {.rp_filter = 0, .arp_ignore = 0, .arp_announce = 0, .arp_filter = 0};
  }
  node.kernel = kernel;
  node.sockets = SocketFacts{.owners_visible = true};
  std::vector<Resolution> names;
  for (std::size_t j = 0; j < size; ++j) {
    names.push_back(resolution("node" + std::to_string(j), mgmt(j)));
  }
  node.names = names;
  node.shm = SharedMemory{.filesystem = "tmpfs",
                          .size = std::int64_t{64} << 30,
                          .free = std::int64_t{64} << 30,
                          .all_processes_visible = true};
  node.limits = std::map<std::string, Limit>{
      {"memlock", {}}, {"nofile", {.soft = 1048576, .hard = 1048576}}, {"nproc", {}}};
  node.devices = Devices{};
  node.processes = std::vector<TrainingProcess>{};
  node.settings = Settings{};
  node.nccl_config = std::vector<NcclConfigFile>{};
  node.nccl_library =
      NcclLibrary{.path = "/usr/lib/libnccl.so.2", .version = "2.28.9", .origin = "ld.so.cache"};
  node.pci = Pci{};
  node.gpu = GpuFacts{};
  node.kernel_log = KernelLog{.now_s = 100'000};
  node.rdma = Rdma{};
  node.world = distdoctor::World{};
  node.site_checks = std::vector<SiteCheck>{};
  node.software = Software{.nccl = {*node.nccl_library}};
  node.clock_offset_ms = 3.0;
  node.clock_error_ms = 1.0;
  node.duplicates = std::vector<DuplicateAddress>{};
  return node;
}

Prediction healthy_prediction(std::size_t i, const Settings& settings) {
  const Choice eth0{"eth0", addr(mgmt(i))};
  const Choice eth1{"eth1", addr(fast(i))};
  return {.node = "node" + std::to_string(i),
          .settings = settings,
          .nccl = NcclChoice{.bootstrap = eth1, .net_socket = {eth1}},
          .nccl_version_known = true,
          .hcas = NcclHcas{},
          .gloo = GlooChoice{.devices = {eth0}},
          .hosts_endpoint = i == 0};
}

Dial good_dial(Purpose purpose, std::string_view to, std::uint16_t port, std::string_view from) {
  return {.purpose = purpose,
          .address = addr(to),
          .port = port,
          .ours = true,
          .outcome = Outcome::ok,
          .ms = 0.2,
          .source = addr(from),
          .seen_as = addr(from),
          .syn_left = true,
          .syn_arrived = true};
}

PairFacts healthy_pair(std::size_t i, std::size_t j) {
  PairFacts pair{.from = "node" + std::to_string(i), .to = "node" + std::to_string(j)};
  if (j == 0) pair.dials.push_back(good_dial(Purpose::master, mgmt(0), 29500, mgmt(i)));
  for (const int port : {32768, 36801, 40834, 44867, 48900, 52933, 56966, 60999}) {
    const auto ephemeral = static_cast<std::uint16_t>(port);
    pair.dials.push_back(good_dial(Purpose::nccl_bootstrap, fast(j), ephemeral, fast(i)));
    pair.dials.push_back(good_dial(Purpose::nccl_data, fast(j), ephemeral, fast(i)));
    pair.dials.push_back(good_dial(Purpose::gloo, mgmt(j), ephemeral, mgmt(i)));
  }
  const auto path = [&](Purpose purpose, const char* interface, const std::string& from,
                        const std::string& to, int mtu) {
    pair.paths.push_back({.purpose = purpose,
                          .source = addr(from),
                          .destination = addr(to),
                          .interface = interface,
                          .rtt_ms = 0.2,
                          .mtu = PathMtu{.link_mtu = mtu,
                                         .largest = mtu,
                                         .bulk_arrived = true,
                                         .small_arrived = true,
                                         .bulk_bytes = 262144},
                          .loss = Loss{.sent = 1000, .received = 1000}});
  };
  path(Purpose::nccl_data, "eth1", fast(i), fast(j), 9000);
  path(Purpose::gloo, "eth0", mgmt(i), mgmt(j), 1500);
  return pair;
}

ClusterFacts healthy_cluster(std::size_t size) {
  ClusterFacts cluster;
  cluster.version = "0.1.0";
  const Origin said{.source = Source::option, .where = "--env"};
  cluster.job.settings = {{"MASTER_ADDR", {"node0", said}},
                          {"MASTER_PORT", {"29500", said}},
                          {"NCCL_SOCKET_IFNAME", {"=eth1", said}}};
  cluster.job.nccl = Use::yes;
  cluster.job.gloo = Use::no;
  for (std::size_t i = 0; i < size; ++i) {
    cluster.job.peers.push_back("node" + std::to_string(i));
    cluster.nodes.push_back(healthy_node(i, size));
    cluster.predicted.nodes.push_back(healthy_prediction(i, cluster.job.settings));
    for (std::size_t j = 0; j < size; ++j) {
      if (i != j) cluster.pairs.push_back(healthy_pair(i, j));
    }
  }
  cluster.predicted.master = Master{
      .host = "node0", .port = std::uint16_t{29500}, .node = "node0", .addresses = {addr(mgmt(0))}};
  return cluster;
}

}  // namespace distdoctor::testing
