#include "support/gpu_machines.h"

#include "support/nvml_answers.h"
#include "support/rdma_machines.h"

#include <fmt/format.h>

#include <array>

namespace distdoctor::testing {
namespace {

using machine::CapturedMachine;

constexpr std::string_view kH100 = "NVIDIA H100 80GB HBM3";

FakePci bridge(const std::string& path, const std::string& config, int width = 16) {
  return {.path = path,
          .vendor = "0x1000",
          .device = "0xc030",
          .device_class = "0x060400",
          .driver = "pcieport",
          .width = width,
          .config = config};
}

FakePci infiniband_card(const std::string& path, int numa) {
  return {.path = path,
          .vendor = "0x15b3",
          .device = "0x1021",
          .device_class = "0x020700",
          .driver = "mlx5_core",
          .numa = numa,
          .config = fake_card_config(true)};
}

void add_iommu_group(CapturedMachine& captured, int group, const std::string& type) {
  captured.files[fmt::format("/sys/kernel/iommu_groups/{}/type", group)].text = type + "\n";
}

void add_peermem(CapturedMachine& captured) {
  captured.files["/sys/module/nvidia_peermem/version"].text = "550.54.15\n";
}

void be_a_guest(CapturedMachine& captured) {
  captured.files["/proc/cpuinfo"].text = "processor\t: 0\nflags\t\t: fpu vme sse2 hypervisor avx\n";
}

CapturedMachine computer(const std::string& name) {
  CapturedMachine captured{.hostname = name, .release = "6.8.0-45-generic", .uptime_s = 90'000};
  captured.kernel_log = std::string("<6>[    0.000000] Linux version 6.8.0-45-generic\n");
  captured.files["/proc/cpuinfo"].text = "processor\t: 0\nflags\t\t: fpu vme sse2 avx512f\n";
  return captured;
}

// Root port, switch, and below it a GPU and a card.
void add_hgx_part(CapturedMachine& captured, int i) {
  const int bus = 0x10 + 0x10 * i;
  const int numa = i < 4 ? 0 : 1;
  const auto root = fmt::format("pci0000:{:02x}/0000:{:02x}:01.0", bus, bus);
  const auto up = fmt::format("{}/0000:{:02x}:00.0", root, bus + 1);
  const auto config = fake_config(0x1d);
  add_fake_pci(captured, bridge(root, config));
  add_fake_pci(captured, bridge(up, fake_config()));
  const auto gpu_port = fmt::format("{}/0000:{:02x}:00.0", up, bus + 2);
  const auto card_port = fmt::format("{}/0000:{:02x}:01.0", up, bus + 2);
  add_fake_pci(captured, bridge(gpu_port, config));
  add_fake_pci(captured, bridge(card_port, config));
  const auto gpu = fmt::format("0000:{:02x}:00.0", bus + 3);
  const int group = 10 + i;
  add_fake_pci(captured, {.path = gpu_port + "/" + gpu, .numa = numa, .group = group});
  add_iommu_group(captured, group, "identity");
  add_fake_nvidia_gpu(captured, gpu, i, std::string(kH100));
  const auto card = fmt::format("0000:{:02x}:00.0", bus + 4);
  add_fake_pci(captured, infiniband_card(card_port + "/" + card, numa));
  add_hca(captured, {.name = fmt::format("mlx5_{}", i), .uverbs = i, .pci = card});
}

}  // namespace

std::string fake_config() {
  std::string config(64, '\x11');
  return config;
}

std::string fake_config(unsigned acs) {
  std::string config(4096, '\0');
  const auto put = [&](std::size_t at, unsigned value) {
    config[at] = static_cast<char>(value & 0xffU);
    config[at + 1] = static_cast<char>(value >> 8U & 0xffU);
  };
  put(0x000, 0x1000);
  put(0x100, 0x0001);  // Advanced Error Reporting, version 2, next at 0x260
  put(0x102, 0x2602);
  put(0x260, 0x000d);  // Access Control Services, version 1, the last one
  put(0x262, 0x0001);
  put(0x264, 0x007f);
  put(0x266, acs);
  return config;
}

std::string fake_card_config(bool relaxed_ordering) {
  std::string config(256, '\0');
  config[0x06] = 0x10;  // it has a list of capabilities
  config[0x34] = 0x40;
  config[0x40] = 0x11;  // MSI-X, next at 0x60
  config[0x41] = 0x60;
  config[0x60] = 0x10;  // PCI Express, the last one
  config[0x68] = relaxed_ordering ? 0x3f : 0x2f;
  return config;
}

void add_fake_pci(CapturedMachine& captured, const FakePci& device) {
  const auto name = device.path.substr(device.path.rfind('/') + 1);
  captured.files["/sys/bus/pci/devices/" + name].link = "../../../devices/" + device.path;
  const auto folder = "/sys/devices/" + device.path;
  const auto put = [&](const char* file, const std::string& text) {
    captured.files[folder + "/" + file].text = text + "\n";
  };
  put("vendor", device.vendor);
  put("device", device.device);
  put("class", device.device_class);
  put("numa_node", std::to_string(device.numa));
  put("current_link_width", std::to_string(device.width));
  put("max_link_width", std::to_string(device.max_width));
  put("current_link_speed", device.speed);
  put("max_link_speed", "32.0 GT/s PCIe");
  if (!device.driver.empty()) {
    captured.files[folder + "/driver"].link = "../../../../bus/pci/drivers/" + device.driver;
  }
  if (device.group >= 0) {
    captured.files[folder + "/iommu_group"].link =
        "../../../kernel/iommu_groups/" + std::to_string(device.group);
  }
  if (!device.config.empty()) captured.files[folder + "/config"].text = device.config;
}

void add_fake_nvidia_driver(CapturedMachine& captured, const std::string& version, bool open) {
  auto& files = captured.files;
  const std::string kind = open ? "Open Kernel Module for x86_64" : "x86_64 Kernel Module";
  files["/proc/driver/nvidia/version"].text = fmt::format(
      "NVRM version: NVIDIA UNIX {}  {}  Release Build  (builder@host)\n"
      "GCC version:  gcc version 12.3.0\n",
      kind, version);
  files["/sys/module/nvidia/version"].text = version + "\n";
  files["/usr/lib/x86_64-linux-gnu/libcuda.so.1"].link = "libcuda.so." + version;
  files["/usr/lib/x86_64-linux-gnu/libcuda.so." + version].text = "\x7f\x45LF";
  files["/dev/nvidiactl"].size = 0;
  files["/dev/nvidia-uvm"].size = 0;
}

void add_fake_nvidia_gpu(CapturedMachine& captured,
                         const std::string& address,
                         int minor,
                         const std::string& model) {
  captured.files["/proc/driver/nvidia/gpus/" + address + "/information"].text = fmt::format(
      "Model: \t\t {}\nIRQ:   \t\t {}\nGPU UUID: \t GPU-5eed0000-0000-4000-8000-{:012x}\n"
      "Video BIOS: \t 96.00.74.00.01\nBus Type: \t PCIe\nDMA Size: \t 52 bits\n"
      "Bus Location: \t {}\nDevice Minor: \t {}\nGPU Excluded:\t No\n",
      model, 200 + minor, minor, address, minor);
  captured.files[fmt::format("/dev/nvidia{}", minor)].size = 0;
}

CapturedMachine fake_hgx_h100() {
  NvmlShape nvml{.fabric = true, .nvlinks = 18, .nvlinks_active = 18, .near_path = "NV18"};
  auto captured = computer("hgx");
  add_fake_nvidia_driver(captured, "550.54.15", true);
  add_peermem(captured);
  add_verbs(captured, {"mlx5"});
  for (int i = 0; i < 8; ++i) add_hgx_part(captured, i);
  const auto root = std::string("pci0000:a0/0000:a0:01.0");
  add_fake_pci(captured, bridge(root, fake_config(0x1d)));
  for (int i = 0; i < 4; ++i) {
    add_fake_pci(captured, {.path = fmt::format("{}/0000:a{}:00.0", root, i + 1),
                            .device = "0x22a3",
                            .device_class = "0x068000",
                            .driver = "nvidia-nvswitch",
                            .width = 2,
                            .max_width = 2});
  }
  for (int i = 0; i < 8; ++i) {
    nvml.addresses.push_back(fmt::format("0000:{:02x}:00.0", 0x13 + 0x10 * i));
  }
  answer_nvml(captured, fake_nvml(nvml));
  return captured;
}

CapturedMachine fake_a100_pcie() {
  auto captured = computer("a100");
  // Without bridges between the cards its twelve NVLinks lead nowhere.
  NvmlShape nvml{.name = "NVIDIA A100 80GB PCIe",
                 .capability = "8.0",
                 .driver = "535.183.01",
                 .cuda = "12.2",
                 .nvlinks = 12,
                 .far_p2p = "chipset not supported",
                 .halves = 2};
  add_fake_nvidia_driver(captured, "535.183.01", false);
  add_peermem(captured);
  for (int i = 0; i < 4; ++i) {
    const int bus = 0x20 + 0x40 * (i / 2);
    const auto root = fmt::format("pci0000:{:02x}/0000:{:02x}:01.0", bus, bus);
    const auto up = fmt::format("{}/0000:{:02x}:00.0", root, bus + 1);
    const auto port = fmt::format("{}/0000:{:02x}:{:02x}.0", up, bus + 2, i % 2);
    add_fake_pci(captured, bridge(root, fake_config(0)));
    add_fake_pci(captured, bridge(up, fake_config(0)));
    add_fake_pci(captured, bridge(port, fake_config(0)));
    const auto gpu = fmt::format("0000:{:02x}:00.0", bus + 3 + i % 2);
    add_fake_pci(captured, {.path = port + "/" + gpu,
                            .device = "0x20b5",
                            .speed = "16.0 GT/s PCIe",
                            .numa = i / 2,
                            .group = 10 + i});
    add_iommu_group(captured, 10 + i, "identity");
    add_fake_nvidia_gpu(captured, gpu, i, "NVIDIA A100 80GB PCIe");
    nvml.addresses.push_back(gpu);
  }
  answer_nvml(captured, fake_nvml(nvml));
  add_fake_pci(captured,
               bridge("pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:02.0", fake_config(0)));
  add_fake_pci(captured, infiniband_card(
                             "pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:02.0/0000:25:00.0", 0));
  add_verbs(captured, {"mlx5"});
  add_hca(captured, {.name = "mlx5_0", .pci = "0000:25:00.0"});
  return captured;
}

CapturedMachine fake_cloud_vm() {
  auto captured = computer("vm");
  be_a_guest(captured);
  NvmlShape nvml{.name = "NVIDIA A100-SXM4-40GB",
                 .capability = "8.0",
                 .driver = "550.90.07",
                 .nvlinks = 12,
                 .nvlinks_active = 12,
                 .near_path = "NV12"};
  add_fake_nvidia_driver(captured, "550.90.07", true);
  for (int i = 0; i < 8; ++i) {
    const auto gpu = fmt::format("0000:{:02x}:1c.0", 0x10 + 0x10 * (i / 2) + i % 2);
    add_fake_pci(captured, {.path = fmt::format("pci0000:{}/{}", gpu.substr(5, 2), gpu),
                            .device = "0x20b0",
                            .width = 0,
                            .max_width = 0,
                            .speed = "Unknown",
                            .numa = i / 4});
    add_fake_nvidia_gpu(captured, gpu, i, "NVIDIA A100-SXM4-40GB");
    nvml.addresses.push_back(gpu);
  }
  answer_nvml(captured, fake_nvml(nvml));
  add_fake_pci(captured, {.path = "pci0000:00/0000:00:05.0",
                          .vendor = "0x1d0f",
                          .device = "0xec20",
                          .device_class = "0x020000",
                          .driver = "ena",
                          .width = 0,
                          .max_width = 0,
                          .speed = "Unknown"});
  return captured;
}

namespace {

NvmlShape geforce() {
  return {.name = "NVIDIA GeForce RTX 4090",
          .capability = "8.9",
          .driver = "550.120",
          .data_center = false,
          .halves = 1};
}

}  // namespace

CapturedMachine fake_desktop() {
  auto captured = computer("desk");
  auto nvml = geforce();
  nvml.addresses = {"0000:01:00.0"};
  answer_nvml(captured, fake_nvml(nvml));
  add_fake_nvidia_driver(captured, "550.120", false);
  const auto root = std::string("pci0000:00/0000:00:01.0");
  add_fake_pci(captured, bridge(root, fake_config()));
  add_fake_pci(captured, {.path = root + "/0000:01:00.0",
                          .device = "0x2684",
                          .device_class = "0x030000",
                          .speed = "2.5 GT/s PCIe",
                          .numa = -1,
                          .group = 14});
  add_iommu_group(captured, 14, "DMA-FQ");
  add_fake_nvidia_gpu(captured, "0000:01:00.0", 0, "NVIDIA GeForce RTX 4090");
  add_fake_pci(captured, {.path = "pci0000:00/0000:00:1f.6",
                          .vendor = "0x8086",
                          .device = "0x15fa",
                          .device_class = "0x020000",
                          .driver = "e1000e",
                          .width = 0,
                          .max_width = 0,
                          .speed = "Unknown",
                          .numa = -1});
  return captured;
}

CapturedMachine fake_two_rtx() {
  auto captured = computer("rtx");
  add_fake_nvidia_driver(captured, "550.120", false);
  auto nvml = geforce();
  nvml.far_p2p = "chipset not supported";
  nvml.far_path = "PHB";
  for (int i = 0; i < 2; ++i) {
    const auto root = fmt::format("pci0000:00/0000:00:0{}.0", i + 1);
    const auto gpu = fmt::format("0000:0{}:00.0", i + 1);
    add_fake_pci(captured, bridge(root, fake_config(0)));
    add_fake_pci(captured, {.path = fmt::format("{}/{}", root, gpu),
                            .device = "0x2684",
                            .device_class = "0x030000",
                            .speed = "16.0 GT/s PCIe",
                            .numa = -1});
    add_fake_nvidia_gpu(captured, gpu, i, "NVIDIA GeForce RTX 4090");
    nvml.addresses.push_back(gpu);
  }
  answer_nvml(captured, fake_nvml(nvml));
  return captured;
}

CapturedMachine fake_mi300x() {
  auto captured = computer("mi300x");
  auto& files = captured.files;
  files["/sys/module/amdgpu/version"].text = "6.8.5\n";
  files["/dev/kfd"].size = 0;
  const std::string nodes = "/sys/class/kfd/kfd/topology/nodes/";
  files[nodes + "0/properties"].text = "cpu_cores_count 96\nsimd_count 0\nvendor_id 0\n";
  files[nodes + "0/gpu_id"].text = "0\n";
  for (int i = 0; i < 8; ++i) {
    const int bus = 0x05 + 0x20 * i;
    const auto root = fmt::format("pci0000:{:02x}/0000:{:02x}:01.1", bus - 5, bus - 5);
    add_fake_pci(captured, bridge(root, fake_config(0x1d)));
    add_fake_pci(captured, {.path = fmt::format("{}/0000:{:02x}:00.0", root, bus),
                            .vendor = "0x1002",
                            .device = "0x74a1",
                            .device_class = "0x120000",
                            .driver = "amdgpu",
                            .numa = i / 4,
                            .group = 10 + i});
    add_iommu_group(captured, 10 + i, "identity");
    const auto node = nodes + std::to_string(i + 1);
    files[node + "/gpu_id"].text = std::to_string(1000 + i) + "\n";
    files[node + "/properties"].text = fmt::format(
        "simd_count 1216\nvendor_id 4098\ndevice_id 29857\nlocation_id {}\ndomain 0\n"
        "drm_render_minor {}\nhive_id 7215837623456\n",
        bus << 8, 128 + 8 * i);
    files[fmt::format("/dev/dri/renderD{}", 128 + 8 * i)].size = 0;
  }
  return captured;
}

CapturedMachine fake_docker() {
  auto captured = fake_hgx_h100();
  captured.kernel_log = Unknown{Why::denied, "syslog the kernel log: Operation not permitted"};
  captured.files["/.dockerenv"].text = "";
  for (auto& [path, file] : captured.files) {
    if (path.ends_with("/config")) file.text.resize(64);
  }
  return captured;
}

CapturedMachine fake_wsl() {
  auto captured = computer("wsl");
  be_a_guest(captured);
  captured.release = "5.15.153.1-microsoft-standard-WSL2";
  captured.files["/usr/lib/wsl/lib/libcuda.so.1"].text = "\x7f\x45LF";
  captured.files["/dev/dxg"].size = 0;
  add_fake_pci(captured, {.path = "LNXSYSTM:00/VMBUS:00/pci8d43:00/8d43:00:00.0",
                          .vendor = "0x1414",
                          .device = "0x008e",
                          .device_class = "0x030200",
                          .driver = "dxgkrnl",
                          .width = 0,
                          .max_width = 0,
                          .speed = "Unknown"});
  return captured;
}

CapturedMachine fake_without_gpu() {
  auto captured = computer("plain");
  be_a_guest(captured);
  add_fake_pci(captured, {.path = "pci0000:00/0000:00:03.0",
                          .vendor = "0x1af4",
                          .device = "0x1000",
                          .device_class = "0x020000",
                          .driver = "virtio-pci",
                          .width = 0,
                          .max_width = 0,
                          .speed = "Unknown"});
  return captured;
}

}  // namespace distdoctor::testing
