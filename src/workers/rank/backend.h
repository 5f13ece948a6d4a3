// What a library must be able to do so that a rank of it can be run: NCCL on GPUs, Gloo on the CPU.
#pragma once

#include <distdoctor/worker_line.h>

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::workers {

// How the ranks find each other: each says its part and then has all parts, by rank. All ranks
// exchange equally often.
class Meeting {
 public:
  virtual ~Meeting() = default;
  virtual Result<std::vector<std::string>> exchange(std::string_view part) = 0;
};

// Called in the order in which it stands here. A call may block for ever: whoever started this
// process ends it then. Errors hold the library's own words; ETIMEDOUT says that it waited for the
// others for job.patience_s and gave up.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<void> load(const WorkerJob& job) = 0;
  virtual Result<void> take_device(const WorkerJob& job) = 0;
  virtual Result<void> join(const WorkerJob& job, Meeting& meeting) = 0;
  // Makes room for that many bytes; what follows works on the first of them. May be called again.
  virtual Result<void> reserve(std::size_t bytes) = 0;
  virtual Result<void> fill(std::span<const std::uint64_t> numbers) = 0;
  virtual Result<void> fetch(std::span<std::uint64_t> numbers) = 0;
  // The sum over all ranks of each 64-bit number, modulo 2^64, in place; returns when it is there.
  virtual Result<void> all_reduce(std::size_t bytes) = 0;
  // Seconds that this rank alone needs to go over as many bytes.
  virtual Result<double> own_work(std::size_t bytes) = 0;
  virtual Result<void> leave() = 0;
  // Interfaces that it uses, where the library says.
  [[nodiscard]] virtual std::vector<std::string> interfaces() const = 0;
};

}  // namespace distdoctor::workers
