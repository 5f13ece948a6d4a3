// Variables of the job that only its own shell knows. A look-up that checks of this folder share.
#pragma once

#include <distdoctor/followed.h>

#include <string>
#include <utility>

namespace distdoctor::checks::env {

// A value that only the job's shell knows is neither set nor absent.
inline void see_value(const Case& c, const std::string& name, Judge& judge) {
  for (const Prediction& prediction : c.cluster.predicted.nodes) {
    auto why = not_followed(c.cluster.job, prediction, name);
    if (why) judge.miss({.node = prediction.node, .fact = name, .why = *std::move(why)});
  }
}

}  // namespace distdoctor::checks::env
