#include "base/deadline.h"

#include <doctest/doctest.h>

#include <limits>

using distdoctor::Deadline;
using namespace std::chrono_literals;

TEST_CASE("a deadline that has passed has nothing left, never less") {
  const Deadline past = Deadline::after(-5s);
  CHECK(past.expired());
  CHECK(past.remaining() == 0ns);
  CHECK(past.remaining_ms() == 0);
}

TEST_CASE("a deadline to come has something left for poll, even less than a millisecond") {
  const Deadline later = Deadline::after(1h);
  CHECK_FALSE(later.expired());
  CHECK(later.remaining() > 0ns);
  CHECK(later.remaining_ms() <= 3'600'000);
  // Rounded up: at one nanosecond before it, poll must not be called with 0.
  const auto moment = Deadline::Clock::now() + 1h;
  CHECK(Deadline::at(moment).remaining_ms() >= 1);
}

TEST_CASE("durations that the clock cannot add are bounded") {
  CHECK(Deadline::after(std::chrono::nanoseconds::max()).remaining_ms() ==
        std::numeric_limits<int>::max());
  CHECK(Deadline::after(std::chrono::nanoseconds::min()).expired());
}

TEST_CASE("capped is the earlier of the two") {
  const Deadline budget = Deadline::after(1h);
  CHECK(budget.capped(2h) == budget);
  CHECK(budget.capped(1min) < budget);
}
