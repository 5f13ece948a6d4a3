#include "capture/scramble.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace distdoctor::capture {
namespace {

// SipHash-2-4 (J.-P. Aumasson and D. J. Bernstein, 2012).
struct SipState {
  std::array<std::uint64_t, 4> v;

  SipState(std::uint64_t key0, std::uint64_t key1)
      : v{key0 ^ 0x736f6d6570736575U, key1 ^ 0x646f72616e646f6dU, key0 ^ 0x6c7967656e657261U,
          key1 ^ 0x7465646279746573U} {}

  void round() {
    v[0] += v[1];
    v[1] = std::rotl(v[1], 13) ^ v[0];
    v[0] = std::rotl(v[0], 32);
    v[2] += v[3];
    v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = std::rotl(v[1], 17) ^ v[2];
    v[2] = std::rotl(v[2], 32);
  }
  void take(std::uint64_t block) {
    v[3] ^= block;
    round();
    round();
    v[0] ^= block;
  }
};

// The low bytes first; the last block carries the length.
std::uint64_t block_of(std::string_view bytes) {
  std::uint64_t block = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    block |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return block;
}

std::uint64_t siphash(std::uint64_t key0, std::uint64_t key1, std::string_view text) {
  SipState state(key0, key1);
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) state.take(block_of(text.substr(at, 8)));
  state.take(block_of(text.substr(at)) | std::uint64_t{text.size() & 0xffU} << 56U);
  state.v[2] ^= 0xffU;
  for (int i = 0; i < 4; ++i) state.round();
  return state.v[0] ^ state.v[1] ^ state.v[2] ^ state.v[3];
}

struct Kept {
  std::array<std::uint8_t, 2> prefix;
  int length;  // bits by which it is recognised
  int kept;    // bits that stay
};

constexpr std::array<Kept, 7> kKeptV4 = {{{{10, 0}, 8, 8},
                                          {{172, 16}, 12, 12},
                                          {{192, 168}, 16, 16},
                                          {{169, 254}, 16, 16},
                                          {{100, 64}, 10, 10},
                                          {{127, 0}, 8, 32},
                                          {{224, 0}, 3, 32}}};
constexpr int kKeptElse = 8;
constexpr std::array<Kept, 3> kKeptV6 = {
    {{{0xfe, 0x80}, 10, 64}, {{0xff, 0x00}, 8, 128}, {{0xfc, 0x00}, 7, 8}}};

template <std::size_t Count>
int kept_bits(const Address& address, const std::array<Kept, Count>& table) {
  for (const auto& row : table) {
    Address prefix{.v6 = address.v6};
    std::ranges::copy(row.prefix, prefix.bytes.begin());
    if (address.shares_prefix(prefix, row.length)) return row.kept;
  }
  return kKeptElse;
}

bool is_mapped(const Address& address) {
  constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return address.v6 && std::equal(kPrefix.begin(), kPrefix.end(), address.bytes.begin());
}

int kept_bits(const Address& address) {
  if (address.unspecified() || address.loopback()) return address.bits();
  return address.v6 ? kept_bits(address, kKeptV6) : kept_bits(address, kKeptV4);
}

bool bit_of(const Address& address, int index) {
  const auto byte = address.bytes.at(static_cast<std::size_t>(index) / 8);
  return (byte >> (7U - static_cast<unsigned>(index) % 8U) & 1U) != 0;
}

void flip(Address& address, int index) {
  auto& byte = address.bytes.at(static_cast<std::size_t>(index) / 8);
  byte = static_cast<std::uint8_t>(byte ^ (0x80U >> static_cast<unsigned>(index) % 8U));
}

// The family and the first `length` bits, which is what the next bit hangs on.
std::string prefix_text(const Address& address, int length) {
  std::string text(1, address.v6 ? '6' : '4');
  text += static_cast<char>(length);
  for (int i = 0; i < length; ++i) text += bit_of(address, i) ? '1' : '0';
  return text;
}

bool is_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_hardware_address(std::string_view text) {
  return (text.size() == 17 || text.size() == 59) && text[2] == ':' && text[5] == ':';
}

}  // namespace

Scrambler::Scrambler(std::string_view word)
    : key0_(siphash(0, 0, word)), key1_(siphash(1, 0, word)) {}

std::uint64_t Scrambler::hash(std::string_view text) const {
  return siphash(key0_, key1_, text);
}

Address Scrambler::address(const Address& original) const {
  if (is_mapped(original)) {
    Address inner;
    std::copy_n(original.bytes.begin() + 12, 4, inner.bytes.begin());
    inner = address(inner);
    Address outer = original;
    std::copy_n(inner.bytes.begin(), 4, outer.bytes.begin() + 12);
    return outer;
  }
  Address other = original;
  for (int i = kept_bits(original); i < original.bits(); ++i) {
    if ((hash(prefix_text(original, i)) & 1U) != 0) flip(other, i);
  }
  return other;
}

std::string Scrambler::digits(std::string_view original) const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string plain;
  for (const char c : original) {
    if (is_digit(c)) plain += c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  // "0000..." and "ffff..." stand for none and all.
  const bool special = plain.find_first_not_of(plain.substr(0, 1)) == std::string::npos;
  if (special) return std::string(original);
  const bool hardware = is_hardware_address(original);
  std::string other;
  std::size_t count = 0;
  for (const char c : original) {
    if (!is_digit(c)) {
      other += c;
      continue;
    }
    const auto random = hash(fmt::format("d{}{}", count, plain)) & 0xfU;
    const bool kept_bits = hardware && count == 1;
    const auto old = kDigits.find(plain[count]);
    other += kDigits[kept_bits ? (random & 0xcU) | (old & 0x3U) : random];
    ++count;
  }
  return other;
}

std::string Scrambler::name(std::string_view prefix, std::string_view original) const {
  const auto number = hash(fmt::format("n{}", original)) & 0xffffffffU;
  return fmt::format("{}{:08x}", prefix, number);
}

}  // namespace distdoctor::capture
