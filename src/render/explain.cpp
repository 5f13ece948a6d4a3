#include "render/explain.h"

#include <distdoctor/areas.h>
#include <distdoctor/fault_class.h>

#include "base/text.h"

#include <algorithm>

namespace distdoctor::render {
namespace {

void page(const Code& code, std::string_view check, std::ostream& out) {
  out << "# " << code.id << "\n\n"
      << code.title << "\n\n"
      << "Class: " << slug(code.fault_class) << ". Worst severity: " << slug(code.worst)
      << ". Check: " << check << ".\n\n"
      << "## What it means\n\n"
      << code.page.meaning << "\n\n"
      << "## How to confirm by hand\n\n"
      << code.page.confirm << "\n\n"
      << "## How to fix\n\n"
      << code.page.fix << "\n\n"
      << "## How to verify the fix\n\n"
      << code.page.verify << "\n";
  if (!code.causes.empty()) out << "\n## It can cause\n\n" << join(code.causes, ", ") << "\n";
}

}  // namespace

bool explain(std::string_view code, std::span<const NamedCheck> checks, std::ostream& out) {
  for (const NamedCheck& named : checks) {
    const auto found = std::ranges::find(named.check->codes, code, &Code::id);
    if (found == named.check->codes.end()) continue;
    page(*found, named.name, out);
    return true;
  }
  return false;
}

void catalogue(std::span<const NamedCheck> checks, std::ostream& out) {
  for (const std::string_view area : kAreas) {
    bool first = true;
    for (const NamedCheck& named : checks) {
      if (area_of(named.name) != area) continue;
      if (first) out << area << '\n';
      first = false;
      out << "  " << named.name << ": " << named.check->title << '\n';
      for (const Code& code : named.check->codes) {
        out << "    " << code.id << " [" << slug(code.fault_class) << "] " << code.title << '\n';
      }
    }
  }
}

std::vector<std::string_view> all_codes(std::span<const NamedCheck> checks) {
  std::vector<std::string_view> codes;
  for (const NamedCheck& named : checks) {
    for (const Code& code : named.check->codes) codes.push_back(code.id);
  }
  return codes;
}

}  // namespace distdoctor::render
