// What the NVIDIA driver's fault codes in the kernel's log mean: Xid of a GPU, SXid of an NVSwitch.
// After NVIDIA's "XID Errors" (docs.nvidia.com/deploy/xid-errors, r570) and the Fabric Manager User
// Guide (appendix on NVSwitch SXid errors), in our own words. Data and look-ups only: checks of the
// kernel's log and of other logs share them.
#pragma once

#include <distdoctor/facts/kernel_log.h>
#include <distdoctor/finding.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace distdoctor {

// Whose fault it is. Only hardware and link accuse a device; `follows` only tells of another fault.
enum class XidKind : std::uint8_t { application, follows, driver, link, hardware };
// What makes the GPU usable again.
enum class XidCure : std::uint8_t { nothing, reset, power_cycle, replace };

struct XidMeaning {
  int code;
  XidKind kind;
  XidCure cure;
  Severity worst;
  std::string_view meaning;
};

inline constexpr std::array<XidMeaning, 48> kXids = {{
    {13, XidKind::application, XidCure::nothing, Severity::notice,
     "a kernel of the program failed, often by an access out of bounds"},
    {31, XidKind::application, XidCure::nothing, Severity::notice,
     "the program touched an address that is not mapped"},
    {32, XidKind::driver, XidCure::nothing, Severity::notice,
     "the driver's command stream was invalid"},
    {38, XidKind::driver, XidCure::reset, Severity::degraded, "the driver's firmware failed"},
    {43, XidKind::application, XidCure::nothing, Severity::notice,
     "a fault of the program stopped its channel; the GPU goes on"},
    {44, XidKind::driver, XidCure::nothing, Severity::notice, "a context switch failed"},
    {45, XidKind::follows, XidCure::nothing, Severity::notice,
     "a program's channels were cleaned up after it ended or another fault hit it"},
    {46, XidKind::driver, XidCure::reset, Severity::degraded, "the GPU stopped processing"},
    {48, XidKind::hardware, XidCure::reset, Severity::degraded,
     "an uncorrectable (double bit) memory error"},
    {54, XidKind::hardware, XidCure::power_cycle, Severity::degraded,
     "the auxiliary power is not connected"},
    {57, XidKind::hardware, XidCure::replace, Severity::degraded,
     "the video memory's interface could not be programmed"},
    {58, XidKind::hardware, XidCure::replace, Severity::degraded,
     "the video memory's interface is unstable"},
    {61, XidKind::driver, XidCure::reset, Severity::degraded,
     "the GPU's power controller met a breakpoint"},
    {62, XidKind::hardware, XidCure::reset, Severity::blocker,
     "the GPU's power controller has halted"},
    {63, XidKind::hardware, XidCure::reset, Severity::notice,
     "a bad memory row or page was noted; it is replaced at the next reset"},
    {64, XidKind::hardware, XidCure::replace, Severity::degraded,
     "a bad memory row or page could not be noted for replacement"},
    {68, XidKind::application, XidCure::nothing, Severity::notice, "the video decoder failed"},
    {69, XidKind::application, XidCure::nothing, Severity::notice,
     "the program gave the graphics engine an invalid command"},
    {74, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed"},
    {79, XidKind::hardware, XidCure::power_cycle, Severity::blocker,
     "the GPU has fallen off the PCIe bus"},
    {80, XidKind::driver, XidCure::reset, Severity::degraded, "corrupted data reached the GPU"},
    {92, XidKind::hardware, XidCure::nothing, Severity::notice,
     "correctable memory errors are frequent"},
    {93, XidKind::driver, XidCure::nothing, Severity::notice,
     "the driver could not write the GPU's flash memory"},
    {94, XidKind::hardware, XidCure::reset, Severity::degraded,
     "an uncorrectable memory error, contained: only the program that met it was ended"},
    {95, XidKind::hardware, XidCure::reset, Severity::blocker,
     "an uncorrectable memory error, not contained: nothing on this GPU can be trusted"},
    {109, XidKind::driver, XidCure::reset, Severity::degraded, "a context switch timed out"},
    {110, XidKind::hardware, XidCure::reset, Severity::degraded, "a security fault of the GPU"},
    {119, XidKind::driver, XidCure::reset, Severity::blocker,
     "the GPU's system processor (GSP) does not answer the driver"},
    {120, XidKind::driver, XidCure::reset, Severity::blocker,
     "the GPU's system processor (GSP) failed"},
    {121, XidKind::link, XidCure::reset, Severity::notice,
     "errors on the chip-to-chip link were corrected"},
    {136, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink could not be trained"},
    {137, XidKind::follows, XidCure::nothing, Severity::notice,
     "an access to another GPU's memory over NVLink failed"},
    {140, XidKind::hardware, XidCure::reset, Severity::blocker,
     "an uncorrectable memory error was not recovered"},
    {143, XidKind::hardware, XidCure::reset, Severity::blocker, "the GPU failed to initialise"},
    {144, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (SAW)"},
    {145, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (RLW)"},
    {146, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (TLW)"},
    {147, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (TREX)"},
    {148, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (NVLPW)"},
    {149, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (NETIR)"},
    {150, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (MSE)"},
    {155, XidKind::link, XidCure::reset, Severity::degraded, "an NVLink failed (software)"},
    {156, XidKind::hardware, XidCure::reset, Severity::notice,
     "a bad part was noted; it is retired at the next reset"},
    {157, XidKind::hardware, XidCure::replace, Severity::degraded,
     "a bad part could not be retired"},
    {158, XidKind::hardware, XidCure::reset, Severity::blocker, "the GPU ended with a time-out"},
    {171, XidKind::hardware, XidCure::reset, Severity::degraded,
     "an uncorrectable error of the GPU's DRAM"},
    {172, XidKind::hardware, XidCure::reset, Severity::degraded,
     "an uncorrectable error of the GPU's SRAM"},
    {173, XidKind::link, XidCure::power_cycle, Severity::blocker, "the chip-to-chip link failed"},
}};

constexpr const XidMeaning* find_xid(int code) {
  for (const XidMeaning& row : kXids) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

struct XidEvent {
  bool nvswitch = false;  // an SXid
  std::string pci = {};   // "0000:1b:00.0"
  int code = 0;
  std::string text = {};  // what follows the code
  double uptime_s = 0;
  bool operator==(const XidEvent&) const = default;
};

namespace xid_detail {

// "PCI:0000:1b:00", "0000:1b:00", "PCI:0000:1b:00.0", "PCI:0000:1b:00 GPU-I:00" (a MIG instance).
inline std::string pci_in(std::string_view text) {
  if (text.starts_with("PCI:")) text.remove_prefix(4);
  text = text.substr(0, text.find(' '));
  const bool digits = text.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos;
  if (!digits || std::ranges::count(text, ':') != 2 || text.size() > 16) return "";
  return std::string(text) + (text.find('.') == std::string_view::npos ? ".0" : "");
}

}  // namespace xid_detail

// Of "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus." and "nvidia-nvswitch0:
// SXid (PCI:0000:86:00.0): 20034, Fatal, Link 24 LTSSM Fault Up"; none of any other line.
inline std::optional<XidEvent> parse_xid(const KernelLine& line) {
  const std::string_view all = line.text;
  auto at = all.find("SXid (");
  const bool nvswitch = at != std::string_view::npos;
  if (!nvswitch) at = all.find("NVRM: Xid (");
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view place = all.substr(all.find('(', at) + 1);
  const auto end = place.find("): ");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view rest = place.substr(end + 3);
  XidEvent event{.nvswitch = nvswitch,
                 .pci = xid_detail::pci_in(place.substr(0, end)),
                 .uptime_s = line.uptime_s};
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), event.code);
  if (error != std::errc() || event.pci.empty() || event.code <= 0) return std::nullopt;
  const auto text = rest.substr(static_cast<std::size_t>(stop - rest.data()));
  event.text = text.starts_with(", ") ? text.substr(2) : text;
  return event;
}

// Whether the driver was loaded (again) there: what it said before is of another life.
inline bool is_driver_load(const KernelLine& line) {
  return line.text.find("NVRM: loading NVIDIA UNIX") != std::string::npos ||
         line.text.find("nvidia-nvlink: Nvlink Core is being initialized") != std::string::npos;
}

}  // namespace distdoctor
