#include "exam/said.h"

#include <algorithm>
#include <utility>

namespace distdoctor::exam {
namespace {

// `bash run.sh` is this machine's to run, so a run.sh that is not here is a mistake. What srun or
// mpirun would start may be there on the nodes alone: they are launches themselves, and then it is
// no more than a gap.
Result<void> script_is_here(const std::vector<std::string>& command,
                            const rules::CommandReading& reading) {
  if (!reading.launches.empty()) return {};
  for (const std::string& word : command) {
    const bool missing =
        std::ranges::find(reading.notes, word + ": cannot be read") != reading.notes.end();
    if (!missing) continue;
    return failure("read the script " + word,
                   "there is no such file on this machine, or it cannot be read; name it as this "
                   "machine sees it, or say --master HOST:PORT in its place");
  }
  return {};
}

}  // namespace

Result<rules::Said> read_said(const std::vector<std::string>& command,
                              Settings options,
                              Settings environment,
                              const rules::ScriptReader& read) {
  rules::Said said{.options = std::move(options), .environment = std::move(environment)};
  if (!command.empty()) {
    DD_TRY(said.command, rules::read_command(command, read));
    DD_TRY(script_is_here(command, said.command));
  }
  return said;
}

}  // namespace distdoctor::exam
