// Which way Gloo connects: of two nodes only the one with the numerically larger address dials
// (gloo tcp/pair.cc), so that the other way may be closed.
#pragma once

#include <distdoctor/views.h>

#include <algorithm>

namespace distdoctor::checks {

// Whether Gloo on `from` would dial this address; also where nobody can tell.
inline bool gloo_dials(const ClusterFacts& cluster, const NodeFacts& from, const Address& to) {
  const Prediction* prediction = find_prediction(cluster, from.host);
  if (prediction == nullptr || !prediction->gloo.known()) return true;
  const auto& devices = prediction->gloo->devices;
  return devices.empty() || std::ranges::any_of(devices, [&](const Choice& choice) {
           return choice.address.v6 != to.v6 || !(choice.address < to);
         });
}

}  // namespace distdoctor::checks
