// Kernel settings and counters that decide whether packets and connections survive
// (Documentation/networking/ip-sysctl.rst, nf_conntrack-sysctl.rst; /proc/net/netstat TcpExt).
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace distdoctor {

// One interface's /proc/sys/net/ipv4/conf/NAME. The kernel uses max(all, NAME) for rp_filter,
// arp_ignore, arp_announce, and "all or NAME" for arp_filter: `conf` holds "all" too.
struct InterfaceConf {                // none: could not be read, which is not "off"
  std::optional<int> rp_filter = {};  // 0 off, 1 strict, 2 loose
  std::optional<int> arp_ignore = {};
  std::optional<int> arp_announce = {};
  std::optional<int> arp_filter = {};
  bool accept_local = false;
  bool operator==(const InterfaceConf&) const = default;
};

struct KernelNet {
  int port_low = 32768;  // net.ipv4.ip_local_port_range, both ends included
  int port_high = 60999;
  int somaxconn = 0;
  std::optional<std::int64_t> listen_overflows = {};  // since boot of this network namespace
  std::optional<std::int64_t> listen_drops = {};
  std::optional<std::int64_t> conntrack_count = {};  // none: the module is not loaded
  std::optional<std::int64_t> conntrack_max = {};
  std::optional<std::int64_t> neighbours = {};           // entries in the IPv4 table
  std::optional<std::int64_t> neighbours_max = {};       // gc_thresh3
  std::optional<std::int64_t> neighbour_overflows = {};  // /proc/net/stat/arp_cache table_fulls
  std::map<std::string, InterfaceConf> conf = {};
  bool operator==(const KernelNet&) const = default;
};

template <class V, Is<InterfaceConf> T>
void fields(V& v, T& x) {
  v("rp_filter", x.rp_filter);
  v("arp_ignore", x.arp_ignore);
  v("arp_announce", x.arp_announce);
  v("arp_filter", x.arp_filter);
  v("accept_local", x.accept_local);
}
template <class V, Is<KernelNet> T>
void fields(V& v, T& x) {
  v("port_low", x.port_low);
  v("port_high", x.port_high);
  v("somaxconn", x.somaxconn);
  v("listen_overflows", x.listen_overflows);
  v("listen_drops", x.listen_drops);
  v("conntrack_count", x.conntrack_count);
  v("conntrack_max", x.conntrack_max);
  v("neighbours", x.neighbours);
  v("neighbours_max", x.neighbours_max);
  v("neighbour_overflows", x.neighbour_overflows);
  v("conf", x.conf);
}

}  // namespace distdoctor
