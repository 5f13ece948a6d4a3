#include "base/units.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace
using namespace std::chrono_literals;

namespace {

struct ByteRow {
  std::uint64_t bytes;
  std::string_view text;
};

const std::vector<ByteRow> kBytes = {
    {0, "0 B"},
    {512, "512 B"},
    {1024, "1 KiB"},
    {1536, "1.5 KiB"},
    {64ULL << 20U, "64 MiB"},
    {std::numeric_limits<std::uint64_t>::max(), "16 EiB"},
};

struct DurationRow {
  std::chrono::nanoseconds t;
  std::string_view text;
};

const std::vector<DurationRow> kDurations = {
    {0ns, "0 ns"},     {999ns, "999 ns"},     {1500ns, "1.5 us"}, {350ms, "350 ms"},
    {1900ms, "1.9 s"}, {59400ms, "59 s"},     {59600ms, "1 min"}, {310s, "5 min 10 s"},
    {2h, "2 h"},       {125min, "2 h 5 min"}, {51h, "2 d 3 h"},   {-3ms, "-3 ms"},
};

struct ParseRow {
  std::string_view text;
  long long value;  // -1: refused
};

const std::vector<ParseRow> kParsedDurations = {
    {"500ms", 500}, {"10", 10'000}, {"0.5", 500},  {"2m", 120'000}, {"1 h", 3'600'000},
    {"0", -1},      {"", -1},       {"-1s", -1},   {"1d", -1},      {"1e9", -1},
    {"169h", -1},   {"s", -1},      {"10s10", -1}, {"nan", -1},     {"1..2", -1},
};

const std::vector<ParseRow> kParsedBytes = {
    {"65536", 65536},    {"64k", 65536}, {"64KiB", 65536}, {"1.5G", 1'610'612'736},
    {"8 MB", 8'388'608}, {"", -1},       {"-1", -1},       {"1x", -1},
    {"99999999T", -1},   {"k", -1},
};

}  // namespace

TEST_CASE("human_bytes") {
  for (const ByteRow& row : kBytes) CHECK(human_bytes(row.bytes) == row.text);
}

TEST_CASE("human_bits_per_second") {
  CHECK(human_bits_per_second(950e6) == "950 Mbit/s");
  CHECK(human_bits_per_second(25e9) == "25 Gbit/s");
  CHECK(human_bits_per_second(2.5e9) == "2.5 Gbit/s");
  CHECK(human_bits_per_second(-1) == "0 bit/s");
}

TEST_CASE("human_duration") {
  for (const DurationRow& row : kDurations) CHECK(human_duration(row.t) == row.text);
  CHECK(human_duration(std::chrono::nanoseconds::min()).starts_with("-"));
}

TEST_CASE("parse_duration") {
  for (const ParseRow& row : kParsedDurations) {
    CAPTURE(row.text);
    const auto parsed = parse_duration(row.text);
    CHECK((parsed ? parsed->count() : -1) == row.value);
  }
}

TEST_CASE("parse_bytes") {
  for (const ParseRow& row : kParsedBytes) {
    CAPTURE(row.text);
    const auto parsed = parse_bytes(row.text);
    CHECK((parsed ? static_cast<long long>(*parsed) : -1) == row.value);
  }
}
