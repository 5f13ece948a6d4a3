#include <distdoctor/xid.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

TEST_CASE("the table of faults is in order, and accuses no hardware of a program's fault") {
  CHECK(std::ranges::is_sorted(kXids, {}, &XidMeaning::code));
  for (const XidMeaning& row : kXids) {
    CAPTURE(row.code);
    CHECK(row.meaning.size() > 10);
    const bool blames = row.kind != XidKind::application && row.kind != XidKind::follows;
    CHECK((blames || row.worst == Severity::notice));
    CHECK((blames || row.cure == XidCure::nothing));
  }
  for (const int code : {13, 31, 43, 68}) CHECK(find_xid(code)->kind == XidKind::application);
  for (const int code : {48, 62, 64, 79, 94, 95}) CHECK(find_xid(code)->kind == XidKind::hardware);
  for (const int code : {74, 149}) CHECK(find_xid(code)->kind == XidKind::link);
  CHECK(find_xid(45)->kind == XidKind::follows);
  CHECK(find_xid(1'000) == nullptr);
}

TEST_CASE("fault lines of the NVIDIA driver") {
  const auto event =
      parse_xid({.uptime_s = 7,
                 .text = "NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus."});
  CHECK(event == XidEvent{.pci = "0000:1b:00.0",
                          .code = 79,
                          .text = "pid=1, GPU has fallen off the bus.",
                          .uptime_s = 7});
  const auto pci_of = [](const std::string& text) {
    const auto found = parse_xid({.text = text});
    return found ? found->pci : "";
  };
  CHECK(pci_of("NVRM: Xid (0000:03:00): 13, 0002 00000000") == "0000:03:00.0");
  CHECK(pci_of("NVRM: Xid (PCI:0000:1b:00 GPU-I:05): 13, pid=1") == "0000:1b:00.0");
  CHECK(pci_of("nvidia-nvswitch0: SXid (PCI:0000:86:00.1): 20034, Fatal") == "0000:86:00.1");
  for (const char* text :
       {"", "NVRM: Xid", "NVRM: Xid (PCI:0000:1b:00): x",
        "NVRM: Xid (PCI:", "NVRM: Xid (PCI:$(reboot)): 79", "NVRM: Xid (PCI:0000:1b:00): -1, a",
        "NVRM: Xid (PCI:0000:1b:00): 99999999999, a", "Xid (PCI:0000:1b:00): 7"}) {
    CHECK(pci_of(text).empty());
  }
}

TEST_CASE("when the driver was loaded") {
  CHECK(is_driver_load({.text = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15"}));
  CHECK(is_driver_load({.text = "nvidia-nvlink: Nvlink Core is being initialized, major 235"}));
  CHECK_FALSE(is_driver_load({.text = "NVRM: Xid (PCI:0000:1b:00): 79"}));
}
