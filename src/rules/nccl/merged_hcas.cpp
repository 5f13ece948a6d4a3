#include "rules/nccl/merged_hcas.h"

#include <distdoctor/hcas.h>

#include "rules/nccl/param.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::rules {
namespace {

constexpr int kByTopology = 24;           // from this 2.N on
constexpr std::size_t kMostPorts = 4;     // NCCL_NET_MAX_DEVS_PER_NIC
constexpr std::size_t kMostPortsOld = 2;  // up to 2.23

struct Port {
  std::string name;  // "mlx5_0:1"
  std::string card;
  bool roce;
};
using Group = std::vector<std::size_t>;
using Pair = std::pair<std::size_t, std::size_t>;

// The PCI address without its function; with NCCL_IB_MERGE_VFS without the slot, too, which tells
// virtual functions from their physical one. Ports without an address count as of one card.
std::string card_of(const std::string& pci, bool with_virtual) {
  constexpr std::size_t kFunction = 1;  // "0000:18:02.5"
  constexpr std::size_t kSlot = 4;
  return pci.substr(0, pci.size() - std::min(pci.size(), with_virtual ? kSlot : kFunction));
}

std::vector<Port> ports_of(const std::vector<HcaChoice>& used,
                           const Rdma& rdma,
                           const Settings& settings) {
  const bool with_virtual = param_number(settings, "NCCL_IB_MERGE_VFS", 1) != 0;
  std::vector<Port> ports;
  for (const HcaChoice& hca : used) {
    const RdmaDevice* device = find_rdma_device(rdma, hca.device);
    const std::string pci = device == nullptr ? "" : device->pci;
    ports.push_back({.name = hca.device + ':' + std::to_string(hca.port),
                     .card = card_of(pci, with_virtual),
                     .roce = hca.roce});
  }
  return ports;
}

// One search of NCCL's, step by step.
class Merging {
 public:
  Merging(const std::vector<Port>& ports, std::size_t most)
      : ports_(ports), most_(most), placed_(ports.size()) {}

  std::vector<Group> run() {
    std::vector<Group> merged;
    for (std::size_t root = 0; root < ports_.size(); ++root) {
      if (placed_[root]) continue;
      Group group = place_around(root);
      if (group.size() < 2) continue;
      if (one_layer(group)) {
        merged.push_back(std::move(group));
      } else {
        take_apart(group);
        root = 0;  // NCCL starts again, with the second one
      }
    }
    return merged;
  }

 private:
  Group place_around(std::size_t root) {
    Group group = {root};
    placed_[root] = true;
    for (std::size_t other = 0; other < ports_.size() && group.size() < most_; ++other) {
      if (placed_[other] || !near(root, other)) continue;
      placed_[other] = true;
      group.push_back(other);
    }
    return group;
  }
  [[nodiscard]] bool near(std::size_t one, std::size_t other) const {
    const Pair pair = std::minmax(one, other);
    return ports_[one].card == ports_[other].card &&
           std::ranges::find(apart_, pair) == apart_.end();
  }
  // InfiniBand and RoCE never become one.
  [[nodiscard]] bool one_layer(const Group& group) const {
    return std::ranges::all_of(group, [&](std::size_t member) {
      return ports_[member].roce == ports_[group.front()].roce;
    });
  }
  void take_apart(const Group& group) {
    for (const std::size_t member : group) {
      placed_[member] = false;
      if (member != group.front()) apart_.emplace_back(std::minmax(group.front(), member));
    }
  }

  const std::vector<Port>& ports_;
  std::size_t most_;
  std::vector<bool> placed_;
  std::vector<Pair> apart_;
};

bool merges(const Settings& settings, int minor) {
  constexpr int kFirst = 20;
  if (minor < kFirst || param_number(settings, "NCCL_IB_MERGE_NICS", 1) == 0) return false;
  if (minor < kByTopology) return true;
  const auto level = settings.find("NCCL_NET_MERGE_LEVEL");
  return (level == settings.end() || level->second.value == "PORT") &&
         param_text(settings, "NCCL_NET_FORCE_MERGE").empty();
}

}  // namespace

std::vector<std::vector<std::string>> merged_ports(const std::vector<HcaChoice>& used,
                                                   const Rdma& rdma,
                                                   const Settings& settings,
                                                   int minor) {
  std::vector<std::vector<std::string>> merged;
  if (!merges(settings, minor)) return merged;
  const auto ports = ports_of(used, rdma, settings);
  for (const Group& group :
       Merging(ports, minor < kByTopology ? kMostPortsOld : kMostPorts).run()) {
    std::vector<std::string>& names = merged.emplace_back();
    for (const std::size_t member : group) names.push_back(ports[member].name);
  }
  return merged;
}

}  // namespace distdoctor::rules
