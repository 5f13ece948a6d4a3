#include "collect/nvml.h"

#include "collect/collectors.h"
#include "collect/helper.h"
#include "collect/patience.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace distdoctor::collect {
namespace {

// Where no program keeps them awake and persistence mode is off, the driver wakes the GPUs one
// after the other, about a second each.
constexpr std::chrono::milliseconds kPatience{12'000};
constexpr std::chrono::milliseconds kEnough{3000};

}  // namespace

bool has_nvidia_driver(const machine::Machine& machine) {
  constexpr std::array kSigns = {"/proc/driver/nvidia/version", "/dev/nvidiactl"};
  return std::ranges::any_of(
      kSigns, [&](const char* path) { return machine.files().info(path).has_value(); });
}

Observed<Nvml> ask_nvml(const machine::Machine& machine, Deadline deadline) {
  return ask_helper<Nvml>(machine, {"vendor", "nvml"}, deadline);
}

void collect_nvml(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  if (!has_nvidia_driver(machine)) {
    node.nvml = Unknown{Why::not_collected, "no NVIDIA driver is loaded"};
    return;
  }
  const Deadline deadline = end_of(request, kPatience);
  const std::chrono::milliseconds waited(deadline.remaining_ms());
  node.nvml = ask_nvml(machine, deadline);
  forgive_silence(node.nvml, waited, kEnough);
}

}  // namespace distdoctor::collect
