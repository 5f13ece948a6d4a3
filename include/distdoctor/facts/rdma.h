// RDMA devices (InfiniBand, RoCE, iWARP, EFA, software RDMA) as the kernel's sysfs shows them:
// Documentation/ABI/stable/sysfs-class-infiniband.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class RdmaLayer : std::uint8_t { infiniband, ethernet, other };
template <>
struct EnumNames<RdmaLayer> {
  static constexpr std::string_view values[] = {"infiniband", "ethernet", "other"};
};

struct Gid {
  int index = 0;
  std::string gid = {};     // "fe80:0000:0000:0000:0202:c9ff:fe00:0001"; zero ones are left out
  std::string type = {};    // "IB/RoCE v1", "RoCE v2"; empty where the kernel does not say
  std::string netdev = {};  // of RoCE
  bool operator==(const Gid&) const = default;
};

struct Pkey {
  int index = 0;
  std::uint16_t key = 0;  // 0xffff is full membership of the default partition; zeros are left out
  bool operator==(const Pkey&) const = default;
};

struct RdmaPort {
  int number = 1;
  std::string state = {};     // "ACTIVE", "DOWN", "INIT", "ARMED"
  std::string physical = {};  // "LinkUp", "Disabled", "Polling", "Sleep", ...
  RdmaLayer layer = RdmaLayer::other;
  std::optional<double> rate_gbps = {};  // none where the kernel does not say
  int lid = 0;                           // 0 on Ethernet, and where no subnet manager has been
  int sm_lid = 0;                        // 0: no subnet manager is known
  std::vector<Gid> gids = {};
  std::vector<Pkey> pkeys = {};
  std::optional<int> traffic_class =
      {};  // 0 to 255, forced on all of RoCE's packets; none: it is not
  // Error counters only (link_downed, symbol_error, out_of_sequence, ...), by sysfs name.
  std::map<std::string, std::int64_t> counters = {};
  bool operator==(const RdmaPort&) const = default;
};

struct RdmaDevice {
  std::string name = {};      // "mlx5_0"
  std::string driver = {};    // "mlx5_core", "rdma_rxe" for software RDMA, "efa"
  std::string pci = {};       // "0000:18:00.0"; empty: no PCI device is behind it
  std::string firmware = {};  // fw_ver
  std::string board = {};     // board_id
  std::string type = {};      // hca_type
  std::string node_guid = {};
  std::string system_guid = {};  // sys_image_guid: equal for the ports of one card
  int numa = -1;                 // -1: the kernel does not say
  std::string uverbs = {};       // "/dev/infiniband/uverbs0"; empty: the module ib_uverbs made none
  bool uverbs_there = false;     // that device node exists where we are
  bool uverbs_usable = false;    // and we may open it
  std::vector<RdmaPort> ports = {};
  bool operator==(const RdmaDevice&) const = default;
};

struct Rdma {
  std::vector<RdmaDevice> devices = {};     // by name
  std::string namespace_mode = {};          // "shared", "exclusive"; empty: not known
  std::string libibverbs = {};              // its path in this file system; empty: none was found
  std::vector<std::string> providers = {};  // "mlx5", "rxe": provider libraries beside it
  bool operator==(const Rdma&) const = default;
};

template <class V, Is<Gid> T>
void fields(V& v, T& x) {
  v("index", x.index);
  v("gid", x.gid);
  v("type", x.type);
  v("netdev", x.netdev);
}
template <class V, Is<Pkey> T>
void fields(V& v, T& x) {
  v("index", x.index);
  v("key", x.key);
}
template <class V, Is<RdmaPort> T>
void fields(V& v, T& x) {
  v("number", x.number);
  v("state", x.state);
  v("physical", x.physical);
  v("layer", x.layer);
  v("rate_gbps", x.rate_gbps);
  v("lid", x.lid);
  v("sm_lid", x.sm_lid);
  v("gids", x.gids);
  v("pkeys", x.pkeys);
  v("traffic_class", x.traffic_class);
  v("counters", x.counters);
}
template <class V, Is<RdmaDevice> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("driver", x.driver);
  v("pci", x.pci);
  v("firmware", x.firmware);
  v("board", x.board);
  v("type", x.type);
  v("node_guid", x.node_guid);
  v("system_guid", x.system_guid);
  v("numa", x.numa);
  v("uverbs", x.uverbs);
  v("uverbs_there", x.uverbs_there);
  v("uverbs_usable", x.uverbs_usable);
  v("ports", x.ports);
}
template <class V, Is<Rdma> T>
void fields(V& v, T& x) {
  v("devices", x.devices);
  v("namespace_mode", x.namespace_mode);
  v("libibverbs", x.libibverbs);
  v("providers", x.providers);
}

}  // namespace distdoctor
