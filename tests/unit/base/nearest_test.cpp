#include "base/nearest.h"

#include <doctest/doctest.h>

#include <array>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

constexpr std::array<std::string_view, 4> kAreas = {"env", "net", "rendezvous", "firewall"};

struct NearRow {
  std::string_view word;
  std::string_view nearest;  // "": none
};

constexpr std::array<NearRow, 8> kNear = {{
    {"rendevous", "rendezvous"},
    {"RENDEZVOUZ", "rendezvous"},
    {"fierwall", "firewall"},
    {"nte", "net"},
    {"ne", "net"},
    {"gpu", ""},
    {"", ""},
    {"firewalls-and-more", ""},
}};

}  // namespace

TEST_CASE("edit_distance counts each kind of slip as one") {
  CHECK(edit_distance("net", "net") == 0);
  CHECK(edit_distance("net", "NET") == 0);
  CHECK(edit_distance("net", "nets") == 1);
  CHECK(edit_distance("net", "nt") == 1);
  CHECK(edit_distance("net", "nut") == 1);
  CHECK(edit_distance("net", "nte") == 1);
  CHECK(edit_distance("", "net") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest: near words only") {
  for (const NearRow& row : kNear) {
    CAPTURE(row.word);
    CHECK(nearest(row.word, kAreas).value_or("") == row.nearest);
  }
  CHECK_FALSE(nearest(std::string(100'000, 'x'), kAreas).has_value());
  CHECK(did_you_mean("fierwall", kAreas) == " (did you mean 'firewall'?)");
  CHECK(did_you_mean("gpu", kAreas).empty());
}
