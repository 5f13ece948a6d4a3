#include "render/explain.h"

#include <distdoctor/areas.h>
#include <distdoctor/fault_class.h>
#include <distdoctor/fault_class_rows.h>

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

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

std::vector<std::string_view> codes_of(std::span<const NamedCheck> checks, FaultClass wanted) {
  std::vector<std::string_view> codes;
  for (const NamedCheck& named : checks) {
    for (const Code& code : named.check->codes) {
      if (code.fault_class == wanted) codes.push_back(code.id);
    }
  }
  return codes;
}

bool explain_class(std::string_view name, std::span<const NamedCheck> checks, std::ostream& out) {
  const auto row =
      std::ranges::find(kFaultClasses, enum_from_slug<FaultClass>(name),
                        [](const FaultClassRow& one) { return std::optional(one.fault_class); });
  if (row == std::end(kFaultClasses)) return false;
  const auto codes = codes_of(checks, row->fault_class);
  out << fmt::format(
      "# {}\n\nA class of faults: {}.\n\nIn {} of 360 public reports. Seen by: {}.\n\n"
      "## Codes\n\n{}\n",
      name, row->meaning, row->reports, slug(row->seen_by),
      codes.empty() ? "none yet" : join(codes, ", "));
  return true;
}

}  // namespace

bool explain(std::string_view code, std::span<const NamedCheck> checks, std::ostream& out) {
  for (const NamedCheck& named : checks) {
    const auto found = std::ranges::find(named.check->codes, code, &Code::id);
    if (found == named.check->codes.end()) continue;
    page(*found, named.name, out);
    return true;
  }
  return explain_class(code, checks, out);
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

void classes(std::span<const NamedCheck> checks, std::ostream& out) {
  out << fmt::format("{:<26}{:>7}  {:<7} {}\n", "class", "reports", "seen by", "codes");
  for (const FaultClassRow& row : kFaultClasses) {
    const auto codes = codes_of(checks, row.fault_class);
    out << fmt::format("{:<26}{:>7}  {:<7} {}\n", slug(row.fault_class), row.reports,
                       slug(row.seen_by), codes.empty() ? "(none yet)" : join(codes, ", "));
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
