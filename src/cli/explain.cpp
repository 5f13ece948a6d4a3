#include "render/explain.h"

#include <distdoctor/check.h>
#include <distdoctor/exit_code.h>

#include "base/nearest.h"
#include "base/text.h"
#include "cli/commands.h"

#include <iostream>

namespace distdoctor::cli {

int explain(const Options& options) {
  if (render::explain(options.code, all_checks(), std::cout)) return kExitHealthy;
  const auto codes = render::all_codes(all_checks());
  std::cerr << "distdoctor: no code '" << printable(options.code) << "'"
            << did_you_mean(options.code, codes) << "; `distdoctor list` shows all\n";
  return kExitUsage;
}

int list(const Options& /*options*/) {
  render::catalogue(all_checks(), std::cout);
  return kExitHealthy;
}

}  // namespace distdoctor::cli
