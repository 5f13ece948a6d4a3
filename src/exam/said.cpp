#include "exam/said.h"

#include <utility>

namespace distdoctor::exam {

Result<rules::Said> read_said(const std::vector<std::string>& command,
                              Settings options,
                              Settings environment,
                              const rules::ScriptReader& read) {
  rules::Said said{.options = std::move(options), .environment = std::move(environment)};
  if (!command.empty()) {
    DD_TRY(said.command, rules::read_command(command, read));
  }
  return said;
}

}  // namespace distdoctor::exam
