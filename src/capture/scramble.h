// Stand-ins for names and addresses: the same word and the same original always give the same one,
// and without the word nobody can tell what it was.
#pragma once

#include <distdoctor/address.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace distdoctor::capture {

class Scrambler {
 public:
  explicit Scrambler(std::string_view word);

  // Two addresses share as many leading bits afterwards as before (J. Xu et al., "Prefix-Preserving
  // IP Address Anonymization", 2002), so that subnets stay subnets. What kind of address it is
  // stays too: private, link-local, and so on; loopback, multicast and unspecified ones stay
  // themselves.
  [[nodiscard]] Address address(const Address& original) const;
  // Hexadecimal digits become others, all else stays: hardware addresses, GUIDs, UUIDs. Of a
  // hardware address (6 or 20 pairs) the bits for "group" and "local" stay.
  [[nodiscard]] std::string digits(std::string_view original) const;
  // "h3f9a1c02" of a prefix and a name.
  [[nodiscard]] std::string name(std::string_view prefix, std::string_view original) const;

 private:
  [[nodiscard]] std::uint64_t hash(std::string_view text) const;

  std::uint64_t key0_ = 0;
  std::uint64_t key1_ = 0;
};

}  // namespace distdoctor::capture
