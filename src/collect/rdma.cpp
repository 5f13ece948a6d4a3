#include "collect/rdma.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "collect/libraries.h"
#include "collect/pci.h"
#include "collect/qos.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

using machine::FileTree;

constexpr std::string_view kClass = "/sys/class/infiniband";
constexpr int kMostGids = 256;   // RoCE tables are that long, and are read from the kernel's memory
constexpr int kMostPkeys = 128;  // each is asked of the firmware,
constexpr int kPkeysWithout = 8;  // so reading ends after that many empty places
constexpr std::size_t kMostDevices = 64;
constexpr std::size_t kMostPorts = 8;

// Of counters/ and hw_counters/; those that count errors.
constexpr std::array<std::string_view, 24> kErrors = {"VL15_dropped",
                                                      "duplicate_request",
                                                      "excessive_buffer_overrun_errors",
                                                      "implied_nak_seq_err",
                                                      "link_downed",
                                                      "link_error_recovery",
                                                      "local_ack_timeout_err",
                                                      "local_link_integrity_errors",
                                                      "out_of_buffer",
                                                      "out_of_sequence",
                                                      "packet_seq_err",
                                                      "port_rcv_constraint_errors",
                                                      "port_rcv_errors",
                                                      "port_rcv_remote_physical_errors",
                                                      "port_rcv_switch_relay_errors",
                                                      "port_xmit_constraint_errors",
                                                      "port_xmit_discards",
                                                      "req_cqe_error",
                                                      "req_remote_access_errors",
                                                      "resp_cqe_error",
                                                      "resp_local_length_error",
                                                      "rnr_nak_retry_err",
                                                      "rx_icrc_encapsulated",
                                                      "symbol_error"};

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string target_name(const FileTree& files, const std::string& link) {
  return last_part(files.read_link(link).value_or(""));
}

// --- ports ---

std::vector<Gid> read_gids(const FileTree& files, const std::string& port) {
  const std::string texts = port + "/gids/";
  const std::string types = port + "/gid_attrs/types/";
  const std::string netdevs = port + "/gid_attrs/ndevs/";
  std::vector<Gid> gids;
  for (int index = 0; index < kMostGids; ++index) {
    const auto place = std::to_string(index);
    const auto text = files.word(texts + place);
    if (text.empty()) break;  // the table ends
    auto gid = parse_gid(text);
    if (gid.empty()) continue;
    gids.push_back({.index = index,
                    .gid = std::move(gid),
                    .type = files.word(types + place),
                    .netdev = files.word(netdevs + place)});
  }
  return gids;
}

std::vector<Pkey> read_pkeys(const FileTree& files, const std::string& port) {
  const std::string folder = port + "/pkeys/";
  std::vector<Pkey> keys;
  int without = 0;
  for (int index = 0; index < kMostPkeys && without < kPkeysWithout; ++index) {
    const auto text = files.word(folder + std::to_string(index));
    if (text.empty()) break;
    const auto digits = after_prefix(text, "0x");
    const auto key = parse_int<std::uint16_t>(digits.value_or(""), 16).value_or(0);
    without = key == 0 ? without + 1 : 0;
    if (without == 0) keys.push_back({.index = index, .key = key});
  }
  return keys;
}

std::map<std::string, std::int64_t> read_errors(const FileTree& files, const std::string& port) {
  std::map<std::string, std::int64_t> counters;
  for (const std::string& folder : {port + "/counters/", port + "/hw_counters/"}) {
    for (const auto& name : files.names(folder)) {
      if (std::ranges::find(kErrors, name) == kErrors.end()) continue;
      const auto count = parse_int<std::int64_t>(files.word(folder + name));
      if (count) counters.emplace(name, *count);
    }
  }
  return counters;
}

RdmaPort read_port(const FileTree& files, const std::string& device, int number) {
  const auto name = std::to_string(number);
  const auto folder = device + "/ports/" + name;
  const auto forced = files.read(device + "/tc/" + name + "/traffic_class");
  return {.number = number,
          .state = parse_port_state(files.word(folder + "/state")),
          .physical = parse_port_state(files.word(folder + "/phys_state")),
          .layer = parse_rdma_layer(files.word(folder + "/link_layer")),
          .rate_gbps = parse_rdma_rate(files.word(folder + "/rate")),
          .lid = parse_lid(files.word(folder + "/lid")),
          .sm_lid = parse_lid(files.word(folder + "/sm_lid")),
          .gids = read_gids(files, folder),
          .pkeys = read_pkeys(files, folder),
          .traffic_class = parse_traffic_class(forced.value_or("")),
          .counters = read_errors(files, folder)};
}

std::vector<RdmaPort> read_ports(const FileTree& files, const std::string& device) {
  std::vector<RdmaPort> ports;
  for (const auto& name : files.names(device + "/ports/")) {
    const auto number = parse_int_within<int>(name, 1, 255);
    if (!number || ports.size() == kMostPorts) continue;
    ports.push_back(read_port(files, device, *number));
  }
  std::ranges::sort(ports, {}, &RdmaPort::number);
  return ports;
}

// --- devices ---

// Soft-RoCE and Soft-iWARP have no PCI device of their own; `parent` is the netdev of the first.
std::string driver_of(const FileTree& files, const std::string& name, const std::string& folder) {
  if (name.starts_with("siw")) return "siw";
  if (name.starts_with("rxe") || files.info(folder + "/parent")) return "rdma_rxe";
  return target_name(files, folder + "/device/driver");
}

void read_uverbs(const FileTree& files,
                 const std::map<std::string, std::string>& nodes,
                 RdmaDevice& device) {
  const auto found = nodes.find(device.name);
  if (found == nodes.end()) return;
  device.uverbs = "/dev/infiniband/" + found->second;
  device.uverbs_there = files.info(device.uverbs).has_value();
  device.uverbs_usable = files.try_open(device.uverbs).has_value();
}

RdmaDevice read_device(const FileTree& files, const std::string& name) {
  const auto folder = std::string(kClass) + "/" + name;
  RdmaDevice device{.name = name,
                    .driver = driver_of(files, name, folder),
                    .firmware = files.word(folder + "/fw_ver"),
                    .board = files.word(folder + "/board_id"),
                    .type = files.word(folder + "/hca_type"),
                    .node_guid = files.word(folder + "/node_guid"),
                    .system_guid = files.word(folder + "/sys_image_guid")};
  if (device.driver != "rdma_rxe" && device.driver != "siw") {
    const auto address = target_name(files, folder + "/device");
    if (is_pci_address(address)) device.pci = address;  // none is behind a virtual device
    device.numa = parse_int<int>(files.word(folder + "/device/numa_node")).value_or(-1);
  }
  device.ports = read_ports(files, folder);
  return device;
}

// By RDMA device: "uverbs0" of "mlx5_0".
std::map<std::string, std::string> uverbs_nodes(const FileTree& files) {
  const std::string folder = "/sys/class/infiniband_verbs/";
  std::map<std::string, std::string> nodes;
  for (const auto& name : files.names(folder)) {
    const std::string path = folder + name;
    const auto device = files.word(path + "/ibdev");
    if (!device.empty()) nodes.emplace(device, name);
  }
  return nodes;
}

// --- what programs need ---

// Where rdma-core and the vendors' packages put them; what libibverbs is built to read is not
// known, so every place counts.
std::vector<std::string> find_providers(const FileTree& files, const std::string& libibverbs) {
  const auto beside = libibverbs.substr(0, libibverbs.rfind('/') + 1) + "libibverbs";
  std::set<std::string> providers;
  for (const auto& folder :
       {beside, std::string("/usr/lib/x86_64-linux-gnu/libibverbs"),
        std::string("/usr/lib/aarch64-linux-gnu/libibverbs"), std::string("/usr/lib64/libibverbs"),
        std::string("/usr/lib/libibverbs"), std::string("/etc/libibverbs.d")}) {
    for (const auto& name : files.names(folder)) {
      if (auto provider = provider_of_file(name); !provider.empty()) {
        providers.insert(std::move(provider));
      }
    }
  }
  return {providers.begin(), providers.end()};
}

std::string namespace_mode(const FileTree& files) {
  const auto shared = files.word("/sys/module/ib_core/parameters/netns_mode");
  if (shared == "Y") return "shared";
  return shared == "N" ? "exclusive" : "";
}

}  // namespace

std::string parse_port_state(std::string_view text) {
  return std::string(trim(text.substr(text.find(':') + 1)));  // from the start where there is none
}

RdmaLayer parse_rdma_layer(std::string_view text) {
  if (text == "InfiniBand") return RdmaLayer::infiniband;
  return text == "Ethernet" ? RdmaLayer::ethernet : RdmaLayer::other;
}

std::optional<double> parse_rdma_rate(std::string_view text) {
  const auto words = split_words(text);
  if (words.size() < 2 || words[1] != "Gb/sec") return std::nullopt;
  const double rate = parse_double(words[0]).value_or(0);
  return rate > 0 ? std::optional(rate) : std::nullopt;
}

int parse_lid(std::string_view text) {
  const auto digits = after_prefix(text, "0x");
  return digits ? parse_int<std::uint16_t>(*digits, 16).value_or(0) : 0;
}

std::string parse_gid(std::string_view text) {
  return text.find_first_not_of("0:") == std::string_view::npos ? "" : std::string(text);
}

std::string provider_of_file(std::string_view name) {
  if (const auto named = before_suffix(name, ".driver")) return std::string(*named);
  const auto rest = after_prefix(name, "lib").value_or("");
  const auto end = rest.find("-rdmav");
  return std::string(rest.substr(0, end == std::string_view::npos ? 0 : end));
}

// Without the folder there is no RDMA, which is an answer.
void collect_rdma(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  const FileTree& files = machine.files();
  Rdma rdma{.namespace_mode = namespace_mode(files)};
  const auto nodes = uverbs_nodes(files);
  for (const auto& name : files.names(std::string(kClass))) {
    if (rdma.devices.size() == kMostDevices) break;
    rdma.devices.push_back(read_device(files, name));
    read_uverbs(files, nodes, rdma.devices.back());
  }
  const auto libraries = find_library(machine, "libibverbs.so.1", request.settings);
  if (!libraries.empty()) rdma.libibverbs = libraries.front().path;
  rdma.providers = find_providers(files, rdma.libibverbs);
  node.rdma = std::move(rdma);
}

}  // namespace distdoctor::collect
