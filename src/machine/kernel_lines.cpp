#include "machine/kernel_lines.h"

#include <algorithm>
#include <array>

namespace distdoctor::machine {
namespace {

struct Pattern {
  std::string_view one;
  std::string_view other = "";  // both stand in the line
};

// Words of the NVIDIA driver (nv.c, nvlink_linux.c, linux_nvswitch.c), the PCI core (aer.c), mlx5
// (events.c, en_main.c), other network drivers, the OOM killer (oom_kill.c) and the watchdog of
// tasks (hung_task.c).
constexpr std::array<Pattern, kKernelLineKinds> kPatterns = {{
    {"NVRM: Xid"},
    {"SXid"},
    {"NVRM: ", "fallen off the bus"},
    {"NVRM: API mismatch"},
    {"NVRM: this kernel module has the version"},
    {"NVRM: loading NVIDIA UNIX"},
    {"nvidia-nvlink: Nvlink Core is being initialized"},
    {"NVRM: ", "RmInitAdapter failed"},
    {"PCIe Bus Error: severity="},
    {"mlx5_core", "Port module event"},
    {"mlx5_core", "Link "},
    {"Link is "},
    {"Killed process"},
    {"oom-kill:"},
    {"INFO: task ", "blocked for more than"},
}};

}  // namespace

std::optional<std::size_t> kernel_line_kind(std::string_view line) {
  const auto* const found = std::ranges::find_if(kPatterns, [&](const Pattern& pattern) {
    return line.find(pattern.one) != std::string_view::npos &&
           line.find(pattern.other) != std::string_view::npos;
  });
  if (found == kPatterns.end()) return std::nullopt;
  return static_cast<std::size_t>(found - kPatterns.begin());
}

}  // namespace distdoctor::machine
