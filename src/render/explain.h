// The catalogue in words: a code's page, and the list of all.
#pragma once

#include <distdoctor/check.h>

#include <ostream>
#include <span>
#include <string_view>
#include <vector>

namespace distdoctor::render {

// The page of a code, or of a class of faults, in Markdown; false when there is neither.
bool explain(std::string_view code, std::span<const NamedCheck> checks, std::ostream& out);
// Areas with their checks and codes, a line each.
void catalogue(std::span<const NamedCheck> checks, std::ostream& out);
// The causes of public reports, a line each: how many reports, what shows it, and the codes for it.
void classes(std::span<const NamedCheck> checks, std::ostream& out);
std::vector<std::string_view> all_codes(std::span<const NamedCheck> checks);

}  // namespace distdoctor::render
