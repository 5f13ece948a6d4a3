// The kernel's ring buffer: which of its lines checks know.
#pragma once

#include <distdoctor/facts/kernel_log.h>

#include <optional>
#include <string_view>

namespace distdoctor::collect {

// "<6>[   12.345678][  T123] text"; the caller in brackets is CONFIG_PRINTK_CALLER's. Without a
// stamp (printk.time=0) the time is 0. None for a line without a level in front: it is the rest of
// the one before.
std::optional<KernelLine> parse_kernel_line(std::string_view line);
// Of each kind the last ones, at most kMostOfAKind: a flood of one does not wash away another.
inline constexpr int kMostOfAKind = 100;
KernelLog parse_kernel_log(std::string_view text, double now_s);

}  // namespace distdoctor::collect
