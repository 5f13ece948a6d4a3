// The modules in their fixed order: cheap and decisive first.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace distdoctor {

inline constexpr std::array<std::string_view, 12> kAreas = {
    "env", "rendezvous", "net",        "firewall", "host", "rdma",
    "gpu", "software",   "collective", "process",  "log",  "run"};

constexpr std::size_t area_order(std::string_view area) {
  std::size_t i = 0;
  while (i < kAreas.size() && kAreas[i] != area) ++i;
  return i;
}

// "net" of "net/mtu_mismatch" and of "net-mtu-mismatch".
constexpr std::string_view area_of(std::string_view name) {
  return name.substr(0, name.find_first_of("/-"));
}

}  // namespace distdoctor
