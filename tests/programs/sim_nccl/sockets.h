// Real sockets of the SIMULATED libnccl.so.2, and on which interface. Every wait ends when `stop`
// becomes true.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <vector>

namespace distdoctor::sim {

using Stop = std::atomic<bool>;

struct Interface {
  std::string name = {};
  sockaddr_in address = {};
};

// Those that NCCL 2.28 takes for sockets: by NCCL_SOCKET_IFNAME; else all but docker, lo and
// virbr; else lo. IPv4 only; the first one is the bootstrap's.
std::vector<Interface> socket_interfaces();

std::string text_of(const sockaddr_in& address);  // "10.0.0.1<4242>"

// Listens on a free port there; -1 on failure. `address` gets the port.
int listen_on(sockaddr_in& address);
int accept_from(int listener, const Stop& stop);
// Tries again while it is refused.
int connect_to(const sockaddr_in& address, const Stop& stop);

// Errors (and stop): false.
bool send_all(int fd, const void* data, std::size_t bytes, const Stop& stop);
bool receive_all(int fd, void* data, std::size_t bytes, const Stop& stop);

}  // namespace distdoctor::sim
