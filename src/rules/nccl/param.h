// A variable as NCCL_PARAM reads it (param.cc ncclLoadParam).
#pragma once

#include <distdoctor/job.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace distdoctor::rules {

// Empty where it is not set.
std::string_view param_text(const Settings& settings, const std::string& name);

// strtoll, base 0; empty and out of range are as good as unset.
std::int64_t param_number(const Settings& settings,
                          const std::string& name,
                          std::int64_t otherwise);

}  // namespace distdoctor::rules
