// Words of NCCL's own log that tell what a communicator does: init.cc, param.cc, transport/*.cc and
// net.cc, 2.14 to 2.28.
#pragma once

#include <array>
#include <string_view>

namespace distdoctor::nccl_log {

inline constexpr std::string_view kSetByEnvironment = " set by environment to ";
inline constexpr std::string_view kSet = " set to ";     // the same, of other lines
inline constexpr std::string_view kVia = " via ";        // the transport of a connection
inline constexpr std::string_view kUsing = " : Using ";  // interfaces of sockets, and HCAs
inline constexpr std::string_view kBootstrap = "Bootstrap: Using ";
inline constexpr std::string_view kNetwork = "Using network ";
inline constexpr std::string_view kVersion = "NCCL version ";
inline constexpr std::string_view kWarning = " NCCL WARN ";

// A line that is worth keeping has one of them.
inline constexpr std::array kMarks = {kWarning, kSetByEnvironment, kSet,     kVia,
                                      kUsing,   kNetwork,          kVersion, kBootstrap};

}  // namespace distdoctor::nccl_log
