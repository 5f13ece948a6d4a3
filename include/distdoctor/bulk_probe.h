// What the probe of a path sends by TCP, and its figures are judged by (PathMtu::bulk_bytes).
#pragma once

#include <cstdint>

namespace distdoctor {

// Many times a full segment, and more than a sender hands to the card at once.
inline constexpr std::int64_t kBulkBytes = 262'144;

}  // namespace distdoctor
