// The little of the CUDA driver API (cuda.h, 12.x; unchanged since 4.0) that a tiny all-reduce
// needs, from libcuda.so.1.
#pragma once

#include "base/error.h"
#include "workers/vendor/shared_library.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace distdoctor::vendor {

using CudaStream = struct CudaStreamOpaque*;
using CudaContext = struct CudaContextOpaque*;
using CudaMemory = std::uint64_t;  // CUdeviceptr

class Cuda {
 public:
  static Result<Cuda> load();
  // Makes the primary context of that GPU, among those that CUDA_VISIBLE_DEVICES shows, ours.
  Result<void> take_device(int ordinal);
  Result<CudaMemory> reserve(std::size_t bytes);
  void release(CudaMemory memory) { free_(memory); }
  // All copies go over our stream, in the order of what else was given to it, and are waited for.
  Result<void> write(CudaMemory to, const void* from, std::size_t bytes);
  Result<void> read(void* to, CudaMemory from, std::size_t bytes);
  Result<void> copy(CudaMemory to, CudaMemory from, std::size_t bytes);  // on our stream
  // Whether all that was given to our stream is done.
  Result<bool> idle();
  Result<void> wait();
  [[nodiscard]] CudaStream stream() const { return stream_; }

 private:
  explicit Cuda(SharedLibrary library) : library_(std::move(library)) {}
  Result<void> find_all();
  [[nodiscard]] Result<void> answer(int code, std::string_view call) const;

  SharedLibrary library_;
  CudaStream stream_ = nullptr;

  using ErrorText = int(int, const char**);
  ErrorText* error_name_ = nullptr;
  ErrorText* error_text_ = nullptr;
  int (*init_)(unsigned) = nullptr;
  int (*device_get_)(int*, int) = nullptr;
  int (*context_retain_)(CudaContext*, int) = nullptr;
  int (*context_set_)(CudaContext) = nullptr;
  int (*allocate_)(CudaMemory*, std::size_t) = nullptr;
  int (*free_)(CudaMemory) = nullptr;
  int (*to_device_)(CudaMemory, const void*, std::size_t, CudaStream) = nullptr;
  int (*to_host_)(void*, CudaMemory, std::size_t, CudaStream) = nullptr;
  int (*copy_async_)(CudaMemory, CudaMemory, std::size_t, CudaStream) = nullptr;
  int (*stream_create_)(CudaStream*, unsigned) = nullptr;
  int (*stream_query_)(CudaStream) = nullptr;
  int (*stream_wait_)(CudaStream) = nullptr;
};

}  // namespace distdoctor::vendor
