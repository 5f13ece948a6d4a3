// Why nobody dialled the meeting point from a node that may well be able to reach it: nothing is
// known of the way there then, unlike where a dial failed.
#pragma once

#include <string_view>

namespace distdoctor {

inline constexpr std::string_view kMasterUnresolved = "MASTER_ADDR was not resolved";

}  // namespace distdoctor
