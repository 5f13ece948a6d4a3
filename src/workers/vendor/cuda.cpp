#include "workers/vendor/cuda.h"

#include <string>

namespace distdoctor::vendor {
namespace {

constexpr int kNotReady = 600;          // CUDA_ERROR_NOT_READY
constexpr unsigned kNonBlocking = 0x1;  // CU_STREAM_NON_BLOCKING

}  // namespace

Result<Cuda> Cuda::load() {
  DD_TRY(auto library, SharedLibrary::open("libcuda.so.1"));
  Cuda cuda(std::move(library));
  DD_TRY(cuda.find_all());
  DD_TRY(cuda.answer(cuda.init_(0), "cuInit"));
  return cuda;
}

// The names that cuda.h maps its calls to: _v2 where sizes became 64 bits wide.
Result<void> Cuda::find_all() {
  DD_TRY(library_.need("cuGetErrorName", error_name_));
  DD_TRY(library_.need("cuGetErrorString", error_text_));
  DD_TRY(library_.need("cuInit", init_));
  DD_TRY(library_.need("cuDeviceGet", device_get_));
  DD_TRY(library_.need("cuDevicePrimaryCtxRetain", context_retain_));
  DD_TRY(library_.need("cuCtxSetCurrent", context_set_));
  DD_TRY(library_.need("cuMemAlloc_v2", allocate_));
  DD_TRY(library_.need("cuMemFree_v2", free_));
  DD_TRY(library_.need("cuMemcpyHtoDAsync_v2", to_device_));
  DD_TRY(library_.need("cuMemcpyDtoHAsync_v2", to_host_));
  DD_TRY(library_.need("cuMemcpyDtoDAsync_v2", copy_async_));
  DD_TRY(library_.need("cuStreamCreate", stream_create_));
  DD_TRY(library_.need("cuStreamQuery", stream_query_));
  return library_.need("cuStreamSynchronize", stream_wait_);
}

Result<void> Cuda::answer(int code, std::string_view call) const {
  if (code == 0) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  error_name_(code, &name);
  error_text_(code, &text);
  std::string words = name != nullptr ? name : "error " + std::to_string(code);
  if (text != nullptr) words.append(": ").append(text);
  return failure(call, words);
}

Result<void> Cuda::take_device(int ordinal) {
  int device = 0;
  DD_TRY(answer(device_get_(&device, ordinal), "cuDeviceGet " + std::to_string(ordinal)));
  CudaContext context = nullptr;
  DD_TRY(answer(context_retain_(&context, device), "cuDevicePrimaryCtxRetain"));
  DD_TRY(answer(context_set_(context), "cuCtxSetCurrent"));
  return answer(stream_create_(&stream_, kNonBlocking), "cuStreamCreate");
}

Result<CudaMemory> Cuda::reserve(std::size_t bytes) {
  CudaMemory memory = 0;
  DD_TRY(answer(allocate_(&memory, bytes), "cuMemAlloc of " + std::to_string(bytes) + " bytes"));
  return memory;
}

Result<void> Cuda::write(CudaMemory to, const void* from, std::size_t bytes) {
  DD_TRY(answer(to_device_(to, from, bytes, stream_), "cuMemcpyHtoDAsync"));
  return wait();
}

Result<void> Cuda::read(void* to, CudaMemory from, std::size_t bytes) {
  DD_TRY(answer(to_host_(to, from, bytes, stream_), "cuMemcpyDtoHAsync"));
  return wait();
}

Result<void> Cuda::copy(CudaMemory to, CudaMemory from, std::size_t bytes) {
  return answer(copy_async_(to, from, bytes, stream_), "cuMemcpyDtoDAsync");
}

Result<bool> Cuda::idle() {
  const int code = stream_query_(stream_);
  if (code == kNotReady) return false;
  DD_TRY(answer(code, "cuStreamQuery"));
  return true;
}

Result<void> Cuda::wait() {
  return answer(stream_wait_(stream_), "cuStreamSynchronize");
}

}  // namespace distdoctor::vendor
