// Sizes and durations as people write and read them.
#pragma once

#include "base/error.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace distdoctor {

std::string human_bytes(std::uint64_t bytes);    // "512 B", "1.5 MiB"
std::string human_bits_per_second(double bits);  // "950 Mbit/s", "25 Gbit/s"
std::string human_duration(
    std::chrono::nanoseconds t);  // "3.2 ms", "1.9 s", "5 min 10 s", "2 d 3 h"

// "500ms", "10s", "2m" (minutes), "1h", and a bare number of seconds such as "10" or "0.5".
// From 1 ms to 7 days.
Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// "65536", "64k", "512M", "2GiB", "1.5G": powers of 1024 whatever the spelling, as in mount(8).
Result<std::uint64_t> parse_bytes(std::string_view text);

}  // namespace distdoctor
