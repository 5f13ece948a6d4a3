// A shell script that includes itself, among others, is read to an end.
#include "rules/launch/command_line.h"
#include "target.h"

#include <optional>
#include <string>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto read = [&](const std::string&) { return std::optional(text); };
  (void)distdoctor::rules::read_script(text, "run.sh", read);
  return 0;
}
