#include "workers/vendor/nccl_library.h"

namespace distdoctor::vendor {
namespace {

constexpr int kUint64 = 5;  // ncclUint64
constexpr int kSum = 0;     // ncclSum

}  // namespace

Result<NcclLibrary> NcclLibrary::load(const std::string& name) {
  DD_TRY(auto library, SharedLibrary::open(name.empty() ? "libnccl.so.2" : name));
  NcclLibrary nccl(std::move(library));
  DD_TRY(nccl.find_all());
  return nccl;
}

Result<void> NcclLibrary::find_all() {
  DD_TRY(library_.need("ncclGetVersion", version_));
  DD_TRY(library_.need("ncclGetUniqueId", unique_id_));
  DD_TRY(library_.need("ncclCommInitRankConfig", init_));
  DD_TRY(library_.need("ncclCommGetAsyncError", state_));
  DD_TRY(library_.need("ncclAllReduce", all_reduce_));
  DD_TRY(library_.need("ncclCommFinalize", finalize_));
  DD_TRY(library_.need("ncclCommDestroy", destroy_));
  DD_TRY(library_.need("ncclCommAbort", abort_));
  DD_TRY(library_.need("ncclGetErrorString", error_text_));
  return library_.need("ncclGetLastError", last_error_);
}

Result<NcclUniqueId> NcclLibrary::unique_id() const {
  NcclUniqueId id{};
  DD_TRY(answer(unique_id_(&id), nullptr, "ncclGetUniqueId"));
  return id;
}

int NcclLibrary::version() const {
  int version = 0;
  version_(&version);
  return version;
}

int NcclLibrary::init(NcclComm* comm, int size, const NcclUniqueId& id, int rank) const {
  NcclConfig config;
  return init_(comm, size, id, rank, &config);
}

int NcclLibrary::sum(CudaMemory data, std::size_t count, NcclComm comm, CudaStream stream) const {
  return all_reduce_(data, data, count, kUint64, kSum, comm, stream);
}

int NcclLibrary::state(NcclComm comm) const {
  int state = kNcclSuccess;
  const int asked = state_(comm, &state);
  return asked == kNcclSuccess ? state : asked;
}

Result<void> NcclLibrary::answer(int code, NcclComm comm, std::string_view call) const {
  if (code == kNcclSuccess) return {};
  std::string words = error_text_(code);
  const char* const last = last_error_(comm);
  if (last != nullptr && *last != '\0') words.append("; ").append(last);
  return failure(call, words);
}

}  // namespace distdoctor::vendor
