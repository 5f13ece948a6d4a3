#include "probe/icmp.h"

#include "support/builders.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <optional>

namespace distdoctor::testing {
namespace {

using namespace probe;

TEST_CASE("ICMP codes and what they say about a connection") {
  struct Row {
    bool v6;
    int type, code;
    std::optional<Outcome> outcome;
  };
  const Row rows[] = {{false, 3, 0, Outcome::net_unreachable},
                      {false, 3, 1, Outcome::host_unreachable},
                      {false, 3, 2, Outcome::prohibited},
                      {false, 3, 3, Outcome::refused},
                      {false, 3, 4, std::nullopt},
                      {false, 3, 6, Outcome::net_unreachable},
                      {false, 3, 7, Outcome::host_unreachable},
                      {false, 3, 9, Outcome::prohibited},
                      {false, 3, 10, Outcome::prohibited},
                      {false, 3, 13, Outcome::prohibited},
                      {false, 11, 0, std::nullopt},
                      {true, 1, 0, Outcome::net_unreachable},
                      {true, 1, 1, Outcome::prohibited},
                      {true, 1, 3, Outcome::host_unreachable},
                      {true, 1, 4, Outcome::refused},
                      {true, 1, 5, Outcome::prohibited},
                      {true, 1, 6, Outcome::prohibited},
                      {true, 2, 0, std::nullopt},
                      {true, 3, 1, std::nullopt}};
  for (const auto& [v6, type, code, outcome] : rows) {
    const auto text = text_of({v6, type, code, addr(v6 ? "fd00::1" : "10.0.0.1")});
    CAPTURE(text);
    CHECK(outcome_of({v6, type, code, {}}) == outcome);
  }
  CHECK(text_of({false, 3, 13, addr("10.0.0.1")}) == "ICMP 3/13 from 10.0.0.1");
  CHECK(text_of({true, 1, 1, addr("fd00::1")}) == "ICMPv6 1/1 from fd00::1");
}

TEST_CASE("the same errno means another thing when it came at once") {
  CHECK(outcome_of_errno(EACCES, true) == Outcome::local_error);
  CHECK(outcome_of_errno(EACCES, false) == Outcome::prohibited);
  CHECK(outcome_of_errno(EPERM, true) == Outcome::local_error);
  CHECK(outcome_of_errno(ENETUNREACH, true) == Outcome::net_unreachable);
  CHECK(outcome_of_errno(EHOSTUNREACH, false) == Outcome::host_unreachable);
  CHECK(outcome_of_errno(ECONNREFUSED, false) == Outcome::refused);
  CHECK(outcome_of_errno(ETIMEDOUT, false) == Outcome::timed_out);
  CHECK(outcome_of_errno(EADDRNOTAVAIL, true) == Outcome::local_error);
}

}  // namespace
}  // namespace distdoctor::testing
