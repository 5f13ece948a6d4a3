// Any text is a node list or one line that says why not; every name of a list is safe for an argv.
#include "base/hostlist.h"

#include "target.h"

#include <cstdlib>
#include <string>
#include <string_view>

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto hosts = distdoctor::parse_hostlist(text);
  if (!hosts) {
    if (hosts.error().render().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  if (hosts->empty() || hosts->size() > distdoctor::kMostHosts) std::abort();
  for (const std::string& host : *hosts) {
    if (!distdoctor::bad_host_name(host).empty()) std::abort();
  }
  return 0;
}
