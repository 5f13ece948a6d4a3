#include "base/deadline.h"

#include <algorithm>
#include <limits>

namespace distdoctor {

Deadline Deadline::after(std::chrono::nanoseconds duration) {
  // Bounded, so that adding it to the clock cannot overflow.
  constexpr std::chrono::nanoseconds kLongest = std::chrono::years(30);
  return Deadline(Clock::now() + std::clamp(duration, -kLongest, kLongest));
}

std::chrono::nanoseconds Deadline::remaining() const {
  return std::max(std::chrono::nanoseconds(moment_ - Clock::now()), std::chrono::nanoseconds(0));
}

int Deadline::remaining_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(remaining());
  constexpr std::chrono::milliseconds::rep kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(left.count(), kMost));
}

Deadline Deadline::capped(std::chrono::nanoseconds duration) const {
  return std::min(*this, after(duration));
}

}  // namespace distdoctor
