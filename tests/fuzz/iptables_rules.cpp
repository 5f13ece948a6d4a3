// Any bytes are what iptables-save printed or nothing; rules keep their order and their numbers.
#include "collect/iptables_rules.h"

#include <distdoctor/filter_condition.h>

#include "target.h"

#include <cstdlib>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace distdoctor;  // NOLINT(google-build-using-namespace): all of them are under test
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const FilterChain& chain :
       collect::parse_iptables_save(text, FilterTool::iptables_legacy, "ip6")) {
    int last = 0;
    for (const FilterRule& rule : chain.rules) {
      if (rule.number <= last) std::abort();
      if (rule.verdict == FilterVerdict::none && rule.target != kSetsMark) std::abort();
      if (rule.text.size() > 200) std::abort();
      last = rule.number;
    }
  }
  return 0;
}
