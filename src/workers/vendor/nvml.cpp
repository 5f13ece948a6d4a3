// `vendor nvml`: what the management library tells of the GPUs, as facts. No CUDA context is made,
// so no GPU memory is taken. A GPU that cannot be read leaves the others alone.
#include <distdoctor/facts/nvml.h>

#include "codec/write.h"
#include "workers/vendor/nvml_library.h"
#include "workers/vendor/verb.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::vendor {
namespace {

using namespace nvml;  // NOLINT(google-build-using-namespace): the library's own vocabulary

// --- asking ---

template <class... Parameters, class... Arguments>
Return ask(Return (*function)(Parameters...), Arguments... arguments) {
  return function == nullptr ? kFunctionNotFound : function(arguments...);
}

template <class T>
std::optional<T> value(Return (*function)(Device, T*), Device device) {
  T answer{};
  return ask(function, device, &answer) == kSuccess ? std::optional(answer) : std::nullopt;
}

template <std::size_t Size>
std::string text_of(const std::array<char, Size>& text) {
  return {text.data(), ::strnlen(text.data(), Size)};
}

std::string text(Return (*function)(Device, char*, Count), Device device) {
  std::array<char, kDeviceText> answer{};
  return ask(function, device, answer.data(), Count{kDeviceText}) == kSuccess ? text_of(answer)
                                                                              : "";
}

// --- clocks ---

struct Reason {
  std::uint64_t bit;  // nvmlClocksEventReasons
  std::string_view words;
};
// Without 0x1, nothing to do, and 0x2 and 0x100, clocks that somebody asked for.
constexpr std::array kReasons = std::to_array<Reason>({{0x4, "sw power cap"},
                                                       {0x8, "hw slowdown"},
                                                       {0x10, "sync boost"},
                                                       {0x20, "sw thermal"},
                                                       {0x40, "hw thermal"},
                                                       {0x80, "hw power brake"}});

std::vector<std::string> words_of_reasons(std::uint64_t bits) {
  std::vector<std::string> words;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) words.emplace_back(reason.words);
  }
  return words;
}

// --- fabric ---

constexpr std::array<std::string_view, 4> kFabricStates = {"not supported", "not started",
                                                           "in progress", "completed"};

template <class Info>
void take_fabric(const Info& info, NvmlGpu& gpu) {
  if (info.state >= kFabricStates.size()) return;
  gpu.fabric_state = kFabricStates.at(info.state);
  if (gpu.fabric_state != "completed") return;
  gpu.fabric_status = words_of(info.status);
  const bool none = std::ranges::all_of(info.cluster, [](unsigned char byte) { return byte == 0; });
  if (none) return;
  for (const unsigned char byte : info.cluster) gpu.fabric_cluster += fmt::format("{:02x}", byte);
  gpu.fabric_cluster += fmt::format(".{}", info.clique);
}

void read_fabric(const Library& library, Device device, NvmlGpu& gpu) {
  FabricInfoV2 newer{};
  newer.version = struct_version<FabricInfoV2>(2);
  FabricInfo older{};
  Return code = ask(library.fabric_v, device, &newer);
  if (code == kSuccess) return take_fabric(newer, gpu);
  code = ask(library.fabric, device, &older);
  if (code == kSuccess) take_fabric(older, gpu);
  if (code == kNotSupported) gpu.fabric_state = kFabricStates.front();
}

// --- one GPU ---

void read_memory(const Library& library, Device device, NvmlGpu& gpu) {
  MemoryV2 newer{};
  newer.version = struct_version<MemoryV2>(2);
  if (ask(library.memory_v2, device, &newer) == kSuccess) {
    gpu.memory_bytes = static_cast<std::int64_t>(newer.total);
    gpu.memory_used_bytes = static_cast<std::int64_t>(newer.used);
  } else if (const auto older = value(library.memory, device)) {
    gpu.memory_bytes = static_cast<std::int64_t>(older->total);
    gpu.memory_used_bytes = static_cast<std::int64_t>(older->used);
  }
}

// MIG and vGPU tell no use of the whole GPU.
void read_load(const Library& library, Device device, NvmlGpu& gpu) {
  constexpr unsigned kMost = 100;
  const auto use = value(library.utilization, device);
  if (use && use->gpu <= kMost) gpu.busy_percent = static_cast<int>(use->gpu);
  const auto state = value(library.performance_state, device);
  if (state && *state >= 0 && *state <= kSlowestState) gpu.performance_state = state;
}

void read_errors(const Library& library, Device device, NvmlGpu& gpu) {
  constexpr int kUncorrected = 1;  // nvmlMemoryErrorType_t
  constexpr int kVolatile = 0;     // nvmlEccCounterType_t
  constexpr int kAggregate = 1;
  std::uint64_t count = 0;
  if (ask(library.total_ecc, device, kUncorrected, kVolatile, &count) == kSuccess) {
    gpu.ecc_uncorrected = static_cast<std::int64_t>(count);
  }
  if (ask(library.total_ecc, device, kUncorrected, kAggregate, &count) == kSuccess) {
    gpu.ecc_uncorrected_ever = static_cast<std::int64_t>(count);
  }
  std::array<unsigned, 4> rows{};  // after correctable errors, after others, pending, failed
  if (ask(library.remapped_rows, device, &rows[0], &rows[1], &rows[2], &rows[3]) == kSuccess) {
    gpu.remap_pending = rows[2] != 0;
    gpu.remap_failed = rows[3] != 0;
  }
  if (const auto pending = value(library.retired_pending, device)) {
    gpu.retire_pending = *pending != 0;
  }
}

void read_links(const Library& library, Device device, NvmlGpu& gpu) {
  for (unsigned link = 0; link < kMostLinks; ++link) {
    Enabled active = 0;
    if (ask(library.link_state, device, link, &active) != kSuccess) break;
    ++gpu.nvlinks;
    if (active != 0) ++gpu.nvlinks_active;
  }
}

// Entries of 24 or, from some drivers, 32 bytes: which ones, the untouched end of the space shows.
std::vector<NvmlProcess> processes(const Library& library, Device device) {
  constexpr std::size_t kMost = 256;
  constexpr std::size_t kLonger = 32;
  constexpr unsigned char kUntouched = 0xa5;
  std::vector<unsigned char> space(kMost * kLonger, kUntouched);
  Count count = kMost;
  if (ask(library.processes, device, &count, static_cast<void*>(space.data())) != kSuccess) {
    return {};
  }
  count = std::min(count, Count{kMost});
  const auto behind = std::span(space).first(count * kLonger).subspan(count * sizeof(ProcessInfo));
  const bool longer =
      std::ranges::any_of(behind, [](unsigned char byte) { return byte != kUntouched; });
  std::vector<NvmlProcess> found;
  for (Count i = 0; i < count; ++i) {
    ProcessInfo info{};
    std::memcpy(&info, space.data() + i * (longer ? kLonger : sizeof info), sizeof info);
    const bool known = info.memory != ~std::uint64_t{0};  // not so under WDDM, and with MIG
    found.push_back({.pid = static_cast<int>(info.pid),
                     .memory_bytes = known ? static_cast<std::int64_t>(info.memory) : 0});
  }
  return found;
}

// "0000:1b:00.0" as Linux writes it; the library has eight digits of domain, in capitals.
std::string address_of(const PciInfo& info) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", info.domain, info.bus, info.device);
}

constexpr std::array<std::string_view, 4> kComputeModes = {"default", "exclusive thread",
                                                           "prohibited", "exclusive process"};

void read_gpu(const Library& library, Device device, NvmlGpu& gpu) {
  gpu.uuid = text(library.uuid, device);
  gpu.name = text(library.name, device);
  int major = 0;
  int minor = 0;
  if (ask(library.capability, device, &major, &minor) == kSuccess) {
    gpu.capability = fmt::format("{}.{}", major, minor);
  }
  const auto mode = value(library.compute_mode, device);
  if (mode && *mode >= 0 && static_cast<std::size_t>(*mode) < kComputeModes.size()) {
    gpu.compute_mode = kComputeModes.at(static_cast<std::size_t>(*mode));
  }
  unsigned now = 0;
  unsigned next = 0;
  if (ask(library.mig_mode, device, &now, &next) == kSuccess) gpu.mig = now != 0;
  read_load(library, device, gpu);
  read_errors(library, device, gpu);
  read_fabric(library, device, gpu);
  read_links(library, device, gpu);
  unsigned degrees = 0;
  if (ask(library.temperature, device, 0, &degrees) == kSuccess) {
    gpu.temperature_c = static_cast<int>(degrees);
  }
  read_memory(library, device, gpu);
  gpu.processes = processes(library, device);
}

// --- two GPUs ---

constexpr std::array<std::string_view, 7> kP2pStatus = {"ok",
                                                        "chipset not supported",
                                                        "GPU not supported",
                                                        "topology not supported",
                                                        "disabled by regkey",
                                                        "not supported",
                                                        "unknown"};

struct Opened {
  Device device;
  NvmlGpu* gpu;
};

std::string p2p_status(const Library& library, const Opened& a, const Opened& b, int index) {
  int status = 0;
  if (ask(library.p2p_status, a.device, b.device, index, &status) != kSuccess) return "";
  const bool known = status >= 0 && static_cast<std::size_t>(status) < kP2pStatus.size();
  return std::string(known ? kP2pStatus.at(static_cast<std::size_t>(status)) : kP2pStatus.back());
}

// Links of `a` that lead to `b`, or to what is no GPU of this node: a switch.
int links_between(const Library& library, const Opened& a, const Opened& b) {
  int direct = 0;
  for (int link = 0; link < a.gpu->nvlinks; ++link) {
    PciInfo remote{};
    const auto number = static_cast<unsigned>(link);
    if (ask(library.link_remote_pci, a.device, number, &remote) != kSuccess) continue;
    if (address_of(remote) == b.gpu->pci) ++direct;
  }
  return direct > 0 ? direct : std::min(a.gpu->nvlinks_active, b.gpu->nvlinks_active);
}

std::string path_between(const Library& library, const Opened& a, const Opened& b) {
  constexpr int kOverNvlink = 2;  // nvmlGpuP2PCapsIndex_t
  if (p2p_status(library, a, b, kOverNvlink) == "ok") {
    if (const int links = links_between(library, a, b); links > 0)
      return fmt::format("NV{}", links);
  }
  constexpr std::array<std::string_view, 6> kLevels = {"PIX", "PIX", "PXB", "PHB", "NODE", "SYS"};
  int level = 0;  // nvmlGpuTopologyLevel_t: 0, 10, ... 50
  if (ask(library.common_ancestor, a.device, b.device, &level) != kSuccess) return "";
  const auto place = static_cast<std::size_t>(std::max(level, 0) / 10);
  return place < kLevels.size() ? std::string(kLevels.at(place)) : "";
}

void read_pairs(const Library& library, const std::vector<Opened>& opened, Nvml& facts) {
  constexpr int kRead = 0;
  constexpr int kWrite = 1;
  for (std::size_t i = 0; i < opened.size(); ++i) {
    for (std::size_t j = i + 1; j < opened.size(); ++j) {
      const Opened& a = opened[i];
      const Opened& b = opened[j];
      facts.pairs.push_back({.a = a.gpu->index,
                             .b = b.gpu->index,
                             .p2p_read = p2p_status(library, a, b, kRead),
                             .p2p_write = p2p_status(library, a, b, kWrite),
                             .path = path_between(library, a, b)});
    }
  }
}

// --- all of it ---

std::optional<Opened> open_gpu(const Library& library, NvmlGpu& gpu) {
  Device device = nullptr;
  Return code = ask(library.device_by_index, static_cast<Count>(gpu.index), &device);
  PciInfo pci{};
  if (code == kSuccess) code = ask(library.pci, device, &pci);
  if (code == kSuccess) gpu.pci = address_of(pci);
  if (code != kSuccess && code != kFunctionNotFound) {
    gpu.error = words_of(code);
    return std::nullopt;
  }
  // The bus address may be known from before; the temperature is asked of the GPU itself.
  unsigned degrees = 0;
  code = ask(library.temperature, device, 0, &degrees);
  if (code == kGpuLost || code == kResetRequired) {
    gpu.error = words_of(code);
    return std::nullopt;
  }
  return Opened{device, &gpu};
}

void read_gpus(const Library& library, Nvml& facts) {
  Count count = 0;
  if (ask(library.device_count, &count) != kSuccess) return;
  for (Count i = 0; i < count; ++i) facts.gpus.push_back({.index = static_cast<int>(i)});
  std::vector<Opened> opened;
  for (NvmlGpu& gpu : facts.gpus) {
    if (const auto one = open_gpu(library, gpu)) opened.push_back(*one);
  }
  std::vector<std::uint64_t> before;
  for (const Opened& one : opened) {
    before.push_back(value(library.clocks_reasons, one.device).value_or(0));
  }
  for (const Opened& one : opened) read_gpu(library, one.device, *one.gpu);
  read_pairs(library, opened, facts);
  // What holds the clocks down for an instant is no trouble: it has to be there at the end, too.
  for (std::size_t i = 0; i < opened.size(); ++i) {
    const auto after = value(library.clocks_reasons, opened[i].device).value_or(0);
    opened[i].gpu->throttle = words_of_reasons(before[i] & after);
  }
}

std::string driver_version(const Library& library) {
  std::array<char, kVersionText> answer{};
  return ask(library.driver_version, answer.data(), Count{kVersionText}) == kSuccess
             ? text_of(answer)
             : "";
}

std::string cuda_version(const Library& library) {
  int number = 0;  // 12040
  if (ask(library.cuda_version, &number) != kSuccess || number <= 0) return "";
  return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

Nvml read_all() {
  const Library library = open_library();
  Nvml facts{.library = library.path};
  if (!library.error.empty()) {
    facts.error = library.error;
    facts.error_code = kLibraryNotFound;
    return facts;
  }
  const Return code = ask(library.init);
  if (code != kSuccess) {
    facts.error = words_of(code);
    facts.error_code = code;
    return facts;
  }
  facts.driver = driver_version(library);
  facts.cuda = cuda_version(library);
  read_gpus(library, facts);
  ask(library.shutdown);
  return facts;
}

}  // namespace

int nvml_facts(Arguments /*arguments*/) {
  std::puts(codec::write_json(read_all()).c_str());
  return 0;
}

}  // namespace distdoctor::vendor
