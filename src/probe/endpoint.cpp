#include "probe/endpoint.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace distdoctor::probe {
namespace {

// memcpy between sockaddr_storage and its kinds, since a cast would break the aliasing rules.
template <class Kind>
Kind as(const sockaddr_storage& storage) {
  Kind kind{};
  std::memcpy(&kind, &storage, sizeof kind);
  return kind;
}

unsigned index_of(const std::string& zone) {
  return zone.empty() ? 0 : ::if_nametoindex(zone.c_str());
}

std::string name_of(unsigned index) {
  std::array<char, IF_NAMESIZE> name{};
  return ::if_indextoname(index, name.data()) == nullptr ? std::to_string(index)
                                                         : std::string(name.data());
}

}  // namespace

Endpoint::Endpoint(const Address& address, std::uint16_t port) {
  if (address.v6) {
    sockaddr_in6 end{};
    end.sin6_family = AF_INET6;
    end.sin6_port = htons(port);
    end.sin6_scope_id = index_of(address.zone);
    std::memcpy(&end.sin6_addr, address.bytes.data(), sizeof end.sin6_addr);
    std::memcpy(&storage_, &end, size_ = sizeof end);
  } else {
    sockaddr_in end{};
    end.sin_family = AF_INET;
    end.sin_port = htons(port);
    std::memcpy(&end.sin_addr, address.bytes.data(), sizeof end.sin_addr);
    std::memcpy(&storage_, &end, size_ = sizeof end);
  }
}

Address Endpoint::address() const {
  Address address{.v6 = storage_.ss_family == AF_INET6};
  if (address.v6) {
    const auto end = as<sockaddr_in6>(storage_);
    std::memcpy(address.bytes.data(), &end.sin6_addr, sizeof end.sin6_addr);
    if (end.sin6_scope_id != 0) address.zone = name_of(end.sin6_scope_id);
  } else {
    const auto end = as<sockaddr_in>(storage_);
    std::memcpy(address.bytes.data(), &end.sin_addr, sizeof end.sin_addr);
  }
  return address;
}

// Both kinds have the port at one place.
std::uint16_t Endpoint::port() const {
  return ntohs(as<sockaddr_in>(storage_).sin_port);
}

Result<Fd> open_socket(bool v6, int type) {
  Fd fd(::socket(v6 ? AF_INET6 : AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return std::unexpected(errno_error("socket", v6 ? "IPv6" : "IPv4"));
  if (v6) set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
  return fd;
}

Result<Fd> bound_socket(const Address& address, std::uint16_t port, int type) {
  DD_TRY(Fd fd, open_socket(address.v6, type));
  if (type == SOCK_STREAM) set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  const Endpoint end(address, port);
  if (::bind(fd.get(), end.get(), end.size()) != 0) {
    return std::unexpected(errno_error("bind", address.text() + " port " + std::to_string(port)));
  }
  return fd;
}

Endpoint own_end(const Fd& fd) {
  Endpoint end;
  static_cast<void>(::getsockname(fd.get(), end.room(), end.size_room()));
  return end;
}

void set_option(const Fd& fd, int level, int name, int value) {
  static_cast<void>(::setsockopt(fd.get(), level, name, &value, sizeof value));
}

std::string errno_name(int number) {
  const char* name = ::strerrorname_np(number);
  return name == nullptr ? "errno " + std::to_string(number) : name;
}

}  // namespace distdoctor::probe
