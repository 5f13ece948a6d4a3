// Where our helpers (src/workers) are, and how they travel with the program to another node.
#pragma once

#include "base/error.h"
#include "base/fd.h"

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::machine {

// What may be run as the helper of that name, the best first: in libexec/distdoctor beside our own
// program, or beside the folder above it (bin/../libexec); or what came behind us.
std::vector<std::string> helper_programs(const std::string& name);

// `program` with a helper behind it, as --push sends it; what starts programs looks only at the
// front. Several follow one another. A name has 31 bytes at most.
std::string with_helper(std::string program, std::string_view name, std::string_view helper);
// The helpers behind a program by name, copied to memory, from where they can be run; none where
// none came. Errors: the program cannot be read, or the kernel lets no program run from memory
// (vm.memfd_noexec).
using Helpers = std::map<std::string, Fd, std::less<>>;
Result<Helpers> helpers_behind(const std::string& program_path);

// For a program that was pushed: from now on only helpers behind it are run. Beside it, in a folder
// that everybody may write to, could stand anything. Before any thread is started.
void trust_only_helpers_behind_us();

}  // namespace distdoctor::machine
