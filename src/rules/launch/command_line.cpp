#include "rules/launch/command_line.h"

#include "rules/launch/command_reader.h"

#include <utility>

namespace distdoctor::rules {

Result<CommandReading> read_command(const std::vector<std::string>& argv,
                                    const ScriptReader& read) {
  if (argv.empty() || argv.front().empty()) {
    return failure("read the command line of the job", "it is empty");
  }
  Words clean;
  clean.reserve(argv.size());
  for (const std::string& word : argv) clean.push_back(without_marks(word));
  CommandReader reader(read);
  reader.command(clean, {.where = "command line"}, {});
  return reader.take();
}

CommandReading read_script(std::string_view text,
                           const std::string& path,
                           const ScriptReader& read) {
  CommandReader reader(read);
  reader.script(without_marks(text), path, {.where = path}, {});
  return reader.take();
}

}  // namespace distdoctor::rules
