#include "workers/rank/run.h"

#include "base/mix.h"
#include "workers/rank/lines.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

namespace distdoctor::workers {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
// Long enough for several segments and channels, short enough to be checked word by word.
constexpr std::size_t kVerifiedBytes = std::size_t{1} << 20;

std::vector<std::uint64_t> numbers_of(std::uint64_t seed, int rank, std::size_t count) {
  std::vector<std::uint64_t> numbers(count);
  const auto own = seed + static_cast<std::uint64_t>(rank) * 0x632be59bd9b4e019U;
  for (std::size_t i = 0; i < count; ++i) numbers[i] = mixed(own + (i + 1) * kMixStep);
  return numbers;
}

void use(const std::map<std::string, std::string>& switches) {
  for (const auto& [name, value] : switches) {
    // NOLINTBEGIN(concurrency-mt-unsafe): no thread exists yet
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
    // NOLINTEND(concurrency-mt-unsafe)
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Rank {
 public:
  Rank(Backend& backend, Lines& lines, WorkerJob job)
      : backend_(backend), lines_(lines), job_(std::move(job)) {}

  Result<void> go() {
    DD_TRY(backend_.load(job_));
    reached(RunStage::loaded);
    DD_TRY(backend_.take_device(job_));
    reached(RunStage::device);
    LineMeeting meeting(lines_, job_.size);
    DD_TRY(backend_.join(job_, meeting));
    lines_.tell({.stage = RunStage::comm_init, .interfaces = backend_.interfaces()});
    DD_TRY(backend_.reserve(kVerifiedBytes));
    DD_TRY(backend_.all_reduce(kWord));
    reached(RunStage::first_allreduce);
    DD_TRY(verify());
    if (wrong_) return {};
    reached(RunStage::verified);
    DD_TRY(time_all());
    reached(RunStage::timed);
    DD_TRY(backend_.leave());
    reached(RunStage::done);
    return {};
  }
  // What came out differs from the sum; set by go().
  [[nodiscard]] const std::optional<std::string>& wrong() const { return wrong_; }

 private:
  void reached(RunStage stage) { lines_.tell({.stage = stage}); }

  static std::size_t bytes_of(std::int64_t size) {
    return static_cast<std::size_t>(std::max<std::int64_t>(size, kWord)) / kWord * kWord;
  }

  Result<void> verify() {
    constexpr std::size_t kCount = kVerifiedBytes / kWord;
    std::vector<std::uint64_t> sums(kCount);
    for (int rank = 0; rank < job_.size; ++rank) {
      const auto theirs = numbers_of(job_.seed, rank, kCount);
      for (std::size_t i = 0; i < kCount; ++i) sums[i] += theirs[i];
      if (rank == job_.rank) {
        DD_TRY(backend_.fill(theirs));
      }
    }
    DD_TRY(backend_.all_reduce(kVerifiedBytes));
    std::vector<std::uint64_t> got(kCount);
    DD_TRY(backend_.fetch(got));
    std::size_t bad = 0;
    for (std::size_t i = 0; i < kCount; ++i) bad += got[i] == sums[i] ? 0U : 1U;
    if (bad > 0) {
      wrong_ = std::to_string(bad) + " of " + std::to_string(kCount) + " sums are wrong";
    }
    return {};
  }

  // The same number on each rank: what all of them must agree on is summed by the all-reduce
  // itself.
  Result<std::uint64_t> agree(std::uint64_t own) {
    DD_TRY(backend_.fill(std::span(&own, 1)));
    DD_TRY(backend_.all_reduce(kWord));
    std::uint64_t sum = 0;
    DD_TRY(backend_.fetch(std::span(&sum, 1)));
    return sum;
  }

  Result<double> timed(std::size_t bytes) {
    const auto start = std::chrono::steady_clock::now();
    DD_TRY(backend_.all_reduce(bytes));
    return seconds_since(start);
  }

  // Seconds of one all-reduce of this size, as all ranks have them on average.
  Result<double> first(std::size_t bytes) {
    DD_TRY(const double own, timed(bytes));
    DD_TRY(const std::uint64_t sum, agree(static_cast<std::uint64_t>(own * 1e9)));
    return static_cast<double>(sum) / 1e9 / job_.size;
  }

  // What the next size would take, by the slope between the last two: latency is no slope.
  Result<void> time_all() {
    double last = 0;
    double per_byte = 0;
    std::size_t last_bytes = 0;
    for (const std::int64_t size : job_.sizes) {
      const std::size_t bytes = bytes_of(size);
      const auto more = static_cast<double>(bytes - std::min(bytes, last_bytes));
      if (last + per_byte * more > job_.longest_s) break;
      DD_TRY(backend_.reserve(bytes));
      DD_TRY(const double seconds, time_one(bytes));
      if (last_bytes > 0 && more > 0) per_byte = std::max(0.0, (seconds - last) / more);
      last = seconds;
      last_bytes = bytes;
    }
    return {};
  }

  // The same on each rank, though each tells its own median.
  Result<double> time_one(std::size_t bytes) {
    DD_TRY(const double warm, first(bytes));
    const double fit = job_.seconds_per_size / std::max(warm, 1e-7);
    const int times = static_cast<int>(std::clamp(fit, 1.0, double(job_.most_iterations)));
    std::vector<double> seconds;
    for (int i = 0; i < times; ++i) {
      DD_TRY(const double one, timed(bytes));
      seconds.push_back(one);
    }
    std::ranges::nth_element(seconds, seconds.begin() + times / 2);
    const double median = seconds[static_cast<std::size_t>(times) / 2];
    DD_TRY(const double own, backend_.own_work(bytes));
    tell_timing(bytes, median, own);
    DD_TRY(const std::uint64_t sum, agree(static_cast<std::uint64_t>(median * 1e9)));
    return static_cast<double>(sum) / 1e9 / job_.size;
  }

  void tell_timing(std::size_t bytes, double seconds, double own) {
    const double share = 2.0 * (job_.size - 1) / job_.size;
    const double moved = share * static_cast<double>(bytes);
    lines_.tell({.timing = RunTiming{.bytes = static_cast<std::int64_t>(bytes),
                                     .seconds = seconds,
                                     .own_seconds = own,
                                     .bus_gb_per_s = moved / seconds / 1e9}});
  }

  Backend& backend_;
  Lines& lines_;
  WorkerJob job_;
  std::optional<std::string> wrong_;
};

}  // namespace

int run_rank(Backend& backend) {
  Lines lines;
  auto job = lines.read_job();
  if (!job || job->size < 1 || job->rank < 0 || job->rank >= job->size) {
    lines.tell({.outcome = RunOutcome::not_run,
                .error = job ? "the rank is not within the world" : job.error().render()});
    return 2;
  }
  use(job->switches);
  Rank rank(backend, lines, *std::move(job));
  const Result<void> gone = rank.go();
  if (!gone) {
    const bool hung = gone.error().errno_value == ETIMEDOUT;
    lines.tell(
        {.outcome = hung ? RunOutcome::hung : RunOutcome::failed, .error = gone.error().render()});
  } else if (rank.wrong()) {
    lines.tell({.outcome = RunOutcome::wrong_result, .error = *rank.wrong()});
  } else {
    lines.tell({.outcome = RunOutcome::ok});
  }
  return gone && !rank.wrong() ? 0 : 1;
}

}  // namespace distdoctor::workers
