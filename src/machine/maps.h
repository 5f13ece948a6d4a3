// What a process maps: /proc/PID/maps (man 5 proc).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::machine {

// The files that still have a name, each once, in their order.
std::vector<std::string> mapped_files(std::string_view maps);

}  // namespace distdoctor::machine
