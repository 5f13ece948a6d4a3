// In which places a layer is sick; and, where no switch helps, which place it is.
#pragma once

#include "bisect/verdict.h"

namespace distdoctor::bisect {

// Where the layer is sick. No units: everywhere, or what runs out before the search ends does not
// tell.
Known<Where> place_of_layer(const Ask& ask, Layer layer);

struct Culprit {
  Layer layer = Layer::none;  // node, gpu, link or setup
  Where where = {};
};
// No switch helps. `slow`: that two nodes together are slower than one alone says nothing.
Known<std::optional<Culprit>> culprit(const Ask& ask, bool slow);

}  // namespace distdoctor::bisect
