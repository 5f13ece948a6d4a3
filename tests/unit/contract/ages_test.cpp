#include <distdoctor/ages.h>

#include <doctest/doctest.h>

TEST_CASE("ages, in units of which there are two at least") {
  using distdoctor::age_text;
  CHECK(age_text(0.4) == "0 s");
  CHECK(age_text(119) == "119 s");
  CHECK(age_text(120) == "2 min");
  CHECK(age_text(7'199) == "120 min");
  CHECK(age_text(7'200) == "2 h");
  CHECK(age_text(172'800) == "2 days");
  CHECK(distdoctor::ago_text(600) == "10 min ago");
}
