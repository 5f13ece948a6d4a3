#include "fleet/clock.h"

#include <chrono>

namespace distdoctor::fleet {

void ClockComparison::add(const Exchange& exchange) {
  // In double: a peer may claim any times.
  const auto ms = [](std::int64_t later, std::int64_t earlier) {
    return (static_cast<double>(later) - static_cast<double>(earlier)) / 1000;
  };
  const double on_the_way =
      ms(exchange.came, exchange.sent) - ms(exchange.answered, exchange.heard);
  if (on_the_way < 0) return;  // one of the clocks was set meanwhile
  if (best_ && best_->error_ms <= on_the_way / 2) return;
  best_ = ClockOffset{
      .offset_ms = (ms(exchange.heard, exchange.sent) + ms(exchange.answered, exchange.came)) / 2,
      .error_ms = on_the_way / 2};
}

std::int64_t realtime_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace distdoctor::fleet
