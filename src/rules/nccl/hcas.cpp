#include "rules/nccl/hcas.h"

#include <distdoctor/address.h>
#include <distdoctor/hcas.h>

#include "base/text.h"
#include "rules/nccl/merged_hcas.h"
#include "rules/nccl/name_list.h"
#include "rules/nccl/param.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace distdoctor::rules {

namespace {

constexpr std::size_t kMostDevices = 32;     // MAX_IB_DEVS, also of the names in NCCL_IB_HCA
constexpr std::size_t kMostDevicesOld = 16;  // up to 2.14
constexpr int kLastPlace = 255;              // of a GID table

// 28 of "2.28.9"; today's of what is no version.
int minor_of(std::string_view version) {
  const auto parts = split(version, '.', 3);
  const auto minor = parts.size() > 1 ? parse_int<int>(parts[1]) : std::nullopt;
  return parts.front() == "2" && minor ? *minor : std::numeric_limits<int>::max();
}

// What NCCL_NET names goes before all else: another transport takes no part of ours.
std::string disabled_by(const Settings& settings) {
  if (param_number(settings, "NCCL_IB_DISABLE", 0) != 0) return "NCCL_IB_DISABLE";
  const auto net = settings.find("NCCL_NET");
  return net != settings.end() && to_lower(net->second.value) != "ib" ? "NCCL_NET" : "";
}

// --- the GID of a RoCE port ---

using Bytes = std::array<std::uint8_t, 16>;

struct Wanted {       // what the variables ask for
  Address base = {};  // of the family that is wanted
  int prefix = 0;     // 0: any address; below: none
  int roce_version = 2;
};

// Of a place of the table.
struct Place {
  Bytes gid = {};
  int version = 0;  // of RoCE; 0: not known
};

bool is_zero(const Bytes& bytes, std::size_t from, std::size_t to) {
  return std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(from),
                     bytes.begin() + static_cast<std::ptrdiff_t>(to),
                     [](std::uint8_t byte) { return byte == 0; });
}

// ::ffff:a.b.c.d, and ff0e::ffff:a.b.c.d of a group.
bool is_v4(const Bytes& gid) {
  const bool mapped = is_zero(gid, 4, 10) && gid[10] == 0xff && gid[11] == 0xff;
  const bool group = gid[0] == 0xff && gid[1] == 0x0e && gid[2] == 0 && gid[3] == 0;
  return mapped && (group || is_zero(gid, 0, 4));
}

// Neither zero nor fe80::/64.
bool is_valid(const Bytes& gid) {
  const bool link_local = gid[0] == 0xfe && gid[1] == 0x80 && is_zero(gid, 2, 8);
  return !link_local && !is_zero(gid, 0, gid.size());
}

// NCCL compares no more than what the mask says, a negative one never.
bool in_range(const Wanted& wanted, const Bytes& gid) {
  Address address{.v6 = wanted.base.v6};
  if (address.v6) {
    address.bytes = gid;
  } else {
    std::copy(gid.end() - 4, gid.end(), address.bytes.begin());
  }
  return wanted.prefix >= 0 && address.shares_prefix(wanted.base, wanted.prefix);
}

// "10.0.0.0/8": what is malformed, or of the other family, is no range.
void read_range(std::string_view text, Wanted& wanted) {
  const auto slash = text.find('/');
  const auto address = Address::parse(text.substr(0, slash));
  if (slash == std::string_view::npos || !address || address->v6 != wanted.base.v6) {
    return;
  }
  const std::string mask(text.substr(slash + 1));
  const long bits = std::strtol(mask.c_str(), nullptr, 10);
  if (bits > address->bits()) return;
  wanted.base = *address;
  wanted.prefix = static_cast<int>(std::max(bits, -1L));
}

Wanted wanted_gid(const Settings& settings) {
  Wanted wanted;
  wanted.base.v6 = param_text(settings, "NCCL_IB_ADDR_FAMILY") == "AF_INET6";
  wanted.roce_version = static_cast<int>(param_number(settings, "NCCL_IB_ROCE_VERSION_NUM", 2));
  read_range(param_text(settings, "NCCL_IB_ADDR_RANGE"), wanted);
  return wanted;
}

int version_of(std::string_view type) {
  if (type.starts_with("IB/RoCE v1") || type.starts_with("RoCE v1")) return 1;
  return type.starts_with("RoCE v2") ? 2 : 0;
}

std::vector<Place> table_of(const RdmaPort& port) {
  std::vector<Place> table(kLastPlace + 1);
  for (const Gid& row : port.gids) {
    const auto address = Address::parse(row.gid);
    if (!address || !address->v6 || row.index < 0 || row.index > kLastPlace) continue;
    table[static_cast<std::size_t>(row.index)] = {address->bytes, version_of(row.type)};
  }
  return table;
}

bool is_better(const Wanted& wanted, const Place& now, const Place& next) {
  const bool v6 = !is_v4(next.gid);
  const bool fits = v6 == wanted.base.v6 && in_range(wanted, next.gid);
  if (fits && v6 == is_v4(now.gid)) return true;  // the family that was asked for, at last
  if (!fits || !is_valid(next.gid)) return false;
  return (now.version != next.version || !is_valid(now.gid)) && next.version == wanted.roce_version;
}

// Before 2.21 NCCL_IB_GID_INDEX was 0 by default, and there was no search.
std::optional<int> gid_index(const RdmaPort& port, const Settings& settings, int minor) {
  const auto said = param_number(settings, "NCCL_IB_GID_INDEX", minor < 21 ? 0 : -1);
  if (said >= 0) return static_cast<int>(std::min<std::int64_t>(said, kLastPlace + 1));
  if (port.gids.empty()) return std::nullopt;
  const Wanted wanted = wanted_gid(settings);
  const auto table = table_of(port);
  std::size_t best = 0;
  for (std::size_t next = 1; next < table.size(); ++next) {
    if (is_better(wanted, table[best], table[next])) best = next;
  }
  return static_cast<int>(best);
}

// --- ports ---

// "mlx5_2" before "mlx5_10".
std::tuple<std::string, long> by_number(const std::string& name) {
  const auto end = name.find_last_not_of("0123456789") + 1;
  return {name.substr(0, end), parse_int<long>(name.substr(end)).value_or(-1)};
}

std::vector<const RdmaDevice*> in_order(const Rdma& rdma) {
  std::vector<const RdmaDevice*> devices;
  for (const RdmaDevice& device : rdma.devices) devices.push_back(&device);
  std::ranges::sort(devices, [](const RdmaDevice* one, const RdmaDevice* other) {
    const auto key = [](const RdmaDevice& device) {
      return std::tuple(by_number(device.uverbs), by_number(device.name));
    };
    return key(*one) < key(*other);
  });
  return devices;
}

// What one ncclIbInit goes by.
struct Search {
  NameList wanted;
  int minor = 0;
  const Rdma& rdma;
  const Settings& settings;
};

std::optional<HcaPassed> passed_over(const Search& search,
                                     const RdmaDevice& device,
                                     const RdmaPort& port) {
  if (port.state != "ACTIVE" || port.layer == RdmaLayer::other) return HcaPassed::not_active;
  if (!search.wanted.takes(device.name, port.number)) return HcaPassed::filtered;
  if (rdma_trouble(search.rdma, device) != RdmaTrouble::none) return HcaPassed::not_usable;
  return std::nullopt;
}

// The length of the table is looked at between devices, never between their ports.
void add_device(const Search& search, const RdmaDevice& device, NcclHcas& hcas) {
  const bool full = hcas.used.size() >= (search.minor <= 14 ? kMostDevicesOld : kMostDevices);
  for (const RdmaPort& port : device.ports) {
    auto why = passed_over(search, device, port);
    if (!why && full) why = HcaPassed::too_many;
    if (why) {
      hcas.left_out.push_back({.device = device.name, .port = port.number, .why = *why});
      continue;
    }
    const bool roce = port.layer == RdmaLayer::ethernet;
    HcaChoice choice{.device = device.name, .port = port.number, .roce = roce};
    if (roce) choice.gid_index = gid_index(port, search.settings, search.minor);
    hcas.used.push_back(std::move(choice));
  }
}

}  // namespace

Observed<NcclHcas> nccl_hcas(const NodeFacts& node,
                             const Settings& settings,
                             std::string_view nccl_version) {
  NcclHcas hcas{.disabled_by = disabled_by(settings)};
  if (!hcas.disabled_by.empty()) return hcas;
  if (!node.rdma.known()) return node.rdma.why();
  const Search search{.wanted = parse_name_list(param_text(settings, "NCCL_IB_HCA"), kMostDevices),
                      .minor = minor_of(nccl_version),
                      .rdma = *node.rdma,
                      .settings = settings};
  for (const RdmaDevice* device : in_order(*node.rdma)) add_device(search, *device, hcas);
  hcas.merged = merged_ports(hcas.used, search.rdma, settings, search.minor);
  return hcas;
}

}  // namespace distdoctor::rules
