// UTF-8, and bytes that are none as text that is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor {

struct DecodedPoint {
  char32_t point = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// The first character of a text that is not empty (RFC 3629: shortest form only, no surrogates,
// nothing above U+10FFFF).
DecodedPoint decode_utf8(std::string_view text);
bool is_utf8(std::string_view text);

std::string to_hex(std::string_view bytes);  // two lower-case digits a byte
// None where it is not that; capital letters are taken, too.
std::optional<std::string> from_hex(std::string_view digits);

}  // namespace distdoctor
