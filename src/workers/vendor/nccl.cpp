// A rank over NCCL with a communicator that does not block: every wait of ours has an end.
#include "workers/rank/backend.h"
#include "workers/rank/run.h"
#include "workers/vendor/cuda.h"
#include "workers/vendor/nccl_library.h"
#include "workers/vendor/verb.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

namespace distdoctor::vendor {
namespace {

using std::chrono::steady_clock;

class NcclBackend : public workers::Backend {
 public:
  // NCCL before CUDA: what a job without either would stumble over first is the driver.
  Result<void> load(const WorkerJob& job) override {
    patience_ = std::chrono::duration<double>(job.patience_s);
    DD_TRY(auto nccl, NcclLibrary::load(job.library));
    nccl_ = std::move(nccl);
    DD_TRY(auto cuda, Cuda::load());
    cuda_ = std::move(cuda);
    return {};
  }

  Result<void> take_device(const WorkerJob& job) override { return cuda_->take_device(job.device); }

  Result<void> join(const WorkerJob& job, workers::Meeting& meeting) override {
    NcclUniqueId id{};
    if (job.rank == 0) {
      DD_TRY(id, nccl_->unique_id());
    }
    const std::string_view own(id.internal.data(), job.rank == 0 ? id.internal.size() : 0);
    DD_TRY(const auto parts, meeting.exchange(own));
    if (parts.at(0).size() != id.internal.size()) {
      return failure("learn NCCL's unique id", "rank 0 has published none");
    }
    std::memcpy(id.internal.data(), parts[0].data(), id.internal.size());
    return ended(nccl_->init(&comm_, job.size, id, job.rank), "ncclCommInitRank");
  }

  Result<void> reserve(std::size_t bytes) override {
    if (bytes <= reserved_) return {};
    for (CudaMemory* memory : {&data_, &copy_}) {
      if (*memory != 0) cuda_->release(std::exchange(*memory, 0));
      DD_TRY(*memory, cuda_->reserve(bytes));
    }
    reserved_ = bytes;
    return {};
  }
  Result<void> fill(std::span<const std::uint64_t> numbers) override {
    return cuda_->write(data_, numbers.data(), numbers.size_bytes());
  }
  Result<void> fetch(std::span<std::uint64_t> numbers) override {
    return cuda_->read(numbers.data(), data_, numbers.size_bytes());
  }

  Result<void> all_reduce(std::size_t bytes) override {
    const auto begun = nccl_->sum(data_, bytes / sizeof(std::uint64_t), comm_, cuda_->stream());
    DD_TRY(ended(begun, "ncclAllReduce"));
    return wait_until(
        [this]() -> Result<bool> {
          DD_TRY(fine("ncclAllReduce"));
          return cuda_->idle();
        },
        "the all-reduce on the GPU");
  }

  Result<double> own_work(std::size_t bytes) override {
    DD_TRY(cuda_->wait());
    const auto start = steady_clock::now();
    DD_TRY(cuda_->copy(copy_, data_, bytes));
    DD_TRY(cuda_->wait());
    return std::chrono::duration<double>(steady_clock::now() - start).count();
  }

  Result<void> leave() override {
    DD_TRY(ended(nccl_->finalize(comm_), "ncclCommFinalize"));
    nccl_->destroy(std::exchange(comm_, nullptr));
    return {};
  }

  [[nodiscard]] std::vector<std::string> interfaces() const override { return {}; }

 private:
  // What the communicator says by now; in progress is fine.
  Result<void> fine(std::string_view call) {
    const int state = nccl_->state(comm_);
    return state == kNcclInProgress ? Result<void>{} : nccl_->answer(state, comm_, call);
  }

  Result<void> ended(int begun, std::string_view call) {
    if (begun != kNcclInProgress) return nccl_->answer(begun, comm_, call);
    DD_TRY(wait_until([this]() -> Result<bool> { return nccl_->state(comm_) != kNcclInProgress; },
                      call));
    return fine(call);
  }

  // Aborting frees what NCCL has in /dev/shm; it may hang as well, and then we are killed.
  template <class Done>
  Result<void> wait_until(Done done, std::string_view what) {
    const auto start = steady_clock::now();
    for (auto now = start; now - start < patience_; now = steady_clock::now()) {
      DD_TRY(const bool over, done());
      if (over) return {};
      // At first as NCCL's own test programs do: spinning, so that small sizes are timed right.
      if (now - start > std::chrono::milliseconds(10)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
    if (comm_ != nullptr) nccl_->abort(std::exchange(comm_, nullptr));
    return std::unexpected(Error{.attempt = "wait for " + std::string(what),
                                 .reason = "it did not end in time",
                                 .errno_value = ETIMEDOUT});
  }

  std::chrono::duration<double> patience_{30};
  std::optional<NcclLibrary> nccl_;
  std::optional<Cuda> cuda_;
  NcclComm comm_ = nullptr;
  CudaMemory data_ = 0;
  CudaMemory copy_ = 0;
  std::size_t reserved_ = 0;
};

}  // namespace

int nccl_allreduce(Arguments /*arguments*/) {
  NcclBackend backend;
  const int status = workers::run_rank(backend);
  // Not `return`: destructors of libraries whose threads may hang.
  std::_Exit(status);
}

}  // namespace distdoctor::vendor
