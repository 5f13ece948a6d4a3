// How NCCL reads a number (param.cc: strtoll, base 0): "0x6a" is 106, "010" is 8, "on" is 0.
#pragma once

#include <cstdlib>
#include <string>

namespace distdoctor {

inline long long nccl_number(const std::string& text) {
  return std::strtoll(text.c_str(), nullptr, 0);
}

}  // namespace distdoctor
