#include "collect/kernel.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::string_view kNetstat =
    "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPMemoryPressures\n"
    "TcpExt: 0 12 13 0\n"
    "IpExt: InNoRoutes ListenDrops\n"
    "IpExt: 4 99\n";

struct CounterRow {
  std::string_view name;
  std::string_view group;
  std::string_view counter;
  std::optional<std::int64_t> value;
};
constexpr std::array<CounterRow, 5> kCounters = {{
    {"a counter", "TcpExt", "ListenOverflows", 12},
    {"the last but one", "TcpExt", "ListenDrops", 13},
    {"the same name in another group", "IpExt", "ListenDrops", 99},
    {"no such counter", "TcpExt", "Nothing", std::nullopt},
    {"no such group", "UdpExt", "ListenDrops", std::nullopt},
}};

struct RangeRow {
  std::string_view name;
  std::string_view text;
  std::optional<std::pair<int, int>> range;
};
constexpr std::array<RangeRow, 6> kRanges = {{
    {"the usual", "32768\t60999\n", std::pair{32768, 60999}},
    {"one port", "5000 5000", std::pair{5000, 5000}},
    {"upside down", "60999\t32768\n", std::nullopt},
    {"no port", "0\t60999\n", std::nullopt},
    {"too high", "32768\t65536\n", std::nullopt},
    {"one number", "32768\n", std::nullopt},
}};

machine::CapturedMachine kernel_files() {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/proc/sys/net/ipv4/ip_local_port_range"].text = "20000\t30000\n";
  files["/proc/sys/net/core/somaxconn"].text = "128\n";
  files["/proc/net/netstat"].text = kNetstat;
  files["/proc/sys/net/netfilter/nf_conntrack_count"].text = "70\n";
  files["/proc/sys/net/netfilter/nf_conntrack_max"].text = "64\n";
  files["/proc/sys/net/ipv4/conf/all/rp_filter"].text = "0\n";
  files["/proc/sys/net/ipv4/conf/eth1/rp_filter"].text = "1\n";
  files["/proc/sys/net/ipv4/conf/eth1/arp_ignore"].text = "2\n";
  files["/proc/sys/net/ipv4/conf/eth1/accept_local"].text = "1\n";
  return captured;
}

}  // namespace

TEST_CASE("counters of /proc/net/netstat") {
  for (const auto& row : kCounters) {
    CAPTURE(row.name);
    CHECK(parse_counter(kNetstat, row.group, row.counter) == row.value);
  }
  CHECK_FALSE(parse_counter("", "TcpExt", "ListenDrops").has_value());
  CHECK_FALSE(parse_counter("TcpExt: ListenDrops\n", "TcpExt", "ListenDrops").has_value());
}

TEST_CASE("the neighbour table: entries count once, overflows of each CPU add up") {
  constexpr std::string_view kText =
      "entries  allocs   destroys table_fulls\n"
      "0000000f 00000300 000002fd 00000002\n"
      "0000000f 0000035e 00000352 0000000a\n";
  CHECK(parse_arp_cache(kText) == ArpCache{.entries = 15, .table_fulls = 12});
  CHECK_FALSE(parse_arp_cache("entries\n").has_value());
  CHECK_FALSE(parse_arp_cache("entries\nxyz\n").has_value());
}

TEST_CASE("the range of ephemeral ports") {
  for (const auto& row : kRanges) {
    CAPTURE(row.name);
    CHECK(parse_port_range(row.text) == row.range);
  }
}

TEST_CASE("kernel facts of a captured machine; what is absent stays absent") {
  const auto machine = machine::Machine::captured(kernel_files());
  NodeFacts node;
  collect_kernel(*machine, {}, node);
  REQUIRE(node.kernel.known());
  CHECK(node.kernel->port_low == 20000);
  CHECK(node.kernel->port_high == 30000);
  CHECK(node.kernel->somaxconn == 128);
  CHECK(node.kernel->listen_overflows == 12);
  CHECK(node.kernel->conntrack_count == 70);
  CHECK(node.kernel->conntrack_max == 64);
  CHECK_FALSE(node.kernel->neighbours_max.has_value());
  const InterfaceConf eth1{.rp_filter = 1, .arp_ignore = 2, .accept_local = true};
  CHECK(node.kernel->conf.at("eth1") == eth1);
  const InterfaceConf all{.rp_filter = 0};
  CHECK(node.kernel->conf.at("all") == all);  // what was not read is none, and not off
}

TEST_CASE("without a port range the kernel's facts are unknown, and it is said why") {
  auto captured = kernel_files();
  captured.files["/proc/sys/net/ipv4/ip_local_port_range"] = {.error = EACCES};
  NodeFacts node;
  collect_kernel(*machine::Machine::captured(captured), {}, node);
  CHECK(node.kernel.why().kind == Why::denied);
  CHECK(node.kernel.why().text == "open /proc/sys/net/ipv4/ip_local_port_range: Permission denied");
}
