#include "rules/nccl/param.h"

#include <cerrno>
#include <cstdlib>

namespace distdoctor::rules {

std::string_view param_text(const Settings& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : std::string_view(found->second.value);
}

std::int64_t param_number(const Settings& settings,
                          const std::string& name,
                          std::int64_t otherwise) {
  const std::string value(param_text(settings, name));
  if (value.empty()) return otherwise;
  errno = 0;
  const std::int64_t number = std::strtoll(value.c_str(), nullptr, 0);
  return errno == 0 ? number : otherwise;
}

}  // namespace distdoctor::rules
