// How far the peer's clock is from ours, from beats that went both ways (RFC 5905, section 8).
#pragma once

#include <cstdint>
#include <optional>

namespace distdoctor::fleet {

// One exchange: ours left, reached the peer, the peer's left, reached us; the middle two by the
// peer's clock. Microseconds of CLOCK_REALTIME.
struct Exchange {
  std::int64_t sent = 0;
  std::int64_t heard = 0;
  std::int64_t answered = 0;
  std::int64_t came = 0;
};

struct ClockOffset {
  double offset_ms = 0;  // the peer's minus ours
  double error_ms = 0;   // half of the time that the exchange spent on the way
};

// Keeps the exchange that spent the least time on the way.
class ClockComparison {
 public:
  void add(const Exchange& exchange);
  [[nodiscard]] std::optional<ClockOffset> best() const { return best_; }

 private:
  std::optional<ClockOffset> best_;
};

std::int64_t realtime_us();

}  // namespace distdoctor::fleet
