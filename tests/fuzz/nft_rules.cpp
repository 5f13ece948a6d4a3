// Any bytes are a ruleset of nft or none; what is kept of it is bounded, and can be asked.
#include "collect/nft_rules.h"

#include <distdoctor/packet_filter.h>

#include "collect/filter_text.h"
#include "target.h"

#include <cstdlib>
#include <string_view>

namespace {

bool counts(const distdoctor::FilterRule& rule) {
  return rule.verdict != distdoctor::FilterVerdict::none || rule.target == distdoctor::kSetsMark;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Firewall firewall{.chains = collect::keep_ours(collect::parse_nft_ruleset(text), 100)};
  std::size_t rules = 0;
  for (const FilterChain& chain : firewall.chains) {
    if (chain.rules.size() > 101) std::abort();
    for (const FilterRule& rule : chain.rules) {
      if (rule.text.size() > 200 || !counts(rule)) std::abort();
    }
    rules += chain.rules.size();
  }
  if (rules > 100 + firewall.chains.size()) std::abort();
  for (const PortRange& piece : port_pieces(firewall, {1, 65535}, 4)) {
    const auto result = judge_packet(firewall, {.source = *Address::parse("10.0.0.1"),
                                                .destination = *Address::parse("10.0.0.2"),
                                                .port = piece.first,
                                                .interface = "eth0"});
    if ((result.says == FilterSays::stopped) == result.stops.empty()) std::abort();
  }
  return 0;
}
