// What getaddrinfo answers on a node, from the facts: a literal is its own answer.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/facts.h>
#include <distdoctor/facts/names.h>
#include <distdoctor/observed.h>

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {

// Unknown: nobody asked for this name on that node, or the asking failed. Empty: no such name.
Observed<std::vector<Address>> resolve(std::string_view host, const std::vector<Resolution>& names);
Observed<std::vector<Address>> resolve(std::string_view host, const NodeFacts& node);

}  // namespace distdoctor::rules
