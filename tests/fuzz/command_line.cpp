// Words, one a line, and after a line "--script--" what every script that they name holds: they are
// read to an end whatever they say, also when a script names itself.
#include "rules/launch/command_line.h"

#include "base/text.h"
#include "target.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kMark = "--script--\n";
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t mark = std::min(text.find(kMark), text.size());
  std::vector<std::string> words;
  for (const std::string_view line : distdoctor::split_lines(text.substr(0, mark))) {
    words.emplace_back(line);
  }
  const std::string script(text.substr(std::min(mark + kMark.size(), text.size())));
  const auto read = [&](const std::string&) { return std::optional(script); };
  (void)distdoctor::rules::read_command(words, read);
  return 0;
}
