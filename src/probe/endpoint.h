// Addresses of the vocabulary as the kernel wants them, and the names of its refusals.
#pragma once

#include <distdoctor/address.h>

#include "base/error.h"
#include "base/fd.h"

#include <sys/socket.h>

#include <cstdint>
#include <string>

namespace distdoctor::probe {

class Endpoint {
 public:
  Endpoint() = default;
  // A zone that names no interface here becomes 0, which the kernel refuses (EINVAL).
  Endpoint(const Address& address, std::uint16_t port);

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  // For calls that fill it in: accept, getsockname, recvfrom.
  sockaddr* room() { return reinterpret_cast<sockaddr*>(&storage_); }
  [[nodiscard]] socklen_t size() const { return size_; }
  socklen_t* size_room() {
    size_ = sizeof storage_;
    return &size_;
  }
  [[nodiscard]] Address address() const;
  [[nodiscard]] std::uint16_t port() const;

 private:
  sockaddr_storage storage_ = {};
  socklen_t size_ = 0;
};

// Non-blocking, close-on-exec. `type`: SOCK_STREAM or SOCK_DGRAM.
Result<Fd> open_socket(bool v6, int type);
// The same with SO_REUSEADDR, bound to address and port (0: the kernel chooses).
Result<Fd> bound_socket(const Address& address, std::uint16_t port, int type);
Endpoint own_end(const Fd& fd);

void set_option(const Fd& fd, int level, int name, int value);
// "ECONNREFUSED"; "errno 4711" for one that has no name.
std::string errno_name(int number);

}  // namespace distdoctor::probe
