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

  // Accepts 10.0.0.1, fe80::1%eth0, ::ffff:10.0.0.1; nothing else (no name, port or bracket). A
  // zone is what a link may be called, which a shell may still understand in its own way.
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

namespace address_detail {

inline std::optional<unsigned> digit_of(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

// One to `most` digits and nothing else.
inline std::optional<unsigned> number_of(std::string_view text, unsigned base, std::size_t most) {
  if (text.empty() || text.size() > most) return std::nullopt;
  unsigned value = 0;
  for (const char c : text) {
    const auto digit = digit_of(c);
    if (!digit || *digit >= base) return std::nullopt;
    value = value * base + *digit;
  }
  return value;
}

// What a link may be called (dev_valid_name in net/core/dev.c); no control characters either.
inline bool is_link_name(std::string_view name) {
  constexpr std::size_t kMost = 15;  // IFNAMSIZ without its end
  if (name.empty() || name.size() > kMost || name == "." || name == "..") return false;
  // The kernel minds blanks, slashes and colons (dev_valid_name); a name may be UTF-8.
  return std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) > ' ' && c != 0x7f && c != '/' && c != ':' && c != '%';
  });
}

// The 16-bit groups of an IPv6 address, as they are read.
struct Groups {
  Address address{.v6 = true};
  std::size_t filled = 0;               // bytes
  std::optional<std::size_t> gap = {};  // where "::" stood

  bool take_dotted(const std::optional<Address>& v4) {
    if (!v4 || filled > 12) return false;
    std::copy_n(v4->bytes.begin(), 4, address.bytes.begin() + static_cast<long>(filled));
    filled += 4;
    return true;
  }
  bool take(std::string_view text) {
    const auto value = number_of(text, 16, 4);
    if (!value || filled > 14) return false;
    address.bytes.at(filled++) = static_cast<std::uint8_t>(*value >> 8U);
    address.bytes.at(filled++) = static_cast<std::uint8_t>(*value & 0xffU);
    return true;
  }
  // Past what stands between two groups.
  bool step(std::string_view& text) {
    if (text.starts_with("::")) {
      if (gap) return false;
      gap = filled;
      text.remove_prefix(2);
      return true;
    }
    if (text.empty()) return true;
    text.remove_prefix(1);
    return !text.empty();
  }
  [[nodiscard]] std::optional<Address> whole() {
    if (gap ? filled > 14 : filled != 16) return std::nullopt;
    if (gap) {
      const auto begin = address.bytes.begin() + static_cast<long>(*gap);
      std::rotate(begin, address.bytes.begin() + static_cast<long>(filled), address.bytes.end());
    }
    return address;
  }
};

}  // namespace address_detail

inline std::optional<Address> Address::parse_v4(std::string_view text) {
  Address address;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto end = i < 3 ? text.find('.') : text.size();
    if (end == std::string_view::npos) return std::nullopt;
    const auto value = address_detail::number_of(text.substr(0, end), 10, 3);
    if (!value || *value > 255) return std::nullopt;
    if (end > 1 && text.front() == '0') return std::nullopt;  // octal to some, decimal to others
    address.bytes.at(i) = static_cast<std::uint8_t>(*value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return address;
}

// Groups before and after one "::", the last one perhaps dotted.
inline std::optional<Address> Address::parse_v6(std::string_view text) {
  address_detail::Groups groups;
  if (text.starts_with("::")) groups.step(text);
  while (!text.empty()) {
    const auto end = std::min(text.find(':'), text.size());
    const auto group = text.substr(0, end);
    const bool dotted = end == text.size() && group.find('.') != std::string_view::npos;
    if (!(dotted ? groups.take_dotted(parse_v4(group)) : groups.take(group))) return std::nullopt;
    text.remove_prefix(end);
    if (!groups.step(text)) return std::nullopt;
  }
  return groups.whole();
}

inline std::optional<Address> Address::parse(std::string_view text) {
  if (text.find(':') == std::string_view::npos) return parse_v4(text);
  const auto percent = text.find('%');
  auto address = parse_v6(text.substr(0, percent));
  if (address && percent != std::string_view::npos) {
    address->zone = text.substr(percent + 1);
    if (!address_detail::is_link_name(address->zone)) return std::nullopt;
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
