#include "collect/world.h"

#include "base/secrets.h"
#include "base/text.h"
#include "collect/cgroups.h"
#include "collect/collectors.h"
#include "collect/disks.h"
#include "collect/pci.h"
#include "collect/platform.h"
#include "collect/shm.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::array<std::string_view, 8> kNamespaces = {"cgroup", "ipc",  "mnt",  "net",
                                                         "pid",    "time", "user", "uts"};

constexpr std::array<std::string_view, 41> kCapabilities = {"CHOWN",
                                                            "DAC_OVERRIDE",
                                                            "DAC_READ_SEARCH",
                                                            "FOWNER",
                                                            "FSETID",
                                                            "KILL",
                                                            "SETGID",
                                                            "SETUID",
                                                            "SETPCAP",
                                                            "LINUX_IMMUTABLE",
                                                            "NET_BIND_SERVICE",
                                                            "NET_BROADCAST",
                                                            "NET_ADMIN",
                                                            "NET_RAW",
                                                            "IPC_LOCK",
                                                            "IPC_OWNER",
                                                            "SYS_MODULE",
                                                            "SYS_RAWIO",
                                                            "SYS_CHROOT",
                                                            "SYS_PTRACE",
                                                            "SYS_PACCT",
                                                            "SYS_ADMIN",
                                                            "SYS_BOOT",
                                                            "SYS_NICE",
                                                            "SYS_RESOURCE",
                                                            "SYS_TIME",
                                                            "SYS_TTY_CONFIG",
                                                            "MKNOD",
                                                            "LEASE",
                                                            "AUDIT_WRITE",
                                                            "AUDIT_CONTROL",
                                                            "SETFCAP",
                                                            "MAC_OVERRIDE",
                                                            "MAC_ADMIN",
                                                            "SYSLOG",
                                                            "WAKE_ALARM",
                                                            "BLOCK_SUSPEND",
                                                            "AUDIT_READ",
                                                            "PERFMON",
                                                            "BPF",
                                                            "CHECKPOINT_RESTORE"};

constexpr std::array<std::string_view, 9> kProxies = {"http_proxy",  "https_proxy", "all_proxy",
                                                      "no_proxy",    "grpc_proxy",  "HTTP_PROXY",
                                                      "HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY"};

// What a sidecar listens on: istio.io "Application Requirements", linkerd.io "Ports".
struct Mesh {
  std::string_view name;
  std::array<std::uint16_t, 3> ports;
};
constexpr std::array<Mesh, 2> kMeshes = {
    {{"istio", {15001, 15006, 15021}}, {"linkerd", {4140, 4143, 4191}}}};

// The value of "Name:\tvalue".
std::string_view value_of(std::string_view status, std::string_view name) {
  for (const auto line : split_lines(status)) {
    const auto rest = after_prefix(line, name);
    if (rest && rest->starts_with(':')) return trim(rest->substr(1));
  }
  return "";
}

std::map<std::string, std::string> read_namespaces(const machine::FileTree& files) {
  std::map<std::string, std::string> namespaces;
  for (const auto name : kNamespaces) {
    const auto link = files.read_link("/proc/self/ns/" + std::string(name));
    if (link) namespaces.emplace(name, *link);
  }
  return namespaces;
}

std::string read_shm_device(const machine::FileTree& files) {
  const auto mounts = files.read("/proc/self/mountinfo").value_or("");
  const auto shm = find_mount(mounts, "/dev/shm");
  return shm ? shm->device : "";
}

std::map<std::string, std::string> read_proxies(const machine::Environment& environment) {
  std::map<std::string, std::string> proxies;
  for (const auto name : kProxies) {
    const auto found = environment.find(std::string(name));
    if (found != environment.end() && !found->second.empty()) {
      proxies.emplace(name, mask_value(found->second));
    }
  }
  return proxies;
}

std::string read_platform(const machine::Machine& machine, const Board& board) {
  const auto& files = machine.files();
  if (is_wsl(machine.self().release) || files.info("/dev/dxg")) return "wsl";
  const auto cpus = files.read_head("/proc/cpuinfo", std::size_t{1} << 16).value_or("");
  return hypervisor_of(board, says_hypervisor(cpus));
}

bool any_entry(const machine::FileTree& files, std::string_view folder) {
  return !files.names(folder).empty();
}

// sysfs may show another network namespace, which then has none of our links.
bool links_hidden(const machine::Machine& machine) {
  const auto links = machine.links();
  if (!links) return false;
  const auto& files = machine.files();
  const auto real = [](const Link& link) { return link.kind != LinkKind::loopback; };
  const auto shown = [&](const Link& link) {
    return files.word("/sys/class/net/" + link.name + "/ifindex") == std::to_string(link.index);
  };
  return std::ranges::any_of(*links, real) &&
         std::ranges::none_of(*links, [&](const Link& link) { return real(link) && shown(link); });
}

bool has_verbs_nodes(const machine::FileTree& files) {
  return std::ranges::any_of(files.names("/dev/infiniband"),
                             [](const std::string& name) { return name.starts_with("uverbs"); });
}

}  // namespace

bool is_initial_user_map(std::string_view text) {
  const auto words = split_words(text);
  return words.size() == 3 && words[0] == "0" && words[1] == "0" && words[2] == "4294967295";
}

std::vector<std::string> parse_capabilities(std::string_view status) {
  const auto bits = parse_int<std::uint64_t>(value_of(status, "CapEff"), 16).value_or(0);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kCapabilities.size(); ++i) {
    if ((bits >> i & 1U) != 0) names.push_back("CAP_" + std::string(kCapabilities.at(i)));
  }
  return names;
}

std::string mesh_of(const std::vector<machine::SocketRow>& sockets) {
  const auto listens = [&](std::uint16_t port) {
    return std::ranges::any_of(sockets, [port](const machine::SocketRow& row) {
      return row.listening && row.local_port == port;
    });
  };
  for (const auto& mesh : kMeshes) {
    if (std::ranges::all_of(mesh.ports, listens)) return std::string(mesh.name);
  }
  return "";
}

bool has_memory_nodes(std::string_view status) {
  const auto list = value_of(status, "Mems_allowed_list");
  return !list.empty() && list != "0";
}

std::vector<std::string> hidden_parts(const machine::Machine& machine) {
  const auto& files = machine.files();
  std::vector<std::string> hidden;
  const auto note = [&](const char* folder, bool kernel_has_it) {
    if (kernel_has_it && !any_entry(files, folder)) hidden.emplace_back(folder);
  };
  note("/sys/bus/pci/devices", !files.word("/proc/bus/pci/devices").empty());
  note("/sys/devices/system/node", has_memory_nodes(files.read("/proc/self/status").value_or("")));
  note("/sys/class/infiniband", has_verbs_nodes(files));
  if (links_hidden(machine)) hidden.emplace_back("/sys/class/net");
  return hidden;
}

void collect_world(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const auto& files = machine.files();
  const auto status = files.read("/proc/self/status");
  if (!status) {
    node.world = unknown_because(status.error());
    return;
  }
  const auto board = read_board(files);
  const auto sockets = machine.sockets();
  World world{
      .namespaces = read_namespaces(files),
      .initial_user_namespace = is_initial_user_map(files.read("/proc/self/uid_map").value_or("")),
      .capabilities = parse_capabilities(*status),
      .shm_device = read_shm_device(files),
      .platform = read_platform(machine, board),
      .cloud = cloud_of(board),
      .service_mesh = sockets ? mesh_of(sockets->rows) : "",
      .hidden = hidden_parts(machine),
      .disks = read_disks(machine),
      .proxies = read_proxies(machine.environment())};
  see_groups(files, world);
  node.world = std::move(world);
}

}  // namespace distdoctor::collect
