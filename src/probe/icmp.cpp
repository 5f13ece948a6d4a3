#include "probe/icmp.h"

#include <cerrno>

namespace distdoctor::probe {
namespace {

// Destination unreachable, type 3. Codes 9, 10 and 13 say "prohibited"; 2 (protocol) is what a
// filter may pick for a reject, since every host has TCP.
std::optional<Outcome> outcome_v4(int code) {
  switch (code) {
    case 0:
    case 6:
    case 11:
      return Outcome::net_unreachable;
    case 1:
    case 7:
    case 8:
    case 12:
      return Outcome::host_unreachable;
    case 2:
    case 9:
    case 10:
    case 13:
    case 14:
    case 15:
      return Outcome::prohibited;
    case 3:
      return Outcome::refused;
    default:
      return std::nullopt;
  }
}

// Destination unreachable, type 1. 5 and 6: policy and reject routes.
std::optional<Outcome> outcome_v6(int code) {
  switch (code) {
    case 0:
      return Outcome::net_unreachable;
    case 1:
    case 5:
    case 6:
      return Outcome::prohibited;
    case 2:
    case 3:
      return Outcome::host_unreachable;
    case 4:
      return Outcome::refused;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<Outcome> outcome_of(const IcmpError& error) {
  if (error.v6) return error.type == 1 ? outcome_v6(error.code) : std::nullopt;
  return error.type == 3 ? outcome_v4(error.code) : std::nullopt;
}

std::string text_of(const IcmpError& error) {
  return std::string(error.v6 ? "ICMPv6 " : "ICMP ") + std::to_string(error.type) + "/" +
         std::to_string(error.code) + " from " + error.sender.text();
}

Outcome outcome_of_errno(int number, bool at_once) {
  switch (number) {
    case ECONNREFUSED:
      return Outcome::refused;
    case ETIMEDOUT:
      return Outcome::timed_out;
    case EHOSTUNREACH:
    case EHOSTDOWN:
      return Outcome::host_unreachable;
    case ENETUNREACH:
    case ENETDOWN:
    case ENONET:
      return Outcome::net_unreachable;
    case ECONNRESET:
    case EPIPE:
      return Outcome::reset;
    case EACCES:
    case ENOPROTOOPT:
      return at_once ? Outcome::local_error : Outcome::prohibited;
    default:
      return Outcome::local_error;
  }
}

}  // namespace distdoctor::probe
