// Look-ups in the facts of RDMA devices that rules and checks share; no judgement.
#pragma once

#include <distdoctor/facts/rdma.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace distdoctor {

inline const RdmaDevice* find_rdma_device(const Rdma& rdma, std::string_view name) {
  const auto found = std::ranges::find(rdma.devices, name, &RdmaDevice::name);
  return found == rdma.devices.end() ? nullptr : &*found;
}

inline const RdmaPort* find_rdma_port(const Rdma& rdma, std::string_view name, int number) {
  const RdmaDevice* device = find_rdma_device(rdma, name);
  if (device == nullptr) return nullptr;
  const auto found = std::ranges::find(device->ports, number, &RdmaPort::number);
  return found == device->ports.end() ? nullptr : &*found;
}

// What libibverbs needs for a kernel driver (rdma-core, providers/); empty: not known to us.
inline std::string_view verbs_provider_of(std::string_view driver) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kProviders = {
      {{"mlx5_core", "mlx5"},
       {"mlx4_core", "mlx4"},
       {"bnxt_en", "bnxt_re"},
       {"irdma", "irdma"},
       {"ice", "irdma"},
       {"i40e", "irdma"},
       {"erdma", "erdma"},
       {"mana", "mana"},
       {"qede", "qedr"},
       {"cxgb4", "cxgb4"},
       {"hns3", "hns"},
       {"rdma_rxe", "rxe"},
       {"siw", "siw"},
       {"efa", "efa"}}};
  const auto found =
      std::ranges::find(kProviders, driver, [](const auto& row) { return row.first; });
  return found == kProviders.end() ? "" : found->second;
}

// Why a program that lives where we do cannot use a device that sysfs shows.
enum class RdmaTrouble : std::uint8_t { none, no_library, no_node, refused, no_provider };

inline RdmaTrouble rdma_trouble(const Rdma& rdma, const RdmaDevice& device) {
  if (rdma.libibverbs.empty()) return RdmaTrouble::no_library;
  if (!device.uverbs_there) return RdmaTrouble::no_node;
  if (!device.uverbs_usable) return RdmaTrouble::refused;
  const std::string_view provider = verbs_provider_of(device.driver);
  const auto& all = rdma.providers;
  const bool lacks = !provider.empty() && std::ranges::find(all, provider) == all.end();
  return lacks ? RdmaTrouble::no_provider : RdmaTrouble::none;
}

// EFA is no device of NCCL's own: a plugin (aws-ofi-nccl) may carry the data by it.
inline bool has_active_efa(const NodeFacts& node) {
  return node.rdma.known() && std::ranges::any_of(node.rdma->devices, [](const RdmaDevice& device) {
           return device.driver == "efa" &&
                  std::ranges::find(device.ports, "ACTIVE", &RdmaPort::state) != device.ports.end();
         });
}

// Whether NCCL would carry a job's data by RDMA: by its own rules where they could be followed, by
// what can be seen from afar where not. NCCL_NET may name a plugin, whose devices are its own.
inline bool rdma_carries_data(const NodeFacts& node, const Prediction& prediction) {
  const bool of_a_plugin = has_active_efa(node) ||
                           (prediction.hcas.known() && prediction.hcas->disabled_by == "NCCL_NET");
  if (prediction.hcas.known() && !of_a_plugin) return !prediction.hcas->used.empty();
  return rdma_carries_data(node, prediction.settings);
}

}  // namespace distdoctor
