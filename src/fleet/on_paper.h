// A machine on paper (src/capture) read as an agent reads a live one.
#pragma once

#include <distdoctor/facts.h>

#include "base/error.h"

#include <string>

namespace distdoctor::fleet {

// `path`: a captured machine, or a folder with machine.json beside root/. Its host is the machine's
// own hostname.
Result<NodeFacts> read_on_paper(const std::string& path);

}  // namespace distdoctor::fleet
