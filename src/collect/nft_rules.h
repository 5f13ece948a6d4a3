// What `nft -a list ruleset` prints (man 8 nft, tried with nftables 1.0.6). The text, not its JSON:
// it says the rule as its owner wrote it, with the handle, and not every nft was built with JSON.
// What is not known here becomes a condition or a verdict `other`, so that a newer nft costs
// certainty, never truth.
#pragma once

#include <distdoctor/facts/firewall.h>

#include <string_view>
#include <vector>

namespace distdoctor::collect {

// All chains in their order. Of a dormant table, none.
std::vector<FilterChain> parse_nft_ruleset(std::string_view text);

}  // namespace distdoctor::collect
