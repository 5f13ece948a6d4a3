// Stand-ins for names and addresses: the same word and the same original always give the same one,
// and without the word nobody can tell what it was.
#pragma once

#include <distdoctor/address.h>

#include "base/error.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace distdoctor::capture {

class Scrambler {
 public:
  explicit Scrambler(std::string_view word);

  // Two addresses share as many leading bits afterwards as before (J. Xu et al., "Prefix-Preserving
  // IP Address Anonymization", 2002), so that subnets stay subnets, and no two become one. What
  // kind of address it is stays too: private, shared, link-local, ULA; loopback, multicast and
  // unspecified ones stay themselves, and the first eight bits of all.
  [[nodiscard]] Address address(const Address& original) const;
  // Hexadecimal digits become others, all else stays: hardware addresses, GUIDs, UUIDs. What begins
  // alike begins alike afterwards, so that "GPU-9f2c" still names a GPU. Of a hardware address (6
  // or 20 pairs) the bits for "group" and "local" stay.
  [[nodiscard]] std::string digits(std::string_view original) const;
  // "h3f9a1c02" of a prefix of one letter and a name.
  [[nodiscard]] std::string name(char prefix, std::string_view original) const;
  // Whether it is what `name` makes.
  static bool is_name(std::string_view text);

 private:
  [[nodiscard]] std::uint64_t hash(std::string_view text) const;

  std::uint64_t key0_ = 0;
  std::uint64_t key1_ = 0;
};

// For who names no word: nobody else will have the same one.
Result<std::string> random_word();

}  // namespace distdoctor::capture
