// "export NAME=VALUE", for sh, bash and zsh to read.
#pragma once

#include <distdoctor/quote.h>

#include "base/text.h"

#include <string>
#include <string_view>

namespace distdoctor::render {

// zsh takes "=eth0" for the path of a program, where an assigned value begins with '=' or has it
// behind a colon (zshexpn(1), filename expansion).
inline std::string exported(std::string_view name, std::string_view value) {
  std::string quoted = shell_quote(value);
  const bool looked_up = value.starts_with('=') || value.find(":=") != std::string_view::npos;
  if (looked_up && quoted == value) quoted = "'" + quoted + "'";
  return "export " + printable(name) + "=" + quoted;
}

}  // namespace distdoctor::render
