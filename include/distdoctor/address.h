// An IP address as a value, with the arithmetic that rules and checks need; no resolver, no socket.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace distdoctor {

struct Address {
  bool v6 = false;
  std::array<std::uint8_t, 16> bytes = {};  // network order; IPv4 uses the first four
  std::string zone = {};                    // "eth0" of fe80::1%eth0

  bool operator==(const Address&) const = default;
  auto operator<=>(const Address&) const = default;

  // Accepts 10.0.0.1, fe80::1%eth0, ::ffff:10.0.0.1; nothing else (no name, port or bracket).
  static std::optional<Address> parse(std::string_view text);
  // RFC 5952 for IPv6, with the zone.
  [[nodiscard]] std::string text() const;

  [[nodiscard]] int bits() const { return v6 ? 128 : 32; }
  [[nodiscard]] bool loopback() const {
    return v6 ? leading_zeros() == 15 && bytes[15] == 1 : bytes[0] == 127;
  }
  [[nodiscard]] bool unspecified() const { return leading_zeros() == 16; }
  // fe80::/10 (RFC 4291) and 169.254.0.0/16 (RFC 3927).
  [[nodiscard]] bool link_local() const {
    return v6 ? bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80 : bytes[0] == 169 && bytes[1] == 254;
  }
  // Whether both lie in one prefix of `length` bits (0 to bits()); families never meet.
  [[nodiscard]] bool shares_prefix(const Address& other, int length) const;

 private:
  [[nodiscard]] std::size_t leading_zeros() const {
    return static_cast<std::size_t>(
        std::ranges::find_if(bytes, [](std::uint8_t byte) { return byte != 0; }) - bytes.begin());
  }
  static std::optional<Address> parse_v4(std::string_view text);
  static std::optional<Address> parse_v6(std::string_view text);
  [[nodiscard]] std::string text_v4(std::size_t from) const;
  [[nodiscard]] std::string text_v6() const;
};

inline std::optional<Address> Address::parse_v4(std::string_view text) {
  Address address;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto end = i < 3 ? text.find('.') : text.size();
    if (end == std::string_view::npos || end == 0 || end > 3) return std::nullopt;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + end, address.bytes.at(i));
    if (error != std::errc() || rest != text.data() + end) return std::nullopt;
    if (end > 1 && text.front() == '0') return std::nullopt;  // octal to some, decimal to others
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return address;
}

// Groups before and after one "::", the last one perhaps dotted.
inline std::optional<Address> Address::parse_v6(std::string_view text) {
  Address address{.v6 = true};
  std::size_t filled = 0;
  std::optional<std::size_t> gap;
  if (text.starts_with("::")) {
    gap = 0;
    text.remove_prefix(2);
  }
  while (!text.empty()) {
    const auto end = std::min(text.find(':'), text.size());
    const auto group = text.substr(0, end);
    if (group.find('.') != std::string_view::npos) {
      const auto tail = parse_v4(group);
      if (!tail || end != text.size() || filled > 12) return std::nullopt;
      std::copy_n(tail->bytes.begin(), 4, address.bytes.begin() + static_cast<long>(filled));
      filled += 4;
      break;
    }
    unsigned value = 0;
    const auto [rest, error] =
        std::from_chars(group.data(), group.data() + group.size(), value, 16);
    if (group.empty() || group.size() > 4 || error != std::errc() || filled > 14 ||
        rest != group.data() + group.size()) {
      return std::nullopt;
    }
    address.bytes.at(filled++) = static_cast<std::uint8_t>(value >> 8U);
    address.bytes.at(filled++) = static_cast<std::uint8_t>(value & 0xffU);
    text.remove_prefix(end);
    if (text.empty()) break;
    if (text.starts_with("::")) {
      if (gap) return std::nullopt;
      gap = filled;
      text.remove_prefix(2);
    } else {
      text.remove_prefix(1);
      if (text.empty()) return std::nullopt;
    }
  }
  if (gap ? filled > 14 : filled != 16) return std::nullopt;
  if (gap) {
    const auto begin = address.bytes.begin() + static_cast<long>(*gap);
    std::rotate(begin, address.bytes.begin() + static_cast<long>(filled), address.bytes.end());
  }
  return address;
}

inline std::optional<Address> Address::parse(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return parse_v4(text);
  const auto percent = text.find('%');
  auto address = parse_v6(text.substr(0, percent));
  if (address && percent != std::string_view::npos) {
    address->zone = text.substr(percent + 1);
    if (address->zone.empty()) return std::nullopt;
  }
  return address;
}

inline std::string Address::text_v4(std::size_t from) const {
  std::string text;
  for (std::size_t i = from; i < from + 4; ++i) {
    if (i > from) text += '.';
    text += std::to_string(bytes.at(i));
  }
  return text;
}

inline std::string Address::text_v6() const {
  constexpr std::array<std::uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (std::equal(kMapped.begin(), kMapped.end(), bytes.begin())) return "::ffff:" + text_v4(12);
  std::array<unsigned, 8> groups{};
  for (std::size_t i = 0; i < 8; ++i) {
    groups.at(i) = (static_cast<unsigned>(bytes.at(2 * i)) << 8U) | bytes.at(2 * i + 1);
  }
  std::size_t best = 0;  // the longest run of zero groups, two at least, the first on a tie
  std::size_t length = 1;
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t run = 0;
    while (i + run < 8 && groups.at(i + run) == 0) ++run;
    if (run > length) {
      best = i;
      length = run;
    }
  }
  std::string text;
  for (std::size_t i = 0; i < 8; ++i) {
    if (length > 1 && i == best) {
      text += "::";
      i += length - 1;
      continue;
    }
    if (!text.empty() && text.back() != ':') text += ':';
    std::array<char, 4> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), groups.at(i), 16);
    text.append(digits.data(), end.ptr);
  }
  return text;
}

inline std::string Address::text() const {
  std::string text = v6 ? text_v6() : text_v4(0);
  if (!zone.empty()) text += "%" + zone;
  return text;
}

inline bool Address::shares_prefix(const Address& other, int length) const {
  if (v6 != other.v6 || length < 0 || length > bits()) return false;
  for (int bit = 0; bit < length; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const unsigned mask = 0x80U >> static_cast<unsigned>(bit % 8);
    if (((bytes.at(byte) ^ other.bytes.at(byte)) & mask) != 0) return false;
  }
  return true;
}

}  // namespace distdoctor
