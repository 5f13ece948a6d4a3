// SIMULATED libnvidia-ml.so.1 for tests: no GPU is behind it. DISTDOCTOR_SIM_NVML names a text file
// with what it answers; without that variable it ends the program that loads it, so that nobody
// takes it for a driver. Lines:
//
//   gpus 8                  how many (default 2)
//   init 18                 nvmlInit_v2 answers this
//   hang | crash            so does nvmlInit_v2
//   stride 32               an entry of the list of processes is so many bytes long (default 24)
//   gpu N|* KEY NUMBER      an answer of one GPU or of all; the keys stand where they are used
//
// SIM_NVML_OLD: as a library of 2018, without the newer functions.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace {

constexpr int kOk = 0;
constexpr int kInvalid = 2;
constexpr int kNotSupported = 3;

struct Script {
  unsigned gpus = 2;
  int init = kOk;
  bool hang = false;
  bool crash = false;
  unsigned stride = 24;
  std::map<std::string, std::uint64_t> of_gpus;  // "3 ecc", "* ecc"
};

Script read_script(const char* path) {
  Script script;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "gpus") words >> script.gpus;
    if (what == "init") words >> script.init;
    if (what == "hang") script.hang = true;
    if (what == "crash") script.crash = true;
    if (what == "stride") words >> script.stride;
    std::string which;
    std::string key;
    if (what == "gpu") words >> which >> key >> script.of_gpus[which + " " + key];
  }
  return script;
}

const Script& script() {
  static const Script kScript = read_script(std::getenv("DISTDOCTOR_SIM_NVML"));
  return kScript;
}

__attribute__((constructor)) void refuse_without_marker() {
  if (std::getenv("DISTDOCTOR_SIM_NVML") != nullptr) return;
  std::fputs("a simulated libnvidia-ml.so.1 of a test was loaded\n", stderr);
  ::_exit(97);
}

// A handle is the index and one.
unsigned index_of(void* device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

bool has(unsigned index, const char* key, std::uint64_t& value) {
  const auto& all = script().of_gpus;
  for (const auto& who : {std::to_string(index), std::string("*")}) {
    const auto found = all.find(who + " " + key);
    if (found == all.end()) continue;
    value = found->second;
    return true;
  }
  return false;
}

template <class T>
int answer(void* device, const char* key, T& into) {
  std::uint64_t value = 0;
  if (!has(index_of(device), key, value)) return kNotSupported;
  into = static_cast<T>(value);
  return kOk;
}

int put_text(char* into, unsigned size, const std::string& text) {
  std::strncpy(into, text.c_str(), size - 1);
  into[size - 1] = '\0';
  return kOk;
}

struct Pci {
  char legacy[16];
  unsigned domain, bus, device, id, subsystem;
  char bus_id[32];
};

void put_pci(unsigned index, Pci& pci) {
  pci = {};
  pci.bus = 0x10 + 0x10 * index;
  std::snprintf(pci.bus_id, sizeof pci.bus_id, "%08X:%02X:00.0", 0U, pci.bus);
}

}  // namespace

extern "C" {

int nvmlInit_v2() {
  while (script().hang) ::pause();
  if (script().crash) ::raise(SIGSEGV);
  return script().init;
}
int nvmlShutdown() {
  return kOk;
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return put_text(text, size, "550.54.15-SIMULATED");
}
int nvmlSystemGetCudaDriverVersion(int* version) {
  *version = 12040;
  return kOk;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = script().gpus;
  return kOk;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  std::uint64_t error = 0;
  if (has(index, "error", error)) return static_cast<int>(error);
  *device = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return kOk;
}
int nvmlDeviceGetName(void* /*device*/, char* text, unsigned size) {
  return put_text(text, size, "SIMULATED H100");
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  return put_text(text, size, "GPU-SIMULATED-" + std::to_string(index_of(device)));
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  put_pci(index_of(device), *pci);
  return kOk;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *minor = 0;
  return answer(device, "capability", *major);
}
int nvmlDeviceGetComputeMode(void* device, int* mode) {
  return answer(device, "compute_mode", *mode);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, std::uint64_t* reasons) {
  // `briefly`: at the first look only.
  static std::map<unsigned, int> looks;
  std::uint64_t bits = 0;
  answer(device, "throttle", bits);
  std::uint64_t brief = 0;
  if (looks[index_of(device)]++ == 0) answer(device, "briefly", brief);
  *reasons = bits | brief;
  return kOk;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* percent) {
  percent[1] = 3;
  return answer(device, "busy", percent[0]);
}
int nvmlDeviceGetPerformanceState(void* device, int* state) {
  return answer(device, "state", *state);
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, std::uint64_t* count) {
  if (kind != 1) return kInvalid;
  return answer(device, counter == 0 ? "ecc" : "ecc_ever", *count);
}
int nvmlDeviceGetRetiredPagesPendingStatus(void* device, int* pending) {
  return answer(device, "retire_pending", *pending);
}
int nvmlDeviceGetTemperature(void* device, int /*sensor*/, unsigned* degrees) {
  std::uint64_t error = 0;
  if (has(index_of(device), "lost_later", error)) return static_cast<int>(error);
  return answer(device, "temperature", *degrees);
}
int nvmlDeviceGetMemoryInfo(void* device, std::uint64_t* memory) {
  memory[0] = 80;
  memory[1] = 70;
  return answer(device, "memory_used", memory[2]);
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, int* active) {
  unsigned links = 0;
  unsigned on = 0;
  if (answer(device, "links", links) != kOk) return kNotSupported;
  if (link >= links) return kInvalid;
  if (answer(device, "links_active", on) != kOk) on = links;
  *active = link < on ? 1 : 0;
  return kOk;
}
int nvmlDeviceGetP2PStatus(void* a, void* /*b*/, int index, int* status) {
  return answer(a, index == 2 ? "p2p_nvlink" : index == 0 ? "p2p_read" : "p2p_write", *status);
}
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* /*b*/, int* level) {
  return answer(a, "level", *level);
}

#ifndef SIM_NVML_OLD
int nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return nvmlSystemGetCudaDriverVersion(version);
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* next) {
  *next = 0;
  return answer(device, "mig", *now);
}
int nvmlDeviceGetRemappedRows(
    void* device, unsigned* correctable, unsigned* others, unsigned* pending, unsigned* failed) {
  *correctable = *others = 0;
  if (answer(device, "remap_failed", *failed) != kOk) *failed = 0;
  return answer(device, "remap_pending", *pending);
}
struct Fabric {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};
int nvmlDeviceGetGpuFabricInfoV(void* device, Fabric* fabric) {
  if (fabric->version != (sizeof(Fabric) | 2U << 24U)) return 25;  // argument version mismatch
  if (answer(device, "fabric_status", fabric->status) != kOk) fabric->status = kOk;
  unsigned char cluster = 0;
  answer(device, "cluster", cluster);
  fabric->cluster[15] = cluster;
  return answer(device, "fabric", fabric->state);
}
int nvmlDeviceGetMemoryInfo_v2(void* device, std::uint64_t* memory) {
  if (static_cast<std::uint32_t>(memory[0]) != (40U | 2U << 24U)) return 25;
  memory[1] = 80;
  return answer(device, "memory_used", memory[4]);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* /*device*/, unsigned /*link*/, Pci* pci) {
  put_pci(0xc0, *pci);  // an NVSwitch
  return kOk;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, unsigned char* entries) {
  std::uint64_t pid = 0;
  if (!has(index_of(device), "pid", pid)) pid = 0;
  const unsigned most = *count;
  *count = pid != 0 ? 2 : 0;
  if (most < *count) return 7;  // insufficient size
  for (unsigned i = 0; i < *count; ++i) {
    unsigned char* const entry = entries + std::size_t{i} * script().stride;
    std::memset(entry, 0, script().stride);
    const auto number = static_cast<unsigned>(pid) + i;
    const std::uint64_t memory = 1000 + i;
    std::memcpy(entry, &number, sizeof number);
    std::memcpy(entry + 8, &memory, sizeof memory);
  }
  return kOk;
}
#endif

}  // extern "C"
