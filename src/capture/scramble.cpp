#include "capture/scramble.h"

#include <fmt/format.h>

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <vector>

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

// What is recognised by its first `length` bits keeps its first `kept` ones.
struct Kept {
  std::string_view prefix;
  int length;
  int kept;
};

constexpr std::array<Kept, 13> kKept = {{{"10.0.0.0", 8, 8},       // RFC 1918
                                         {"172.16.0.0", 12, 12},   // RFC 1918
                                         {"192.168.0.0", 16, 16},  // RFC 1918
                                         {"169.254.0.0", 16, 16},  // RFC 3927
                                         {"100.64.0.0", 10, 10},   // RFC 6598
                                         {"127.0.0.0", 8, 32},
                                         {"224.0.0.0", 3, 32},  // multicast, and masks of subnets
                                         {"0.0.0.0", 8, 32},
                                         {"::", 127, 128},  // none, and loopback
                                         {"::ffff:0:0", 96, 96},
                                         {"fe80::", 10, 64},
                                         {"ff00::", 8, 128},
                                         {"fc00::", 7, 8}}};
constexpr int kKeptElse = 8;

struct KeptPrefix {
  Address prefix;
  int length;
  int kept;
};

const std::vector<KeptPrefix>& kept_prefixes() {
  static const std::vector<KeptPrefix> all = [] {
    std::vector<KeptPrefix> rows;
    for (const auto& [text, length, kept] : kKept) {
      if (const auto prefix = Address::parse(text)) rows.push_back({*prefix, length, kept});
    }
    return rows;
  }();
  return all;
}

// Whether the bit at `index` stays. It stays above each special prefix, too, or an address beside
// one could be moved into it.
bool stays(const Address& address, int index) {
  if (index < kKeptElse) return true;
  return std::ranges::any_of(kept_prefixes(), [&](const KeptPrefix& row) {
    const bool inside = address.shares_prefix(row.prefix, row.length);
    const bool above = index < row.length && address.shares_prefix(row.prefix, index);
    return above || (inside && index < row.kept);
  });
}

bool is_mapped(const Address& address) {
  constexpr std::array<std::uint8_t, 12> kPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return address.v6 && std::equal(kPrefix.begin(), kPrefix.end(), address.bytes.begin());
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
  for (int i = kKeptElse; i < original.bits(); ++i) {
    if (!stays(original, i) && (hash(prefix_text(original, i)) & 1U) != 0) flip(other, i);
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
    const auto change = hash("d" + plain.substr(0, count)) & (hardware && count == 1 ? 0xcU : 0xfU);
    other += kDigits[kDigits.find(plain[count]) ^ change];
    ++count;
  }
  return other;
}

std::string Scrambler::name(char prefix, std::string_view original) const {
  return fmt::format("{}{:08x}", prefix, hash(fmt::format("n{}", original)) & 0xffffffffU);
}

bool Scrambler::is_name(std::string_view text) {
  return text.size() == 9 && std::string_view("hduw").contains(text.front()) &&
         std::ranges::all_of(text.substr(1), is_digit);
}

Result<std::string> random_word() {
  std::array<std::uint64_t, 2> bits{};
  const auto got = ::getrandom(bits.data(), sizeof bits, 0);
  if (got != static_cast<ssize_t>(sizeof bits))
    return std::unexpected(errno_error("draw", "a random word"));
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace distdoctor::capture
