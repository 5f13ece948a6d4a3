#include "probe/wire_speed.h"

#include "base/fd.h"
#include "probe/stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

namespace distdoctor::probe {
namespace {

using std::chrono::milliseconds;
using Clock = Deadline::Clock;

constexpr std::size_t kBlock = 128 * 1024;  // as iperf3 writes
constexpr std::size_t kMostNumbers = 8;
constexpr milliseconds kLongest{5'000};
constexpr milliseconds kConnectTime{1'600};
constexpr milliseconds kForOpening{5'000};  // of the others, over a long way
constexpr milliseconds kLookAgain{50};      // whether it is over
// A window doubles in each round trip: twenty are enough for any that the kernel allows.
constexpr milliseconds kRamp{300};
constexpr double kRampTrips = 20;

// Sends without end, each stream from a thread of its own.
class Pouring {
 public:
  static Result<std::vector<Stream>> open(const PathTarget& target,
                                          int streams,
                                          milliseconds most,
                                          Deadline deadline) {
    std::vector<Stream> all;
    for (int i = 0; i < streams; ++i) {
      DD_TRY(Stream stream, Stream::connect(target, deadline.capped(kConnectTime)));
      DD_TRY(stream.pour(most, deadline.capped(kConnectTime)));
      all.push_back(std::move(stream));
    }
    return all;
  }

  explicit Pouring(std::vector<Stream> streams) : streams_(std::move(streams)) {
    try {
      for (const Stream& stream : streams_) {
        threads_.emplace_back([this, &stream] { send(stream.fd()); });
      }
    } catch (const std::system_error&) {  // no more threads here
      broken_ = true;
    }
  }
  // With a reset: what is still queued here would disturb whoever measures next.
  ~Pouring() {
    over_ = true;
    threads_.clear();
    constexpr linger kNow{.l_onoff = 1, .l_linger = 0};
    for (const Stream& stream : streams_) {
      static_cast<void>(::setsockopt(stream.fd().get(), SOL_SOCKET, SO_LINGER, &kNow, sizeof kNow));
    }
  }
  Pouring(const Pouring&) = delete;
  Pouring& operator=(const Pouring&) = delete;
  Pouring(Pouring&&) = delete;
  Pouring& operator=(Pouring&&) = delete;

  struct Sample {
    std::uint64_t bytes = 0;
    Clock::time_point at;
  };
  [[nodiscard]] Sample sample() const {
    Sample now{.at = Clock::now()};
    for (const Stream& stream : streams_) now.bytes += stream.acknowledged();
    return now;
  }
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  void send(const Fd& fd) {
    const std::string zeros(kBlock, '\0');
    while (!over_) {
      const ssize_t sent = ::send(fd.get(), zeros.data(), zeros.size(), MSG_NOSIGNAL);
      if (sent >= 0 || errno == EINTR) continue;
      if (errno != EAGAIN) {
        broken_ = true;
        return;
      }
      pollfd waiting{.fd = fd.get(), .events = POLLOUT, .revents = 0};
      static_cast<void>(::poll(&waiting, 1, static_cast<int>(kLookAgain.count())));
    }
  }

  std::vector<Stream> streams_;
  std::atomic<bool> over_ = false;
  std::atomic<bool> broken_ = false;
  std::vector<std::jthread> threads_;
};

milliseconds ramp_of(double rtt_ms, milliseconds time) {
  const milliseconds trips(static_cast<std::int64_t>(kRampTrips * std::max(rtt_ms, 0.0)));
  return std::min(std::max(kRamp, trips), time / 2);
}

}  // namespace

Result<WireSpeed> wire_speed(
    const PathTarget& target, int streams, milliseconds time, double rtt_ms, Deadline deadline) {
  constexpr std::string_view kAttempt = "measure bandwidth";
  const milliseconds whole = std::clamp(time, milliseconds(1), kLongest);
  const int count = std::clamp(streams, 1, kMostStreams);
  DD_TRY(auto open, Pouring::open(target, count, whole + kForOpening, deadline));
  if (deadline.remaining() < whole) return failure(kAttempt, "too little time was left");
  const Pouring pouring(std::move(open));
  const milliseconds ramp = ramp_of(rtt_ms, whole);
  std::this_thread::sleep_for(ramp);
  const auto first = pouring.sample();
  std::this_thread::sleep_for(whole - ramp);
  const auto last = pouring.sample();
  if (pouring.broken()) return failure(kAttempt, "a connection broke");
  if (last.bytes <= first.bytes) return failure(kAttempt, "nothing arrived");
  const double seconds = std::chrono::duration<double>(last.at - first.at).count();
  return WireSpeed{.streams = count,
                   .gb_per_s = static_cast<double>(last.bytes - first.bytes) / seconds / 1e9,
                   .seconds = seconds};
}

Observed<std::vector<WireSpeed>> wire_speeds(const PathTarget& target,
                                             double rtt_ms,
                                             Deadline deadline) {
  std::vector<WireSpeed> speeds;
  for (std::size_t i = 0; i < std::min(target.streams.size(), kMostNumbers); ++i) {
    const auto speed =
        wire_speed(target, target.streams[i], milliseconds(target.speed_ms), rtt_ms, deadline);
    if (!speed && speeds.empty()) return unknown_because(speed.error());
    if (!speed) break;
    speeds.push_back(*speed);
  }
  return speeds;
}

}  // namespace distdoctor::probe
