// Links, addresses, routes, rules and neighbours of one network namespace (man 7 rtnetlink).
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class LinkKind : std::uint8_t {
  ethernet,
  loopback,
  bridge,
  veth,
  tun,
  wireguard,
  vlan,
  bond,
  team,
  macvlan,
  ipvlan,
  vxlan,
  infiniband,
  dummy,
  other,
};
template <>
struct EnumNames<LinkKind> {
  static constexpr std::string_view values[] = {
      "ethernet", "loopback", "bridge", "veth",  "tun",        "wireguard", "vlan", "bond",
      "team",     "macvlan",  "ipvlan", "vxlan", "infiniband", "dummy",     "other"};
};

struct LinkAddress {
  Address address;
  int prefix = 0;          // bits
  std::string label = {};  // "eth0:1" for an alias; else the link's name (IFA_LABEL)
  bool secondary = false;  // IFA_F_SECONDARY
  bool tentative = false;  // IPv6 duplicate address detection still running
  bool dad_failed = false;
  bool operator==(const LinkAddress&) const = default;
};

struct BondMember {
  std::string name = {};
  bool up = false;                     // its MII or ARP monitor says so
  std::optional<int> speed_mbps = {};  // none: unknown
  int failures = 0;                    // of its link, since it joined
  int aggregator = 0;                  // of 802.3ad; 0: none
  bool operator==(const BondMember&) const = default;
};

// Documentation/networking/bonding.rst, as /proc/net/bonding/NAME tells it.
struct Bond {
  // "balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb",
  // "balance-alb"; the kernel's own words for one that we do not know
  std::string mode = {};
  std::string hash_policy = {};  // "layer2", "layer3+4"; empty: this mode has none
  std::string active = {};       // of active-backup, tlb and alb: the member in use; empty: none
  int aggregator = 0;            // the active one of 802.3ad; 0: none, or not shown to us
  std::vector<BondMember> members = {};
  bool operator==(const Bond&) const = default;
};

struct DscpPriority {
  int dscp = 0;      // 0 to 63
  int priority = 0;  // 0 to 7
  bool operator==(const DscpPriority&) const = default;
};

// What a RoCE port does with priorities: DCB (IEEE 802.1Qaz, include/uapi/linux/dcbnl.h) and the
// `qos` and `ecn` folders that mlx5 of MLNX_OFED adds to the link in sysfs.
struct LinkQos {
  std::string trust = {};                  // "dscp", "pcp": what sets the priority; empty: not told
  std::vector<DscpPriority> by_dscp = {};  // rows of the APP table; others are the driver's default
  // Bit n stands for priority n, 0 to 7. None: not told.
  std::optional<int> pause = {};      // priority flow control is on
  std::optional<int> ecn_tells = {};  // as notification point: tells senders of marked packets
  std::optional<int> ecn_slows = {};  // as reaction point: slows down when told
  bool operator==(const LinkQos&) const = default;
};

struct Link {
  std::string name;
  int index = 0;
  LinkKind kind = LinkKind::other;
  int mtu = 0;                         // bytes
  std::optional<int> speed_mbps = {};  // none where the kernel knows no speed (veth, bridges)
  bool up = false;                     // IFF_UP: administratively
  bool running = false;                // IFF_RUNNING: carrier and operstate; NCCL 2.28.3+ asks it
  bool carrier = false;
  // Times that the carrier was lost since the link was made (sysfs carrier_down_count).
  std::optional<std::int64_t> carrier_downs = {};
  std::string operstate = {};  // up, down, lowerlayerdown, dormant, unknown, ...
  std::string mac = {};
  std::string master = {};  // the bridge or bond that it belongs to
  std::vector<std::string> altnames = {};
  std::vector<LinkAddress> addresses = {};  // the kernel's order
  std::string rdma_device = {};   // the RDMA device whose netdev this is (sysfs), or empty
  std::optional<Bond> bond = {};  // of a bond, where it could be read
  Observed<LinkQos> qos = {};     // of a port with an RDMA device
  bool operator==(const Link&) const = default;
};

enum class RouteKind : std::uint8_t {
  unicast,
  local,
  broadcast,
  multicast,
  unreachable,
  blackhole,
  prohibit,
  other
};
template <>
struct EnumNames<RouteKind> {
  static constexpr std::string_view values[] = {"unicast",   "local",       "broadcast",
                                                "multicast", "unreachable", "blackhole",
                                                "prohibit",  "other"};
};

struct Route {
  Address destination;  // network address; unspecified with prefix 0 is the default route
  int prefix = 0;
  RouteKind kind = RouteKind::unicast;
  std::string interface = {};
  std::optional<Address> gateway = {};
  std::optional<Address> source = {};
  int table = 254;  // 254 main, 255 local
  int metric = 0;
  std::optional<int> mtu = {};
  bool operator==(const Route&) const = default;
};

enum class RuleAction : std::uint8_t { lookup, unreachable, blackhole, prohibit, other };
template <>
struct EnumNames<RuleAction> {
  static constexpr std::string_view values[] = {"lookup", "unreachable", "blackhole", "prohibit",
                                                "other"};
};

struct PolicyRule {
  int priority = 0;
  RuleAction action = RuleAction::lookup;
  bool v6 = false;
  int table = 254;
  std::optional<Address> from = {};
  int from_prefix = 0;
  std::optional<Address> to = {};
  int to_prefix = 0;
  std::string in_interface = {};
  std::string out_interface = {};
  std::optional<std::uint32_t> mark = {};
  bool operator==(const PolicyRule&) const = default;
};

struct Neighbour {
  Address address;
  std::string interface = {};
  std::string mac = {};
  std::string state = {};  // reachable, stale, failed, incomplete, permanent, ...
  bool operator==(const Neighbour&) const = default;
};

// What `ip route get ADDRESS` answers.
struct RouteAnswer {
  std::string interface = {};
  std::optional<Address> gateway = {};
  std::optional<Address> source = {};
  std::optional<int> mtu = {};  // from the route or a learnt path MTU
  std::string error = {};       // "Network is unreachable"; then the rest is empty
  bool operator==(const RouteAnswer&) const = default;
};

template <class V, Is<LinkAddress> T>
void fields(V& v, T& x) {
  v("address", x.address);
  v("prefix", x.prefix);
  v("label", x.label);
  v("secondary", x.secondary);
  v("tentative", x.tentative);
  v("dad_failed", x.dad_failed);
}
template <class V, Is<BondMember> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("up", x.up);
  v("speed_mbps", x.speed_mbps);
  v("failures", x.failures);
  v("aggregator", x.aggregator);
}
template <class V, Is<Bond> T>
void fields(V& v, T& x) {
  v("mode", x.mode);
  v("hash_policy", x.hash_policy);
  v("active", x.active);
  v("aggregator", x.aggregator);
  v("members", x.members);
}
template <class V, Is<DscpPriority> T>
void fields(V& v, T& x) {
  v("dscp", x.dscp);
  v("priority", x.priority);
}
template <class V, Is<LinkQos> T>
void fields(V& v, T& x) {
  v("trust", x.trust);
  v("by_dscp", x.by_dscp);
  v("pause", x.pause);
  v("ecn_tells", x.ecn_tells);
  v("ecn_slows", x.ecn_slows);
}
template <class V, Is<Link> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("index", x.index);
  v("kind", x.kind);
  v("mtu", x.mtu);
  v("speed_mbps", x.speed_mbps);
  v("up", x.up);
  v("running", x.running);
  v("carrier", x.carrier);
  v("carrier_downs", x.carrier_downs);
  v("operstate", x.operstate);
  v("mac", x.mac);
  v("master", x.master);
  v("altnames", x.altnames);
  v("addresses", x.addresses);
  v("rdma_device", x.rdma_device);
  v("bond", x.bond);
  v("qos", x.qos);
}
template <class V, Is<Route> T>
void fields(V& v, T& x) {
  v("destination", x.destination);
  v("prefix", x.prefix);
  v("kind", x.kind);
  v("interface", x.interface);
  v("gateway", x.gateway);
  v("source", x.source);
  v("table", x.table);
  v("metric", x.metric);
  v("mtu", x.mtu);
}
template <class V, Is<PolicyRule> T>
void fields(V& v, T& x) {
  v("priority", x.priority);
  v("action", x.action);
  v("v6", x.v6);
  v("table", x.table);
  v("from", x.from);
  v("from_prefix", x.from_prefix);
  v("to", x.to);
  v("to_prefix", x.to_prefix);
  v("in_interface", x.in_interface);
  v("out_interface", x.out_interface);
  v("mark", x.mark);
}
template <class V, Is<Neighbour> T>
void fields(V& v, T& x) {
  v("address", x.address);
  v("interface", x.interface);
  v("mac", x.mac);
  v("state", x.state);
}
template <class V, Is<RouteAnswer> T>
void fields(V& v, T& x) {
  v("interface", x.interface);
  v("gateway", x.gateway);
  v("source", x.source);
  v("mtu", x.mtu);
  v("error", x.error);
}

}  // namespace distdoctor
