// How long a collector may wait for a child.
#pragma once

#include <distdoctor/observed.h>
#include <distdoctor/plan.h>

#include "base/deadline.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace distdoctor::collect {

// `patience`, or what the request leaves, less the time to send what was seen.
inline Deadline end_of(const CollectRequest& request, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kToFinish{500};
  const std::chrono::milliseconds within(request.within_ms);
  return Deadline::after(within <= kToFinish ? patience : std::min(patience, within - kToFinish));
}

// Silence says something of the machine only where it was waited for. Under a shorter budget it is
// a gap of ours.
template <class T>
void forgive_silence(Observed<T>& answer,
                     std::chrono::milliseconds waited,
                     std::chrono::milliseconds enough) {
  if (answer.known() || answer.why().kind != Why::timed_out || waited >= enough) return;
  answer = Unknown{Why::not_collected,
                   "no answer within the " + std::to_string(waited.count()) + " ms that were left"};
}

}  // namespace distdoctor::collect
