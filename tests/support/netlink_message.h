// Messages of netlink(7), built byte by byte.
#pragma once

#include <distdoctor/address.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {

class Message {
 public:
  template <class Header>
  Message(int type, const Header& header) {
    nlmsghdr start{};
    start.nlmsg_type = static_cast<std::uint16_t>(type);
    add_bytes(&start, sizeof start);
    add_bytes(&header, sizeof header);
  }
  Message& add(int type, std::string_view value) {
    const rtattr head{static_cast<unsigned short>(RTA_LENGTH(value.size())),
                      static_cast<unsigned short>(type)};
    add_bytes(&head, sizeof head);
    add_bytes(value.data(), value.size());
    return *this;
  }
  Message& add(int type, std::uint32_t value) {
    return add(type, std::string_view(reinterpret_cast<const char*>(&value), sizeof value));
  }
  Message& add(int type, const Address& address) {
    return add(type, std::string_view(reinterpret_cast<const char*>(address.bytes.data()),
                                      address.v6 ? 16 : 4));
  }
  // The kernel's view of it; valid until the next change.
  nlmsghdr* get() {
    words_.assign(bytes_.size() / 4 + 1, 0);
    std::memcpy(words_.data(), bytes_.data(), bytes_.size());
    auto* const header = reinterpret_cast<nlmsghdr*>(words_.data());
    header->nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
    return header;
  }

 private:
  void add_bytes(const void* from, std::size_t count) {
    bytes_.append(static_cast<const char*>(from), count);
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }
  std::string bytes_;
  std::vector<std::uint32_t> words_;
};

// An attribute inside of another one, padded.
inline std::string attribute(int type, std::string_view value) {
  const rtattr head{static_cast<unsigned short>(RTA_LENGTH(value.size())),
                    static_cast<unsigned short>(type)};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += value;
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

}  // namespace distdoctor::testing
