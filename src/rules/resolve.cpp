#include "rules/resolve.h"

#include <algorithm>

namespace distdoctor::rules {

Observed<std::vector<Address>> resolve(std::string_view host,
                                       const std::vector<Resolution>& names) {
  if (auto literal = Address::parse(host)) return std::vector<Address>{*std::move(literal)};
  const auto found = std::ranges::find(names, host, &Resolution::name);
  if (found != names.end()) return found->all;
  return Unknown{.kind = Why::not_collected, .text = std::string(host) + " was not resolved here"};
}

Observed<std::vector<Address>> resolve(std::string_view host, const NodeFacts& node) {
  if (node.names.known()) return resolve(host, *node.names);
  if (auto literal = Address::parse(host)) return std::vector<Address>{*std::move(literal)};
  return node.names.why();
}

}  // namespace distdoctor::rules
