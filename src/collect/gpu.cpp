#include "collect/gpu.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "collect/libraries.h"
#include "collect/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kNvidia = "/proc/driver/nvidia";
constexpr std::string_view kKfdNodes = "/sys/class/kfd/kfd/topology/nodes";
constexpr std::uint64_t kAmdVendor = 0x1002;

bool has_folder(const machine::FileTree& files, const std::string& folder) {
  return files.list(folder).has_value();
}

template <class Value>
Value value_or(const std::map<std::string, Value>& values, const std::string& name, Value other) {
  const auto found = values.find(name);
  return found == values.end() ? other : found->second;
}

// A device is not opened for that: opening /dev/nvidiaN initialises the GPU.
void see_device_node(const machine::FileTree& files, Gpu& gpu) {
  if (gpu.device_node.empty()) return;
  gpu.node_there = files.info(gpu.device_node).has_value();
  gpu.node_usable = gpu.node_there && files.may_use(gpu.device_node).has_value();
}

// --- NVIDIA ---

Gpu nvidia_gpu(const machine::FileTree& files, const std::string& address) {
  const auto path = std::string(kNvidia) + "/gpus/" + address + "/information";
  const auto rows = parse_information(files.read(path).value_or(""));
  Gpu gpu{.pci = address,
          .vendor = GpuVendor::nvidia,
          .model = value_or<std::string>(rows, "Model", ""),
          .uuid = value_or<std::string>(rows, "GPU UUID", ""),
          .minor = parse_int<int>(value_or<std::string>(rows, "Device Minor", ""))};
  if (gpu.uuid.find('?') != std::string::npos) gpu.uuid.clear();  // not initialised yet
  if (gpu.minor) gpu.device_node = "/dev/nvidia" + std::to_string(*gpu.minor);
  see_device_node(files, gpu);
  return gpu;
}

NvidiaModule nvidia_module(const machine::FileTree& files) {
  const auto text = files.read(std::string(kNvidia) + "/version").value_or("");
  if (auto module = parse_nvidia_version(text)) return *std::move(module);
  return {.version = files.word("/sys/module/nvidia/version")};
}

// A compatibility library (cuda-compat) is newer than the module on purpose, and a stub for linking
// has no version.
std::string nvidia_library(const machine::Machine& machine, const JobPlaces& said) {
  constexpr std::string_view kName = "libcuda.so.1";
  for (const auto& file : find_library(machine, kName, said)) {
    const auto version = version_after(file.path, kName);
    const bool driver = parse_int<int>(split(version, '.').front()).value_or(0) >= 100;
    if (driver && file.path.find("compat") == std::string::npos) return version;
  }
  return "";
}

// nv_peer_mem is its older name; either registers itself with the RDMA stack.
bool has_peermem(const machine::FileTree& files) {
  return has_folder(files, "/sys/module/nvidia_peermem") ||
         has_folder(files, "/sys/module/nv_peer_mem") ||
         !files.word("/sys/kernel/mm/memory_peers/nv_mem/version").empty() ||
         !files.word("/sys/kernel/mm/memory_peers/nv_mem_nc/version").empty();
}

void read_nvidia(const machine::Machine& machine, const JobPlaces& said, GpuFacts& facts) {
  const auto& files = machine.files();
  auto module = nvidia_module(files);
  facts.nvidia_driver = std::move(module.version);
  facts.nvidia_open = module.open;
  facts.nvidia_library = nvidia_library(machine, said);
  facts.peermem = has_peermem(files);
  facts.control_node = files.info("/dev/nvidiactl").has_value();
  facts.uvm_node = files.info("/dev/nvidia-uvm").has_value();
  for (const auto& name : files.names(std::string(kNvidia) + "/gpus")) {
    if (is_pci_address(name)) facts.gpus.push_back(nvidia_gpu(files, name));
  }
}

// --- AMD ---

// Programs need the GPU's render node and /dev/kfd, which all GPUs share.
std::optional<Gpu> amd_gpu(const machine::FileTree& files, const std::string& folder) {
  const auto values = parse_kfd_properties(files.read(folder + "/properties").value_or(""));
  const auto number = [&](const char* name) { return value_or<std::uint64_t>(values, name, 0); };
  if (number("vendor_id") != kAmdVendor || number("simd_count") == 0) return std::nullopt;
  Gpu gpu{.pci = kfd_pci_address(number("domain"), number("location_id")),
          .vendor = GpuVendor::amd};
  gpu.model = files.word("/sys/bus/pci/devices/" + gpu.pci + "/product_name");
  if (const auto minor = number("drm_render_minor"); minor >= 128 && minor < 4096) {
    gpu.minor = static_cast<int>(minor);
    gpu.device_node = fmt::format("/dev/dri/renderD{}", minor);
  }
  if (const auto hive = number("hive_id"); hive != 0) gpu.xgmi_hive = fmt::format("{:x}", hive);
  see_device_node(files, gpu);
  gpu.node_usable = gpu.node_usable && files.may_use("/dev/kfd").has_value();
  return gpu;
}

void read_amd(const machine::Machine& machine, GpuFacts& facts) {
  const auto& files = machine.files();
  if (!has_folder(files, "/sys/module/amdgpu")) return;
  const auto version = files.word("/sys/module/amdgpu/version");
  facts.amd_driver = version.empty() ? "in kernel " + machine.self().release : version;
  for (const auto& name : files.names(kKfdNodes)) {
    if (auto gpu = amd_gpu(files, std::string(kKfdNodes) + "/" + name)) {
      facts.gpus.push_back(*std::move(gpu));
    }
  }
}

}  // namespace

std::optional<NvidiaModule> parse_nvidia_version(std::string_view text) {
  constexpr std::string_view kKind = "Kernel Module";
  const auto lines = split_lines(text);
  if (lines.empty() || !lines.front().starts_with("NVRM version:")) return std::nullopt;
  const auto line = lines.front();
  const auto kind = line.find(kKind);
  if (kind == std::string_view::npos) return std::nullopt;
  for (const auto word : split_words(line.substr(kind + kKind.size()))) {
    const bool numbers = word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (!numbers || word.find('.') == std::string_view::npos) continue;
    return NvidiaModule{.version = std::string(word),
                        .open = line.substr(0, kind).ends_with("Open ")};
  }
  return std::nullopt;
}

std::map<std::string, std::string> parse_information(std::string_view text) {
  std::map<std::string, std::string> rows;
  for (const auto line : split_lines(text)) {
    const auto parts = split(line, ':', 2);
    if (parts.size() == 2) rows.emplace(trim(parts[0]), trim(parts[1]));
  }
  return rows;
}

std::map<std::string, std::uint64_t> parse_kfd_properties(std::string_view text) {
  std::map<std::string, std::uint64_t> values;
  for (const auto line : split_lines(text)) {
    const auto words = split_words(line);
    const auto value = words.size() == 2 ? parse_int<std::uint64_t>(words[1]) : std::nullopt;
    if (value) values.emplace(words[0], *value);
  }
  return values;
}

std::string kfd_pci_address(std::uint64_t domain, std::uint64_t location) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", domain & 0xffffffffU, location >> 8U & 0xffU,
                     location >> 3U & 0x1fU, location & 7U);
}

void collect_gpu(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  GpuFacts facts;
  read_nvidia(machine, request.settings, facts);
  read_amd(machine, facts);
  std::ranges::sort(facts.gpus, {}, &Gpu::pci);
  node.gpu = std::move(facts);
}

}  // namespace distdoctor::collect
