#include "sockets.h"

#include "script.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <thread>

namespace distdoctor::sim {
namespace {

constexpr int kLook_ms = 20;  // how late a stop may be seen

bool ready(int fd, short events, const Stop& stop) {
  while (!stop) {
    pollfd poll{fd, events, 0};
    if (::poll(&poll, 1, kLook_ms) > 0) return true;
  }
  return false;
}

std::vector<Interface> all_interfaces() {
  std::vector<Interface> all;
  ifaddrs* rows = nullptr;
  if (::getifaddrs(&rows) != 0) return all;
  for (const ifaddrs* row = rows; row != nullptr; row = row->ifa_next) {
    const bool usable = row->ifa_addr != nullptr && row->ifa_addr->sa_family == AF_INET &&
                        (row->ifa_flags & IFF_RUNNING) != 0;
    if (!usable || std::ranges::find(all, row->ifa_name, &Interface::name) != all.end()) continue;
    Interface one{.name = row->ifa_name};
    std::memcpy(&one.address, row->ifa_addr, sizeof one.address);
    all.push_back(one);
  }
  ::freeifaddrs(rows);
  return all;
}

std::vector<Interface> chosen(std::vector<Interface> all, std::string list) {
  const bool unwanted = list.starts_with('^');
  if (unwanted) list.erase(0, 1);
  const bool exact = list.starts_with('=');
  if (exact) list.erase(0, 1);
  std::vector<std::string> names;
  std::istringstream words(list);
  for (std::string name; std::getline(words, name, ',');) names.push_back(name);
  std::erase_if(all, [&](const Interface& one) {
    const bool named = std::ranges::any_of(names, [&](const std::string& name) {
      return exact ? one.name == name : one.name.starts_with(name);
    });
    return named == unwanted;
  });
  return all;
}

}  // namespace

std::vector<Interface> socket_interfaces() {
  const auto all = all_interfaces();
  if (const auto list = variable("NCCL_SOCKET_IFNAME"); list.size() > 1) return chosen(all, list);
  for (const char* const list : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}) {
    auto some = chosen(all, list);
    if (!some.empty()) return some;
  }
  return {};
}

std::string text_of(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return std::string(text.data()) + "<" + std::to_string(ntohs(address.sin_port)) + ">";
}

int listen_on(sockaddr_in& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  address.sin_port = 0;
  socklen_t size = sizeof address;
  auto* const where = reinterpret_cast<sockaddr*>(&address);
  const bool open = fd >= 0 && ::bind(fd, where, size) == 0 && ::listen(fd, 128) == 0 &&
                    ::getsockname(fd, where, &size) == 0;
  if (open) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

int accept_from(int listener, const Stop& stop) {
  return ready(listener, POLLIN, stop) ? ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
}

int connect_to(const sockaddr_in& address, const Stop& stop) {
  while (!stop) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd, where, sizeof address) == 0) return fd;
    int error = errno;
    if (error == EINPROGRESS && ready(fd, POLLOUT, stop)) {
      socklen_t size = sizeof error;
      ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0) return fd;
    }
    ::close(fd);
    if (error != ECONNREFUSED) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(kLook_ms));
  }
  return -1;
}

bool send_all(int fd, const void* data, std::size_t bytes, const Stop& stop) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    if (!ready(fd, POLLOUT, stop)) return false;
    const auto sent = ::send(fd, next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (sent <= 0) continue;
    next += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool receive_all(int fd, void* data, std::size_t bytes, const Stop& stop) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    if (!ready(fd, POLLIN, stop)) return false;
    const auto got = ::recv(fd, next, bytes, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got < 0) continue;
    next += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace distdoctor::sim
