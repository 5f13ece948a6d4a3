// Variables that say where a job's libraries and files are, and their values as far as they can be
// worked out without the job's own shell.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace distdoctor {

// LD_LIBRARY_PATH, LD_PRELOAD, PATH, VIRTUAL_ENV, NCCL_NET_PLUGIN, NCCL_TOPO_FILE, ...
bool leads_to_files(std::string_view name);

using JobPlaces = std::map<std::string, std::string>;  // by name, as the job writes them

struct FilledIn {
  std::string text = {};
  bool whole = true;  // nothing of it needs a shell
  bool operator==(const FilledIn&) const = default;
};

// What the variable `name` holds that a script sets to `written`, in this environment: $NAME,
// ${NAME}, ${NAME:-text} and ${NAME:+text} are filled in. Of a list of folders the parts stay that
// can be; anything else that cannot is empty. $ORIGIN, $LIB and $PLATFORM are the loader's.
FilledIn fill_in(std::string_view name,
                 std::string_view written,
                 const std::map<std::string, std::string>& environment);

}  // namespace distdoctor
