// What a refusal means that came as an ICMP error; pure.
#pragma once

#include <distdoctor/facts/pairs.h>

#include <optional>
#include <string>

namespace distdoctor::probe {

struct IcmpError {
  bool v6 = false;
  int type = 0;
  int code = 0;
  Address sender = {};
  bool operator==(const IcmpError&) const = default;
};

// RFC 792, 1122, 1812 and 4443: which of a failed connect's outcomes this is. None: the message
// does not end a connection attempt (fragmentation needed, source quench, ...).
std::optional<Outcome> outcome_of(const IcmpError& error);
// "ICMP 3/13 from 10.0.0.1", "ICMPv6 1/1 from fd00::1".
std::string text_of(const IcmpError& error);

// What connect(2) says without more. `at_once`: it never left this node, so that EACCES is a
// `prohibit` route of our own and no ICMP message from afar.
Outcome outcome_of_errno(int number, bool at_once);

}  // namespace distdoctor::probe
