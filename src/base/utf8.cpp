#include "base/utf8.h"

#include "base/text.h"

#include <array>

namespace distdoctor {
namespace {

unsigned char byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// How many bytes the lead byte announces, 0 for none that may lead.
std::size_t announced(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xc2) return 0;
  if (lead < 0xe0) return 2;
  if (lead < 0xf0) return 3;
  return lead < 0xf5 ? 4 : 0;
}

}  // namespace

DecodedPoint decode_utf8(std::string_view text) {
  const std::size_t bytes = announced(byte_at(text, 0));
  if (bytes == 0 || bytes > text.size()) return {};
  if (bytes == 1) return {byte_at(text, 0), 1};
  char32_t point = byte_at(text, 0) & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80U) return {};
    point = (point << 6U) | (byte_at(text, i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  if (point < kSmallest.at(bytes) || surrogate || point > 0x10ffff) return {};
  return {point, bytes};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = decode_utf8(text).bytes;
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string digits;
  digits.reserve(2 * bytes.size());
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    digits += kDigits[value >> 4U];
    digits += kDigits[value & 0xfU];
  }
  return digits;
}

std::optional<std::string> from_hex(std::string_view digits) {
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(digits.size() / 2);
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const auto value = parse_int<unsigned char>(digits.substr(i, 2), 16);
    if (!value) return std::nullopt;
    bytes += static_cast<char>(*value);
  }
  return bytes;
}

}  // namespace distdoctor
