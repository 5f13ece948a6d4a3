// One ranked cause with its evidence, its fix and its consequences.
#pragma once

#include <distdoctor/diagnosis.h>

#include "render/style.h"

#include <cstddef>
#include <ostream>

namespace distdoctor::render {

void cause(std::size_t place, const Cause& cause, const Style& style, std::ostream& out);

}  // namespace distdoctor::render
