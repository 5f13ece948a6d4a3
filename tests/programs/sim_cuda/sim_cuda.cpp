// SIMULATED libcuda.so.1 for tests: no GPU is behind it. Its memory is the host's, its streams
// count what others put on them, its copies take as long as the script says. Without the tests'
// marker (see sim_nccl/script.h) there is no device.
#include "sim_cuda.h"

#include "../sim_nccl/script.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>

#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace {

namespace sim = distdoctor::sim;

constexpr int kOk = 0;
constexpr int kOutOfMemory = 2;
constexpr int kNoDevice = 100;
constexpr int kInvalidDevice = 101;
constexpr int kInvalidContext = 201;
constexpr int kNotReady = 600;
constexpr int kSystemNotReady = 802;
constexpr double kCopyGbPerS = 40;  // slow enough to be measured, faster than an all-reduce

struct Stream {
  std::atomic<int> pending = 0;
};

std::atomic<int> current = -1;

// How many times longer its copies take; 0: it is not there.
double slowness(int device) {
  double times = 1;
  for (const sim::Fault& fault : sim::script()->faults) {
    if (fault.layer != "gpu" || fault.places.empty()) continue;
    const sim::Place& place = fault.places.front();
    const bool here = place.node == sim::own_node() && place.device == device;
    if (here && fault.ailment == "slow") times *= fault.times;
  }
  return times;
}

bool driver_fails() {
  for (const sim::Fault& fault : sim::script()->faults) {
    if (fault.layer != "driver") continue;
    if (fault.places.empty() || fault.places.front().node == sim::own_node()) return true;
  }
  return false;
}

}  // namespace

extern "C" {

int distdoctor_sim_device() {
  return current;
}
void distdoctor_sim_begin(void* stream) {
  ++static_cast<Stream*>(stream)->pending;
}
void distdoctor_sim_end(void* stream) {
  --static_cast<Stream*>(stream)->pending;
}

int cuGetErrorName(int error, const char** name) {
  *name = error == kNoDevice         ? "CUDA_ERROR_NO_DEVICE"
          : error == kInvalidDevice  ? "CUDA_ERROR_INVALID_DEVICE"
          : error == kSystemNotReady ? "CUDA_ERROR_SYSTEM_NOT_READY"
                                     : "CUDA_ERROR_UNKNOWN";
  return kOk;
}
int cuGetErrorString(int error, const char** text) {
  const bool marked = sim::script() != nullptr;
  *text = !marked                    ? "SIMULATED libcuda.so.1 of a test, without its marker"
          : error == kNoDevice       ? "no CUDA-capable device is detected (SIMULATED)"
          : error == kInvalidDevice  ? "invalid device ordinal (SIMULATED)"
          : error == kSystemNotReady ? "system not yet initialized (SIMULATED)"
                                     : "SIMULATED error";
  return kOk;
}
int cuInit(unsigned /*flags*/) {
  if (sim::script() == nullptr) return kNoDevice;
  return driver_fails() ? kSystemNotReady : kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  if (sim::script() == nullptr || ordinal < 0 || ordinal >= sim::script()->gpus) {
    return kInvalidDevice;
  }
  *device = ordinal;
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
  return kOk;
}
int cuCtxSetCurrent(void* context) {
  current = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  return kOk;
}
// Untouched pages cost nothing: 256 MiB a rank is no burden.
int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
  if (current < 0) return kInvalidContext;
  void* const room = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return kOutOfMemory;
  *memory = reinterpret_cast<std::uint64_t>(room);
  return kOk;
}
// The pages stay until the process ends, which is soon.
int cuMemFree_v2(std::uint64_t /*memory*/) {
  return kOk;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* /*stream*/) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return kOk;
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* /*stream*/) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return kOk;
}
int cuMemcpyDtoDAsync_v2(std::uint64_t /*to*/,
                         std::uint64_t /*from*/,
                         std::size_t bytes,
                         void* /*stream*/) {
  const double seconds = static_cast<double>(bytes) / 1e9 / kCopyGbPerS * slowness(current);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return kOk;
}
int cuStreamCreate(void** stream, unsigned /*flags*/) {
  if (current < 0) return kInvalidContext;
  *stream = new Stream;
  return kOk;
}
// Gives way: whoever asks in a loop would keep the other ranks from the processors that are to do
// the GPUs' work.
int cuStreamQuery(void* stream) {
  if (static_cast<Stream*>(stream)->pending == 0) return kOk;
  std::this_thread::sleep_for(std::chrono::microseconds(50));
  return kNotReady;
}
int cuStreamSynchronize(void* stream) {
  while (cuStreamQuery(stream) != kOk) continue;
  return kOk;
}

}  // extern "C"
