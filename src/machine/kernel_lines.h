// Which lines of the kernel's ring buffer tell something that is asked for.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace distdoctor::machine {

inline constexpr std::size_t kKernelLineKinds = 15;

// Its kind, below kKernelLineKinds; none for all the others.
std::optional<std::size_t> kernel_line_kind(std::string_view line);

}  // namespace distdoctor::machine
