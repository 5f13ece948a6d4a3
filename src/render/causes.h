// The ranked causes with their evidence, their fixes and their consequences.
#pragma once

#include <distdoctor/diagnosis.h>

#include "render/style.h"

#include <ostream>
#include <vector>

namespace distdoctor::render {

// What differs from a cause further up in the node alone is told in short, unless all is asked for
// (-v): nobody reads one fix on sixty nodes sixty times.
void causes(const std::vector<Cause>& causes, const Style& style, std::ostream& out);

}  // namespace distdoctor::render
