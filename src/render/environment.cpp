#include "render/environment.h"

#include "base/text.h"
#include "render/exported.h"

#include <string>

namespace distdoctor::render {
namespace {

void comment(std::string_view text, std::ostream& out) {
  for (const std::string_view line : split_lines(text)) out << "# " << printable(line) << '\n';
}

void exports(const std::map<std::string, std::string>& env,
             std::string_view prefix,
             std::ostream& out) {
  for (const auto& [name, value] : env) {
    out << prefix << exported(name, value) << '\n';
  }
}

}  // namespace

void environment(const Recommended& recommended, std::string_view node, std::ostream& out) {
  for (const auto& [variable, reason] : recommended.reasons) comment(reason, out);
  if (recommended.env.empty()) {
    comment("nothing needs to be set", out);
    return;
  }
  for (const auto& [name, env] : recommended.env) {
    if (name == "*" || name == node) {
      exports(env, "", out);
    } else if (node.empty()) {
      comment("on " + name + ":", out);
      exports(env, "#   ", out);
    }
  }
}

}  // namespace distdoctor::render
