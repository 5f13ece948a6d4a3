#include "fleet/clock.h"

#include <doctest/doctest.h>

#include <limits>

using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

TEST_CASE("ClockComparison: the exchange with the least time on the way counts") {
  ClockComparison clock;
  CHECK_FALSE(clock.best().has_value());
  // The peer is 2 s ahead; 10 ms there and 30 ms back, so the middle is off by 10 ms.
  clock.add({.sent = 0, .heard = 2'010'000, .answered = 2'500'000, .came = 530'000});
  CHECK(clock.best()->offset_ms == doctest::Approx(1990));
  CHECK(clock.best()->error_ms == doctest::Approx(20));
  // 1 ms each way.
  clock.add({.sent = 0, .heard = 2'001'000, .answered = 2'001'000, .came = 2'000});
  CHECK(clock.best()->offset_ms == doctest::Approx(2000));
  CHECK(clock.best()->error_ms == doctest::Approx(1));
  // Slower again: nothing changes.
  clock.add({.sent = 0, .heard = 2'100'000, .answered = 2'100'000, .came = 200'000});
  CHECK(clock.best()->error_ms == doctest::Approx(1));
}

TEST_CASE("ClockComparison: a clock that was set meanwhile, and absurd times") {
  ClockComparison clock;
  clock.add({.sent = 1000, .heard = 0, .answered = 5000, .came = 2000});
  CHECK_FALSE(clock.best().has_value());
  clock.add({.sent = std::numeric_limits<std::int64_t>::min(),
             .heard = std::numeric_limits<std::int64_t>::max(),
             .answered = std::numeric_limits<std::int64_t>::max(),
             .came = std::numeric_limits<std::int64_t>::max()});
  CHECK(clock.best().has_value());
}
