#include "base/text.h"

#include <doctest/doctest.h>

#include <cstdint>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

using Views = std::vector<std::string_view>;

struct PrintableRow {
  std::string_view name;
  std::string_view text;
  std::string_view shown;
};

const std::vector<PrintableRow> kPrintables = {
    {"plain", "eth0: up", "eth0: up"},
    {"umlauts and signs stay", "Größe ✓ 字 🙂", "Größe ✓ 字 🙂"},
    {"clears the screen", "\x1b[2Jx", "\\x1b[2Jx"},
    {"two lines", "a\r\nb\tc", "a\\r\\nb\\tc"},
    {"nul", std::string_view("a\0b", 3), "a\\x00b"},
    {"delete", "a\x7f", "a\\x7f"},
    {"C1 control, as two bytes of UTF-8",
     "\xc2\x9b"
     "2J",
     "\\x9b2J"},
    {"C1 control, as one byte", "\x9b", "\\x9b"},
    {"right-to-left override",
     "a\xe2\x80\xae"
     "b",
     "a\\u202eb"},
    {"zero width",
     "a\xe2\x80\x8b"
     "b",
     "a\\u200bb"},
    {"cut off", "a\xe2\x80", "a\\xe2\\x80"},
    {"too long a form of '/'", "\xc0\xaf", "\\xc0\\xaf"},
    {"too long a form of '/', three bytes", "\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
    {"surrogate", "\xed\xa0\x80", "\\xed\\xa0\\x80"},
    {"above the last point", "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
    {"lead byte without its end, then text", "\xc3(", "\\xc3("},
};

}  // namespace

TEST_CASE("split") {
  CHECK(split("a,,b", ',') == Views{"a", "", "b"});
  CHECK(split("", ',') == Views{""});
  CHECK(split("a=b=c", '=', 2) == Views{"a", "b=c"});
  CHECK(split("a", '=', 1) == Views{"a"});
  CHECK(split_words(" a\t b\n") == Views{"a", "b"});
  CHECK(split_words(" \t").empty());
  CHECK(split_lines("a\r\n\nb") == Views{"a", "", "b"});
  CHECK(split_lines("a\n") == Views{"a"});
  CHECK(split_lines("").empty());
}

TEST_CASE("trim, prefixes, suffixes, join, lower case") {
  CHECK(trim(" \ta b\r\n") == "a b");
  CHECK(trim(" ").empty());
  CHECK(after_prefix("eth0", "eth") == "0");
  CHECK_FALSE(after_prefix("eth0", "ib").has_value());
  CHECK(before_suffix("a.json", ".json") == "a");
  CHECK_FALSE(before_suffix("json", ".json").has_value());
  CHECK(join(Views{"a", "b", "c"}, ", ") == "a, b, c");
  CHECK(join(Views{}, ", ").empty());
  CHECK(to_lower("MiB-Ä") == "mib-Ä");
}

TEST_CASE("parse_int takes the whole text and nothing out of range") {
  CHECK(parse_int<int>("-17") == -17);
  CHECK(parse_int<std::uint8_t>("255") == 255);
  CHECK(parse_int<std::uint32_t>("ffffffff", 16) == 0xffffffffU);
  for (const std::string_view bad : {"256", "-1", "", " 1", "1 ", "+1", "0x1", "1.0", "a"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_int<std::uint8_t>(bad).has_value());
  }
  CHECK(parse_int_within<int>("65535", 1, 65535) == 65535);
  CHECK_FALSE(parse_int_within<int>("0", 1, 65535).has_value());
  CHECK_FALSE(parse_int_within<int>("65536", 1, 65535).has_value());
}

TEST_CASE("parse_double takes finite numbers") {
  CHECK(parse_double("0.25") == doctest::Approx(0.25));
  for (const std::string_view bad : {"", "inf", "nan", "1e999", "1x", " 1"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_double(bad).has_value());
  }
}

TEST_CASE("printable: nothing that a machine names can move the cursor or hide text") {
  for (const PrintableRow& row : kPrintables) {
    CAPTURE(row.name);
    CHECK(printable(row.text) == row.shown);
  }
}

TEST_CASE("shortened keeps the limit and whole characters") {
  CHECK(shortened("abc", 3) == "abc");
  CHECK(shortened("abcdef", 5) == "ab...");
  CHECK(shortened("a\xc3\xa4xyz", 5) == "a...");
  CHECK(shortened("abcdef", 2) == "..");
}
