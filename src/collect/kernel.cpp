#include "collect/kernel.h"

#include "base/text.h"
#include "collect/collectors.h"

#include <fmt/format.h>

#include <string>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kNetwork = "/proc/sys/net/";

std::optional<std::int64_t> number_at(const machine::FileTree& files, std::string_view path) {
  return parse_int<std::int64_t>(files.word(path));
}

int setting(const machine::FileTree& files, std::string_view path) {
  return static_cast<int>(number_at(files, path).value_or(0));
}

std::optional<int> seen(const machine::FileTree& files, const std::string& path) {
  return parse_int<int>(files.word(path));
}

InterfaceConf read_conf(const machine::FileTree& files, const std::string& folder) {
  return {.rp_filter = seen(files, folder + "/rp_filter"),
          .arp_ignore = seen(files, folder + "/arp_ignore"),
          .arp_announce = seen(files, folder + "/arp_announce"),
          .arp_filter = seen(files, folder + "/arp_filter"),
          .accept_local = setting(files, folder + "/accept_local") != 0};
}

void read_confs(const machine::FileTree& files, KernelNet& kernel) {
  const auto all = std::string(kNetwork) + "ipv4/conf";
  const auto names = files.names(all);
  for (const auto& name : names) {
    kernel.conf.emplace(name, read_conf(files, fmt::format("{}/{}", all, name)));
  }
}

void read_counters(const machine::FileTree& files, KernelNet& kernel) {
  const auto netstat = files.read("/proc/net/netstat").value_or("");
  kernel.listen_overflows = parse_counter(netstat, "TcpExt", "ListenOverflows");
  kernel.listen_drops = parse_counter(netstat, "TcpExt", "ListenDrops");
  const auto network = std::string(kNetwork);
  kernel.conntrack_count = number_at(files, network + "netfilter/nf_conntrack_count");
  kernel.conntrack_max = number_at(files, network + "netfilter/nf_conntrack_max");
  kernel.neighbours_max = number_at(files, network + "ipv4/neigh/default/gc_thresh3");
  const auto arp = parse_arp_cache(files.read("/proc/net/stat/arp_cache").value_or(""));
  if (!arp) return;
  kernel.neighbours = arp->entries;
  kernel.neighbour_overflows = arp->table_fulls;
}

}  // namespace

std::optional<std::int64_t> parse_counter(std::string_view text,
                                          std::string_view group,
                                          std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto line : split_lines(text)) {
    const auto rest = after_prefix(line, std::string(group) + ":");
    if (!rest) continue;
    const auto words = split_words(*rest);
    for (std::size_t i = 0; i < names.size() && i < words.size(); ++i) {
      if (names[i] == name) return parse_int<std::int64_t>(words[i]);
    }
    names = words;
  }
  return std::nullopt;
}

std::optional<ArpCache> parse_arp_cache(std::string_view text) {
  const auto lines = split_lines(text);
  if (lines.size() < 2) return std::nullopt;
  const auto names = split_words(lines[0]);
  ArpCache cache;
  for (std::size_t row = 1; row < lines.size(); ++row) {
    const auto words = split_words(lines[row]);
    for (std::size_t i = 0; i < names.size() && i < words.size(); ++i) {
      const auto value = parse_int<std::int64_t>(words[i], 16);
      if (!value) return std::nullopt;
      if (names[i] == "entries") cache.entries = *value;
      if (names[i] == "table_fulls") cache.table_fulls += *value;
    }
  }
  return cache;
}

std::optional<std::pair<int, int>> parse_port_range(std::string_view text) {
  const auto words = split_words(text);
  if (words.size() != 2) return std::nullopt;
  const auto low = parse_int_within<int>(words[0], 1, 65535);
  const auto high = parse_int_within<int>(words[1], 1, 65535);
  if (!low || !high || *low > *high) return std::nullopt;
  return std::pair{*low, *high};
}

void collect_kernel(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const auto& files = machine.files();
  const auto text = files.read("/proc/sys/net/ipv4/ip_local_port_range");
  const auto range = text ? parse_port_range(*text) : std::nullopt;
  if (!range) {
    node.kernel = text ? Unknown{Why::failed, "read ip_local_port_range: not two ports"}
                       : unknown_because(text.error());
    return;
  }
  KernelNet kernel;
  kernel.port_low = range->first;
  kernel.port_high = range->second;
  kernel.somaxconn = setting(files, "/proc/sys/net/core/somaxconn");
  read_counters(files, kernel);
  read_confs(files, kernel);
  node.kernel = std::move(kernel);
}

}  // namespace distdoctor::collect
