// How long a collector may wait for a child.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"

#include <algorithm>
#include <chrono>

namespace distdoctor::collect {

// `patience`, or what the request leaves, less the time to send what was seen.
inline Deadline end_of(const CollectRequest& request, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kToFinish{500};
  const std::chrono::milliseconds within(request.within_ms);
  return Deadline::after(within <= kToFinish ? patience : std::min(patience, within - kToFinish));
}

}  // namespace distdoctor::collect
