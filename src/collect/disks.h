// Where a job writes beside its checkpoints, and what room there is.
#pragma once

#include <distdoctor/facts/world.h>
#include <distdoctor/job.h>

#include "machine/machine.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// The folder that a file is made in: of "/logs/nccl.%h.%p.log" "/logs", of "run/x" the one below
// `working_folder`. None: it is no file of a disk ("", "/dev/stdout").
std::optional<std::string> folder_of(std::string_view file, std::string_view working_folder);
// Of /proc/sys/kernel/core_pattern; none where a program takes the dumps ("|/usr/lib/...").
std::optional<std::string> folder_of_cores(std::string_view pattern,
                                           std::string_view working_folder);

struct Place {
  std::string purpose = {};
  std::string path = {};
  bool operator==(const Place&) const = default;
};
// Of one environment and its working folder; the latter may be empty.
std::vector<Place> places_of(const Settings& settings, const std::string& working_folder);

// Ours and those of the workers that see our files. Each path of a purpose once.
std::vector<Disk> read_disks(const machine::Machine& machine);

}  // namespace distdoctor::collect
