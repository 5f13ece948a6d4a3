// What `distdoctor env` prints: exports to eval, the reasons as comments.
#pragma once

#include <distdoctor/facts/predicted.h>

#include <ostream>
#include <string_view>

namespace distdoctor::render {

// `node`: whose values to print where they differ; empty: all of them, the others as comments.
void environment(const Recommended& recommended, std::string_view node, std::ostream& out);

}  // namespace distdoctor::render
