// Kernel settings and counters of the network, as /proc shows them.
#pragma once

#include <distdoctor/facts/kernel.h>

#include "machine/file_tree.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace distdoctor::collect {

// A counter of /proc/net/netstat or snmp: two lines a group, names and then values.
std::optional<std::int64_t> parse_counter(std::string_view text,
                                          std::string_view group,
                                          std::string_view name);

struct ArpCache {            // of /proc/net/stat/arp_cache: a head line, then one line of hex a CPU
  std::int64_t entries = 0;  // of the whole table, the same in each line
  std::int64_t table_fulls = 0;  // the sum of all lines
  bool operator==(const ArpCache&) const = default;
};
std::optional<ArpCache> parse_arp_cache(std::string_view text);

std::optional<std::pair<int, int>> parse_port_range(std::string_view text);  // "32768\t60999\n"

}  // namespace distdoctor::collect
