// Netlink requests over libnl, with a bound on time and on rows. Included by src/machine only.
#pragma once

#include <distdoctor/address.h>

#include "base/error.h"

#include <netlink/attr.h>
#include <netlink/msg.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace distdoctor::machine {

// What is sent: a message type of rtnetlink(7) or sock_diag(7) with its fixed header, then
// attributes.
struct NetlinkRequest {
  int protocol = 0;       // NETLINK_ROUTE, NETLINK_SOCK_DIAG
  int type = 0;           // RTM_GETLINK, ...
  bool dump = true;       // all rows; else one
  std::string_view what;  // for errors: "the links"
  std::string body = {};  // the fixed header, then attributes; netlink_append adds one
};

// The bytes of a plain struct of the kernel's.
template <class Struct>
std::string netlink_bytes(const Struct& fixed) {
  return {reinterpret_cast<const char*>(&fixed), sizeof fixed};
}
void netlink_append(std::string& body, int type, std::span<const std::uint8_t> value);

// Calls `take` for each answer, until it says stop (false), the answers end, or time is over.
// A dump that the kernel calls interrupted is repeated by the caller: ErrorValue EINTR.
using TakeMessage = std::function<bool(nlmsghdr*)>;
Result<void> netlink_ask(const NetlinkRequest& request, const TakeMessage& take);

// The attributes behind a fixed header of type Struct; absent ones are null.
template <class Struct, int Max>
class Attributes {
 public:
  explicit Attributes(nlmsghdr* message) {
    valid_ = nlmsg_valid_hdr(message, sizeof(Struct)) != 0 &&
             nlmsg_parse(message, sizeof(Struct), table_.data(), Max, nullptr) == 0;
    if (valid_) fixed_ = static_cast<const Struct*>(nlmsg_data(message));
  }
  [[nodiscard]] bool valid() const { return valid_; }
  const Struct* operator->() const { return fixed_; }
  [[nodiscard]] nlattr* at(int type) const { return table_.at(static_cast<std::size_t>(type)); }

 private:
  std::array<nlattr*, static_cast<std::size_t>(Max) + 1> table_{};
  const Struct* fixed_ = nullptr;
  bool valid_ = false;
};

// Of attributes that may be absent or shorter than they should be.
std::string text_of(nlattr* attribute);
std::optional<std::uint32_t> number_of(nlattr* attribute);  // of 1, 2 or 4 bytes
std::optional<Address> address_of(nlattr* attribute);       // 4 or 16 bytes
std::string mac_of(nlattr* attribute);                      // "02:42:ac:11:00:02"

}  // namespace distdoctor::machine
