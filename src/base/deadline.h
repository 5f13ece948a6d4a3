// The moment at which a wait gives up. Every call that may wait takes one; there is no "never".
#pragma once

#include <chrono>

namespace distdoctor {

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  // A negative duration is a deadline that has passed; a huge one ends after some 30 years.
  static Deadline after(std::chrono::nanoseconds duration);
  static Deadline at(Clock::time_point moment) { return Deadline(moment); }

  [[nodiscard]] bool expired() const { return Clock::now() >= moment_; }
  // Never negative.
  [[nodiscard]] std::chrono::nanoseconds remaining() const;
  // For poll(2): 0 to INT_MAX, rounded up, so that a loop around poll does not spin.
  [[nodiscard]] int remaining_ms() const;
  // The earlier of this and that long from now: one operation inside a larger budget.
  [[nodiscard]] Deadline capped(std::chrono::nanoseconds duration) const;
  [[nodiscard]] Clock::time_point moment() const { return moment_; }

  auto operator<=>(const Deadline&) const = default;

 private:
  explicit Deadline(Clock::time_point moment) : moment_(moment) {}
  Clock::time_point moment_;
};

}  // namespace distdoctor
