// The little of NCCL (nccl.h 2.14 and later; RCCL has the same ABI) that a tiny all-reduce needs.
#pragma once

#include "base/error.h"
#include "workers/vendor/cuda.h"
#include "workers/vendor/shared_library.h"

#include <array>
#include <cstddef>
#include <string>

namespace distdoctor::vendor {

inline constexpr int kNcclSuccess = 0;
inline constexpr int kNcclInProgress = 7;  // of a communicator that does not block

// ncclUniqueId: passed by value, so its size is its ABI.
struct NcclUniqueId {
  std::array<char, 128> internal;
};
// ncclConfig_t as 2.14 had it: later libraries take a shorter one for what it is, by size and
// version (init.cc parseCommConfig).
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};
using NcclComm = struct NcclCommOpaque*;

class NcclLibrary {
 public:
  static Result<NcclLibrary> load(const std::string& name);

  [[nodiscard]] Result<NcclUniqueId> unique_id() const;
  [[nodiscard]] int version() const;  // 22809
  // These may answer kNcclInProgress; then `state` tells when it has ended.
  [[nodiscard]] int init(NcclComm* comm, int size, const NcclUniqueId& id, int rank) const;
  [[nodiscard]] int sum(CudaMemory data, std::size_t count, NcclComm comm, CudaStream stream) const;
  [[nodiscard]] int finalize(NcclComm comm) const { return finalize_(comm); }
  [[nodiscard]] int state(NcclComm comm) const;
  void destroy(NcclComm comm) const { destroy_(comm); }
  void abort(NcclComm comm) const { abort_(comm); }
  // With the last warning of the library, where it keeps one.
  [[nodiscard]] Result<void> answer(int code, NcclComm comm, std::string_view call) const;

 private:
  explicit NcclLibrary(SharedLibrary library) : library_(std::move(library)) {}
  Result<void> find_all();

  SharedLibrary library_;
  int (*version_)(int*) = nullptr;
  int (*unique_id_)(NcclUniqueId*) = nullptr;
  int (*init_)(NcclComm*, int, NcclUniqueId, int, NcclConfig*) = nullptr;
  int (*state_)(NcclComm, int*) = nullptr;
  int (*all_reduce_)(CudaMemory, CudaMemory, std::size_t, int, int, NcclComm, CudaStream) = nullptr;
  int (*finalize_)(NcclComm) = nullptr;
  int (*destroy_)(NcclComm) = nullptr;
  int (*abort_)(NcclComm) = nullptr;
  const char* (*error_text_)(int) = nullptr;
  const char* (*last_error_)(NcclComm) = nullptr;
};

}  // namespace distdoctor::vendor
