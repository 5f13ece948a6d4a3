// Where our helpers (src/workers) are, and how one travels with the program to another node.
#pragma once

#include "base/error.h"
#include "base/fd.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::machine {

// What may be run as the helper of that name, the best first: in libexec/distdoctor beside our own
// program, or beside the folder above it (bin/../libexec); or the one that came with us.
std::vector<std::string> helper_programs(const std::string& name);

// `program` with the helper behind it, as --push sends it; what starts programs looks only at the
// front. One helper is all there is: "vendor".
std::string with_helper(std::string program, std::string_view helper);
// The helper behind a program, copied to memory, from where it can be run. Errors: there is none,
// or the kernel lets no program run from memory (vm.memfd_noexec).
Result<Fd> helper_behind(const std::string& program_path);

// For a program that was pushed: from now on only the helper behind it is run, or none. Beside it,
// in a folder that everybody may write to, could stand anything. Before any thread is started.
void trust_only_helper_behind_us();

}  // namespace distdoctor::machine
