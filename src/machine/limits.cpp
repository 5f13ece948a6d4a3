#include "machine/limits.h"

#include <sys/resource.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace distdoctor::machine {
namespace {

struct LimitName {
  std::string_view name;
  __rlimit_resource resource;
};
constexpr std::array<LimitName, 5> kLimits = {{{"memlock", RLIMIT_MEMLOCK},
                                               {"nofile", RLIMIT_NOFILE},
                                               {"nproc", RLIMIT_NPROC},
                                               {"stack", RLIMIT_STACK},
                                               {"core", RLIMIT_CORE}}};

std::optional<std::int64_t> limit_value(rlim_t value) {
  return value == RLIM_INFINITY ? std::nullopt : std::optional(static_cast<std::int64_t>(value));
}

using Limits = Result<std::map<std::string, Limit>>;

// 0 is ourselves.
Limits limits_of(int pid) {
  std::map<std::string, Limit> limits;
  for (const auto& [name, resource] : kLimits) {
    rlimit limit{};
    if (::prlimit(pid, resource, nullptr, &limit) != 0) {
      return std::unexpected(errno_error("prlimit", name));
    }
    limits.emplace(name, Limit{limit_value(limit.rlim_cur), limit_value(limit.rlim_max)});
  }
  return limits;
}

std::optional<Limits>& kept() {
  static std::optional<Limits> limits;
  return limits;
}

}  // namespace

Limits read_limits() {
  return kept() ? *kept() : limits_of(0);
}

void keep_limits_of(int pid) {
  kept() = limits_of(pid);
}

}  // namespace distdoctor::machine
