// SIMULATED libnccl.so.2 for tests: ranks are real processes that meet over real sockets, share
// real segments in /dev/shm and add up real numbers; the GPUs and the ways between them are
// pretended, and break as the file named by DISTDOCTOR_SIM_GPUS says (script.h). Without that
// variable every call is refused, so that nobody takes it for NCCL.
#include "../sim_cuda/sim_cuda.h"
#include "communicator.h"
#include "script.h"

#include <array>
#include <cstring>
#include <string>

#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace {

namespace sim = distdoctor::sim;
using sim::Communicator;

constexpr const char* kRefusal = "SIMULATED libnccl.so.2 of a test, without its marker";
constexpr int kVersion = 22809;

struct UniqueId {
  std::array<char, 128> internal;
};
static_assert(sizeof(sim::RootAddress) <= sizeof(UniqueId));

bool marked() {
  return sim::script() != nullptr;
}
Communicator* of(void* comm) {
  return static_cast<Communicator*>(comm);
}
int ended(void* comm) {
  delete of(comm);
  return sim::kSuccess;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = kVersion;
  return marked() ? sim::kSuccess : sim::kInternalError;
}
int ncclGetUniqueId(UniqueId* id) {
  if (!marked()) return sim::kInternalError;
  sim::RootAddress root;
  if (!sim::serve_root(root)) return sim::kInvalidUsage;
  *id = {};
  std::memcpy(id->internal.data(), &root, sizeof root);
  return sim::kSuccess;
}
int ncclCommInitRankConfig(void** comm, int size, UniqueId id, int rank, void* /*config*/) {
  if (!marked()) return sim::kInternalError;
  const int device = distdoctor_sim_device();
  if (rank < 0 || rank >= size || device < 0) return sim::kInvalidArgument;
  sim::RootAddress root;
  std::memcpy(&root, id.internal.data(), sizeof root);
  *comm = new Communicator(root, size, rank, device);
  return sim::kInProgress;
}
int ncclCommGetAsyncError(void* comm, int* state) {
  *state = of(comm)->state();
  return sim::kSuccess;
}
int ncclAllReduce(const void* from,
                  void* into,
                  std::size_t count,
                  int type,
                  int operation,
                  void* comm,
                  void* stream) {
  constexpr int kUint64 = 5;
  if (!marked()) return sim::kInternalError;
  if (from != into || type != kUint64 || operation != 0) return sim::kInvalidArgument;
  distdoctor_sim_begin(stream);
  of(comm)->sum({static_cast<std::uint64_t*>(into), count},
                [stream] { distdoctor_sim_end(stream); });
  return sim::kSuccess;
}
int ncclCommFinalize(void* /*comm*/) {
  return sim::kSuccess;
}
int ncclCommDestroy(void* comm) {
  return ended(comm);
}
int ncclCommAbort(void* comm) {
  return ended(comm);
}
const char* ncclGetErrorString(int code) {
  switch (code) {
    case sim::kSuccess:
      return "no error";
    case sim::kUnhandledCuda:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case sim::kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case sim::kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case sim::kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case sim::kRemoteError:
      return "remote process exited or there was a network error";
    case sim::kInProgress:
      return "NCCL operation in progress";
    default:
      return "internal error - please report this issue to the NCCL developers";
  }
}
const char* ncclGetLastError(void* comm) {
  static thread_local std::string words;
  words = !marked() ? kRefusal : comm == nullptr ? "" : of(comm)->last_error();
  return words.c_str();
}

}  // extern "C"
