// What our own environment and NCCL's configuration files say on this machine.
#pragma once

#include <distdoctor/job.h>

#include "base/job_places.h"
#include "machine/machine.h"

#include <string>
#include <string_view>

namespace distdoctor::collect {

// Whether a launcher set the variable, as its name and the other variables tell.
Source source_of(std::string_view name, const machine::Environment& environment);

inline constexpr const char* kSystemConfig = "/etc/nccl.conf";

// The user's file is NCCL_CONF_FILE (NCCL 2.23+), or else, when that is empty too, ~/.nccl.conf in
// the home of the password database.
struct UserConfig {
  std::string path = {};  // empty: nobody knows the home folder
  bool named = false;
};
// NCCL_CONF_FILE of `said` (CollectRequest::settings) goes before that of our own environment.
UserConfig user_config(const machine::Machine& machine, const JobPlaces& said = {});

// Our own environment over user file over /etc/nccl.conf.
Settings read_settings(const machine::Machine& machine, const JobPlaces& said = {});

}  // namespace distdoctor::collect
