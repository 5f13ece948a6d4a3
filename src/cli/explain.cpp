#include "render/explain.h"

#include <distdoctor/check.h>
#include <distdoctor/exit_code.h>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/files.h"

#include <iostream>
#include <sstream>

namespace distdoctor::cli {

int explain(const Options& options) {
  std::ostringstream text;
  if (render::explain(options.code, all_checks(), text)) return print(text.str(), kExitHealthy);
  const auto codes = render::all_codes(all_checks());
  std::cerr << "distdoctor: no code '" << printable(options.code) << "'"
            << did_you_mean(options.code, codes) << "; `distdoctor list` shows all\n";
  return kExitUsage;
}

int list(const Options& options) {
  std::ostringstream text;
  if (options.classes) {
    render::classes(all_checks(), text);
  } else {
    render::catalogue(all_checks(), text);
  }
  return print(text.str(), kExitHealthy);
}

}  // namespace distdoctor::cli
