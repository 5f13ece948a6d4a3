// From a peer's name to the command that starts its agent; pure.
#pragma once

#include "base/error.h"
#include "fleet/fleet.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::fleet {

// Words as a shell would split them: blanks separate, quotes and backslashes keep; nothing is
// expanded and no shell runs. Errors: a quote that is not closed, no word at all.
Result<std::vector<std::string>> split_shell_words(std::string_view text);

struct Program {
  std::string path;            // where the agent is looked for first, before PATH
  std::size_t push_bytes = 0;  // > 0: what lacks it may ask for that many bytes of it
};

// The launcher's argv. The remote command is the same for every peer and every request: a script
// that finds the program and becomes `PROGRAM agent`.
// Errors: a host name that no argv should see, a bad template.
Result<std::vector<std::string>> launch_argv(std::string_view host,
                                             const LaunchOptions& options,
                                             const Program& program,
                                             int connect_timeout_s);

}  // namespace distdoctor::fleet
