#include "base/utf8.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

TEST_CASE("what is UTF-8") {
  for (const std::string_view text : {"", "eth0", "Gr\u00f6\u00dfe \u2713", "\x01"})
    CHECK(is_utf8(text));
  for (const std::string_view text : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\x80"}) {
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("bytes as hexadecimal digits, and back") {
  const std::string bytes("\x00\x7f\xff\xa0", 4);
  CHECK(to_hex(bytes) == "007fffa0");
  CHECK(from_hex("007FffA0") == bytes);
  CHECK(from_hex("") == "");
  for (const std::string_view text : {"0", "0g", "-1", " 1"}) CHECK_FALSE(from_hex(text));
}
