#include "support/odd_agent.h"

#include "codec/read.h"
#include "codec/write.h"
#include "collect/collect.h"
#include "fleet/agent.h"
#include "fleet/channel.h"
#include "fleet/greeting.h"
#include "machine/machine.h"

#include <fcntl.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): raise() and SIGSTOP together
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::testing {
namespace {

std::string_view oddity() {
  const char* const odd = ::getenv("DISTDOCTOR_ODD");  // NOLINT(concurrency-mt-unsafe)
  return odd != nullptr ? odd : "";
}

void odd_links(machine::Machine& machine, const CollectRequest& /*request*/, NodeFacts& node) {
  const std::string_view odd = oddity();
  if (odd == "hang") {
    while (true) ::pause();
  } else if (odd == "stop") {
    ::raise(SIGSTOP);
  } else if (odd == "die") {
    ::raise(SIGKILL);
  } else if (odd == "throw") {
    throw std::runtime_error("a bug");
  } else if (odd.starts_with('/')) {
    node.links =
        unknown_because(errno_error("open", odd, ::open(odd.data(), O_RDONLY | O_CLOEXEC)));
    return;
  } else if (odd == "helper") {
    const auto said = machine.run({.argv = {"vendor", "about"}, .ours = true},
                                  Deadline::after(std::chrono::seconds(5)));
    node.links = Unknown{Why::failed, said ? said->out : said.error().render()};
    return;
  } else if (odd == "print") {
    std::puts("a library says hello");
    std::fflush(stdout);
  }
  std::vector<Link> links;
  if (odd == "large") links.resize(5'000, Link{.name = "eth\u00fc \"quoted\""});
  node.links = links;
}

// Says hello as it should, then never stops talking.
int run_flood() {
  fleet::Channel channel(fleet::Side::agent, Fd(0), Fd(1));
  channel.stream().post(fleet::greeting(std::string(fleet::kNonceDigits, '0')));
  static_cast<void>(channel.next(Deadline::after(std::chrono::seconds(5))));
  channel.post({.type = "hello", .body = codec::write_json(fleet::AgentHello{.version = "9"})});
  while (true) {
    for (std::uint64_t id = 0; id < 1000; ++id) channel.post({.id = id % 3, .type = "part"});
    if (!channel.next(Deadline::after(std::chrono::milliseconds(1)))) return 0;
  }
}

}  // namespace

int run_odd_agent() {
  if (oddity() == "flood") return run_flood();
  const auto real = collect::all_collectors();
  std::vector<collect::Collector> collectors(real.begin(), real.end());
  if (!oddity().empty()) {
    std::ranges::find(collectors, "links", &collect::Collector::name)->run = odd_links;
  }
  return fleet::run_agent(0, 1, collectors);
}

}  // namespace distdoctor::testing
