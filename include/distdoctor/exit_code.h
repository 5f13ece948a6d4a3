// The exit codes of every command; the output format never changes them.
#pragma once

namespace distdoctor {

inline constexpr int kExitHealthy = 0;  // no finding at or above --fail-on
inline constexpr int kExitFindings = 1;
inline constexpr int kExitUsage = 2;  // usage, or unreadable input
inline constexpr int kExitInconclusive =
    3;  // a named peer gave no facts, or a planned dial has no outcome
inline constexpr int kExitOurBug = 70;  // EX_SOFTWARE of sysexits.h

}  // namespace distdoctor
