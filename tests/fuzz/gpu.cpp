// Texts of the NVIDIA and AMD drivers, PCI config spaces, and lines of the kernel's log: any bytes
// are facts or none, and never trouble.
#include "collect/gpu.h"

#include <distdoctor/link_flaps.h>
#include <distdoctor/xid.h>

#include "collect/kernel_log.h"
#include "collect/pci.h"
#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test

void must(bool holds) {
  if (!holds) std::abort();
}

void read_pci(std::string_view bytes) {
  const auto acs = collect::acs_of_config(bytes);
  must(!acs.redirects || !acs.cut);
  const auto ats = collect::ats_of_config(bytes);
  must(!ats.on || !ats.cut);
  for (const auto& bridge : collect::parse_bridges_above(bytes)) {
    must(collect::is_pci_address(bridge));
  }
  const auto lanes = collect::parse_lanes(bytes);
  must(!lanes || *lanes > 0);
  static_cast<void>(collect::parse_transfer_rate(bytes));
  static_cast<void>(collect::relaxed_ordering_of_config(bytes));
  static_cast<void>(collect::says_hypervisor(bytes));
}

void read_gpu(std::string_view text) {
  const auto module = collect::parse_nvidia_version(text);
  must(!module || !module->version.empty());
  static_cast<void>(collect::parse_information(text));
  static_cast<void>(collect::parse_kfd_properties(text));
}

void read_log(std::string_view text) {
  const auto log = collect::parse_kernel_log(text, 1);
  for (const auto& line : log.lines) {
    must(line.uptime_s >= 0 && line.text.size() <= 400);
    const auto xid = parse_xid(line);
    must(!xid || (xid->code > 0 && !xid->pci.empty()));
    must(line.text.empty() || names_word(line.text, line.text));
  }
  const auto links = history_of(log, [](std::string_view) { return true; });
  must(links.lasting.size() <= links.all.size() && (links.told || links.all.empty()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_pci(text);
  read_gpu(text);
  read_log(text);
  return 0;
}
