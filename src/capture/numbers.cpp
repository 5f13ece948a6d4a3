#include "capture/numbers.h"

#include <distdoctor/address.h>

#include "base/text.h"
#include "capture/characters.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

namespace distdoctor::capture {
namespace {

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
std::size_t hex_run(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_hex) - text.begin());
}

// --- ids -----------------------------------------------------------------------------------------

struct Groups {
  char separator;
  std::vector<std::size_t> sizes;
};

const std::vector<Groups>& shapes() {
  static const std::vector<Groups> all = {{':', std::vector<std::size_t>(20, 2)},
                                          {':', std::vector<std::size_t>(6, 2)},
                                          {':', std::vector<std::size_t>(4, 4)},
                                          {'-', {8, 4, 4, 4, 12}},
                                          {'_', {8, 4, 4, 4, 12}}};
  return all;
}

// Its length, where `text` begins with such groups and no more of them; else 0.
std::size_t length_of(const Groups& groups, std::string_view text) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < groups.sizes.size(); ++i) {
    if (i > 0) {
      if (at >= text.size() || text[at] != groups.separator) return 0;
      ++at;
    }
    if (hex_run(text.substr(at)) != groups.sizes[i]) return 0;
    at += groups.sizes[i];
  }
  const bool ends = at == text.size() || !in_a_word(text[at]);
  const bool more =
      groups.separator == ':' && at + 1 < text.size() && text[at] == ':' && is_hex(text[at + 1]);
  return ends && !more ? at : 0;
}

// Of a container, or /etc/machine-id. Decimal numbers are counters.
std::size_t long_run(std::string_view text) {
  constexpr std::array<std::size_t, 4> kLengths = {12, 32, 40, 64};
  const auto length = hex_run(text);
  const bool letters = std::ranges::any_of(text.substr(0, length), [](char c) { return c > '9'; });
  const bool ends = length == text.size() || !in_a_word(text[length]);
  return letters && ends && std::ranges::find(kLengths, length) != kLengths.end() ? length : 0;
}

bool ends_in_one_of(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}

// Whether what follows is one of several groups, as of an IPv6 address.
bool among_groups(std::string_view before) {
  if (!before.ends_with(':')) return false;
  before.remove_suffix(1);
  std::size_t word = 0;
  while (word < before.size() && in_a_word(before[before.size() - 1 - word])) ++word;
  const auto group = before.substr(before.size() - word);
  return before.ends_with(':') || (word > 0 && word <= 4 && hex_run(group) == word);
}

std::size_t id_at(std::string_view text, std::size_t at) {
  const auto before = text.substr(0, at);
  const auto rest = text.substr(at);
  if (!is_hex(text[at])) return 0;
  if (ends_in_one_of(before, {"GPU-", "MIG-"})) {
    const auto end = rest.find_first_not_of("0123456789abcdefABCDEF-");
    return end == std::string_view::npos ? rest.size() : end;
  }
  const bool begins =
      before.empty() || !in_a_word(before.back()) || ends_in_one_of(before, {"enx", "wlx", "pod"});
  if (!begins) return 0;
  const bool inside = among_groups(before);
  for (const Groups& shape : shapes()) {
    if (inside && shape.separator == ':') continue;
    if (const auto length = length_of(shape, rest)) return length;
  }
  return long_run(rest);
}

// --- addresses -----------------------------------------------------------------------------------

bool in_a_token(char c) {
  return in_a_word(c) || c == ':' || c == '.' || c == '-' || c == '_' || c == '%';
}

// Each group with its zeros, as the kernel writes GIDs.
std::string long_form(const Address& address) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < address.bytes.size(); ++i) {
    if (i > 0 && i % 2 == 0) text += ':';
    text += kDigits[address.bytes.at(i) >> 4U];
    text += kDigits[address.bytes.at(i) & 0xfU];
  }
  return text;
}

std::optional<std::string> other_address(std::string_view text, const Scrambler& scrambler) {
  const auto address = Address::parse(text);
  if (!address) return std::nullopt;
  const auto other = scrambler.address(*address);
  constexpr std::size_t kLong = 39;
  return address->v6 && text.size() == kLong ? long_form(other) : other.text();
}

// All bits behind `prefix` set, or none.
Address edge(Address address, int prefix, bool last) {
  for (int i = prefix; i < address.bits(); ++i) {
    auto& byte = address.bytes.at(static_cast<std::size_t>(i) / 8);
    const auto bit = 0x80U >> static_cast<unsigned>(i) % 8U;
    byte = static_cast<std::uint8_t>(last ? byte | bit : byte & ~bit);
  }
  return address;
}

std::optional<std::string> other_range(std::string_view text, const Scrambler& scrambler) {
  const auto dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = Address::parse(text.substr(0, dash));
  const auto last = Address::parse(text.substr(dash + 1));
  if (!first || !last || first->v6 != last->v6) return std::nullopt;
  int shared = 0;
  while (shared < first->bits() && first->shares_prefix(*last, shared + 1)) ++shared;
  const auto other = scrambler.address(*first);
  const bool subnet = edge(*first, shared, false) == *first && edge(*last, shared, true) == *last;
  if (!subnet) return other.text() + ".." + scrambler.address(*last).text();
  return edge(other, shared, false).text() + "-" + edge(other, shared, true).text();
}

// Of "10.0.0.0/24", where `rest` begins with the slash: without a host part, too.
std::optional<std::string> other_subnet(std::string_view text,
                                        std::string_view rest,
                                        const Scrambler& scrambler) {
  if (!rest.starts_with('/')) return std::nullopt;
  rest.remove_prefix(1);
  const auto address = Address::parse(text);
  const auto length =
      parse_int_within(rest.substr(0, rest.find_first_not_of("0123456789")), 0, 128);
  if (!address || !length || *length > address->bits()) return std::nullopt;
  if (edge(*address, *length, false) != *address) return std::nullopt;
  return edge(scrambler.address(*address), *length, false).text();
}

// "ip-10-0-0-1", as a cloud calls its machines.
std::optional<std::string> other_name(std::string_view text, const Scrambler& scrambler) {
  if (!text.starts_with("ip-")) return std::nullopt;
  const auto dot = std::min(text.find('.'), text.size());
  std::string dotted(text.substr(3, dot - 3));
  std::ranges::replace(dotted, '-', '.');
  auto other = other_address(dotted, scrambler);
  if (!other) return std::nullopt;
  std::ranges::replace(*other, '.', '-');
  return "ip-" + *other + std::string(text.substr(dot));
}

std::string other_token(std::string_view text, const Scrambler& scrambler) {
  // The end of a sentence is none of an address.
  const auto last = text.find_last_not_of(".:-");
  const auto core = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const auto rest = std::string(text.substr(core.size()));
  if (text.ends_with("::")) {
    if (const auto whole = other_address(text, scrambler)) return *whole;
  }
  if (const auto whole = other_address(core, scrambler)) return *whole + rest;
  if (const auto range = other_range(core, scrambler)) return *range + rest;
  if (const auto name = other_name(core, scrambler)) return *name + rest;
  // "10.0.0.1:29500"
  const auto colon = core.find(':');
  if (colon == std::string_view::npos) return std::string(text);
  const auto left = other_address(core.substr(0, colon), scrambler);
  const auto right = other_address(core.substr(colon + 1), scrambler);
  if (!left && !right) return std::string(text);
  return left.value_or(std::string(core.substr(0, colon))) + ":" +
         right.value_or(std::string(core.substr(colon + 1))) + rest;
}

// --- /proc/net/tcp -------------------------------------------------------------------------------

std::string other_endpoint(std::string_view text, const Scrambler& scrambler) {
  const auto digits = text.substr(0, text.find(':'));
  const bool v6 = digits.size() == 32;
  if (text.size() != digits.size() + 5 || (!v6 && digits.size() != 8)) return std::string(text);
  Address address{.v6 = v6};
  const auto place = [](std::size_t i) { return i / 4 * 4 + (3 - i % 4); };  // little-endian words
  for (std::size_t i = 0; i < digits.size() / 2; ++i) {
    const auto byte = parse_int<std::uint8_t>(digits.substr(2 * i, 2), 16);
    if (!byte) return std::string(text);
    address.bytes.at(place(i)) = *byte;
  }
  address = scrambler.address(address);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string other;
  for (std::size_t i = 0; i < digits.size() / 2; ++i) {
    const auto byte = address.bytes.at(place(i));
    other += kDigits[byte >> 4U];
    other += kDigits[byte & 0xfU];
  }
  return other + std::string(text.substr(digits.size()));
}

}  // namespace

std::string hide_socket_table(std::string_view text, const Scrambler& scrambler) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto end = std::min(text.find_first_of(" \n", at), text.size());
    out += other_endpoint(text.substr(at, end - at), scrambler);
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

std::string hide_ids(std::string_view text, const Scrambler& scrambler) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const auto length = id_at(text, at);
    if (length > 0) out += scrambler.digits(text.substr(at, length));
    if (length == 0) out += text[at];
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

std::string hide_addresses(std::string_view text, const Scrambler& scrambler) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = at;
    while (end < text.size() && in_a_token(text[end])) ++end;
    const auto token = text.substr(at, end - at);
    const auto subnet = other_subnet(token, text.substr(end), scrambler);
    if (!token.empty()) out += subnet ? *subnet : other_token(token, scrambler);
    if (end < text.size()) out += text[end];
    at = end + 1;
  }
  return out;
}

}  // namespace distdoctor::capture
