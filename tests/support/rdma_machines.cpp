#include "support/rdma_machines.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using machine::CapturedMachine;

constexpr const char* kZero = "0000:0000:0000:0000:0000:0000:0000:0000";

CapturedMachine bare() {
  CapturedMachine machine{.hostname = "there"};
  machine.files["/sys/module/ib_core/parameters/netns_mode"].text = "Y\n";
  return machine;
}

void add_gids(CapturedMachine& machine, const std::string& port, const FakeHca& hca) {
  for (int index = 0; index < 16; ++index) {
    machine.files[fmt::format("{}/gids/{}", port, index)].text = fmt::format("{}\n", kZero);
  }
  for (const FakeGid& gid : hca.gids) {
    machine.files[fmt::format("{}/gids/{}", port, gid.index)].text = gid.gid + "\n";
    machine.files[fmt::format("{}/gid_attrs/types/{}", port, gid.index)].text = gid.type + "\n";
    machine.files[fmt::format("{}/gid_attrs/ndevs/{}", port, gid.index)].text = gid.netdev + "\n";
  }
}

}  // namespace

void add_hca(CapturedMachine& machine, const FakeHca& hca) {
  auto& files = machine.files;
  const std::string device = "/sys/class/infiniband/" + hca.name;
  const std::string port = device + "/ports/1";
  const auto line = [&](const std::string& path, const std::string& text) {
    files[path].text = text + "\n";
  };
  line(device + "/fw_ver", hca.firmware);
  line(device + "/node_guid", fmt::format("a088:c203:00{:02x}:0001", hca.uverbs));
  line(device + "/sys_image_guid", fmt::format("a088:c203:00{:02x}:0001", hca.uverbs));
  if (!hca.pci.empty()) {
    const std::string pci = "/sys/devices/pci0000:15/" + hca.pci;
    files[device + "/device"].link = pci;
    files[pci + "/driver"].link = "/sys/bus/pci/drivers/" + hca.driver;
    line(pci + "/numa_node", "0");
  }
  line(port + "/state", hca.state);
  line(port + "/phys_state", hca.physical);
  line(port + "/link_layer", hca.layer);
  line(port + "/rate", hca.rate);
  line(port + "/lid", hca.lid);
  line(port + "/sm_lid", hca.sm_lid);
  line(port + "/counters/link_downed", "0");
  line(port + "/counters/port_xmit_data", "123456789");
  for (std::size_t i = 0; i < hca.pkeys.size(); ++i) {
    line(fmt::format("{}/pkeys/{}", port, i), hca.pkeys[i]);
  }
  add_gids(machine, port, hca);
  line(fmt::format("/sys/class/infiniband_verbs/uverbs{}/ibdev", hca.uverbs), hca.name);
  if (hca.node) files[fmt::format("/dev/infiniband/uverbs{}", hca.uverbs)];
}

void add_verbs(CapturedMachine& machine, const std::vector<std::string>& providers) {
  const std::string folder = "/usr/lib/x86_64-linux-gnu";
  machine.files[folder + "/libibverbs.so.1"].link = "libibverbs.so.1.14.44.0";
  machine.files[folder + "/libibverbs.so.1.14.44.0"].text = "ELF";
  for (const std::string& provider : providers) {
    machine.files[fmt::format("{}/libibverbs/lib{}-rdmav34.so", folder, provider)].text = "ELF";
    machine.files[fmt::format("/etc/libibverbs.d/{}.driver", provider)].text =
        fmt::format("driver {}\n", provider);
  }
}

std::vector<FakeGid> roce_gids(const std::string& netdev, const std::string& v4, int host) {
  const std::string local = fmt::format("fe80:0000:0000:0000:0ac0:ebff:feda:{:04x}", host);
  const auto address = Address::parse(v4).value();
  const std::string mapped =
      fmt::format("0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}", address.bytes[0],
                  address.bytes[1], address.bytes[2], address.bytes[3]);
  return {{0, local, "IB/RoCE v1", netdev},
          {1, local, "RoCE v2", netdev},
          {2, mapped, "IB/RoCE v1", netdev},
          {3, mapped, "RoCE v2", netdev}};
}

CapturedMachine h100_with_infiniband() {
  constexpr std::array kCompute = {0, 3, 4, 5, 6, 9, 10, 11};
  constexpr std::array kStorage = {1, 7};
  CapturedMachine machine = bare();
  add_verbs(machine, {"mlx5"});
  for (const int number : kCompute) {
    add_hca(machine,
            {.name = fmt::format("mlx5_{}", number),
             .uverbs = number,
             .pci = fmt::format("0000:{:02x}:00.0", 0x18 + number),
             .gids = {{0, fmt::format("fe80:0000:0000:0000:a088:c203:00{:02x}:0001", number),
                       "IB/RoCE v1"}},
             .pkeys = {"0xffff", "0x0000"}});
  }
  for (const int number : kStorage) {
    add_hca(machine, {.name = fmt::format("mlx5_{}", number),
                      .uverbs = number,
                      .pci = fmt::format("0000:{:02x}:00.0", 0x29 + number),
                      .state = "1: DOWN",
                      .physical = "3: Disabled",
                      .layer = "Ethernet",
                      .rate = "40 Gb/sec (4X QDR)",
                      .lid = "0x0",
                      .sm_lid = "0x0"});
  }
  return machine;
}

namespace {

// The netdev of a RoCE port, as mlx5 of MLNX_OFED is set up for lossless RoCE: trust by DSCP,
// priority 3 with flow control and ECN, and all packets in its class.
void add_lossless_link(CapturedMachine& machine, const std::string& device, const Link& link) {
  auto links = machine.links.known() ? *machine.links : std::vector<Link>{};
  links.push_back(link);
  machine.links = links;
  LinkQos dcb{.pause = 1 << 3};
  for (int dscp = 0; dscp < 64; ++dscp) dcb.by_dscp.push_back({dscp, dscp / 8});
  machine.qos[link.name] = dcb;
  const std::string folder = "/sys/class/net/" + link.name;
  const auto line = [&](const std::string& path, const std::string& text) {
    machine.files[path].text = text + "\n";
  };
  line(folder + "/ifindex", std::to_string(link.index));
  line(folder + "/address", link.mac);
  line(folder + "/speed", "100000");
  line(folder + "/qos/trust", "dscp");
  for (int priority = 0; priority < 8; ++priority) {
    for (const char* end : {"roce_np", "roce_rp"}) {
      line(fmt::format("{}/ecn/{}/enable/{}", folder, end, priority), priority == 3 ? "1" : "0");
    }
  }
  line("/sys/class/infiniband/" + device + "/tc/1/traffic_class", "Global tclass=106");
}

}  // namespace

CapturedMachine a100_with_roce(int host) {
  CapturedMachine machine = bare();
  add_verbs(machine, {"mlx5", "rxe"});
  for (int number = 0; number < 8; ++number) {
    const std::string netdev = fmt::format("rdma{}", number);
    add_hca(machine, {.name = fmt::format("mlx5_{}", number),
                      .uverbs = number,
                      .pci = fmt::format("0000:{:02x}:00.0", 0x0c + number),
                      .layer = "Ethernet",
                      .rate = "100 Gb/sec (4X EDR)",
                      .lid = "0x0",
                      .sm_lid = "0x0",
                      .gids = roce_gids(netdev, fmt::format("192.168.{}.{}", number, host), host)});
    add_lossless_link(machine, fmt::format("mlx5_{}", number),
                      {.name = netdev,
                       .index = 20 + number,
                       .kind = LinkKind::ethernet,
                       .mtu = 4220,
                       .up = true,
                       .running = true,
                       .carrier = true,
                       .operstate = "up",
                       .mac = fmt::format("08:c0:eb:da:{:02x}:{:02x}", number, host)});
  }
  return machine;
}

CapturedMachine vm_with_soft_roce(int host) {
  CapturedMachine machine = bare();
  add_verbs(machine, {"rxe", "siw"});
  const std::string name = "rxe0";
  add_hca(machine, {.name = name,
                    .pci = "",
                    .layer = "Ethernet",
                    .rate = "2.5 Gb/sec (1X SDR)",
                    .lid = "0x0",
                    .sm_lid = "0x0",
                    .firmware = "",
                    .gids = {{0, fmt::format("fe80:0000:0000:0000:5054:00ff:fe12:{:04x}", host),
                              "RoCE v2", "eth1"},
                             {1, fmt::format("0000:0000:0000:0000:0000:ffff:0a14:00{:02x}", host),
                              "RoCE v2", "eth1"}}});
  machine.files["/sys/class/infiniband/rxe0/parent"].text = "eth1\n";
  return machine;
}

CapturedMachine vm_with_efa() {
  CapturedMachine machine = bare();
  add_verbs(machine, {"efa"});
  for (int number = 0; number < 4; ++number) {
    add_hca(
        machine,
        {.name = fmt::format("rdmap{}s27", 16 + number),
         .uverbs = number,
         .pci = fmt::format("0000:{:02x}:1b.0", 0x10 + number),
         .driver = "efa",
         .layer = "Unspecified",
         .rate = "100 Gb/sec (4X EDR)",
         .lid = "0x0",
         .sm_lid = "0x0",
         .gids = {{0, fmt::format("fe80:0000:0000:0000:0814:54ff:fe9c:00{:02x}", number), ""}}});
  }
  return machine;
}

CapturedMachine container_without_devices() {
  CapturedMachine machine = h100_with_infiniband();
  std::erase_if(machine.files,
                [](const auto& file) { return file.first.starts_with("/dev/infiniband/"); });
  return machine;
}

}  // namespace distdoctor::testing
