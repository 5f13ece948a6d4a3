// /dev/shm: its mount, its room, and what NCCL left in it.
#pragma once

#include <distdoctor/facts/host.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

struct Mount {  // of /proc/self/mountinfo (man 5 proc)
  std::string point = {};
  std::string device = {};  // "0:27", of st_dev
  std::string filesystem = {};
  std::string options = {};  // of the mount, then those of the file system
  bool read_only = false;    // either says ro
  bool operator==(const Mount&) const = default;
};

std::optional<Mount> parse_mount(std::string_view line);
// The last one at this point hides the others.
std::optional<Mount> find_mount(std::string_view mountinfo, std::string_view point);

// The names of files below /dev/shm that a process maps: /proc/PID/maps.
std::vector<std::string> mapped_segments(std::string_view maps);

}  // namespace distdoctor::collect
