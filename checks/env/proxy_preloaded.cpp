// A library that leads all TCP connections of a program through a proxy. The proxy variables do
// not: neither torch's TCPStore, nor NCCL, nor Gloo reads them, and python-etcd's urllib3
// PoolManager passes them by (python-etcd 0.4.5, urllib3 1.26 and 2.7: tried).
#include <distdoctor/check.h>

#include "set_anywhere.h"
#include "variables.h"

#include <algorithm>
#include <array>
#include <optional>

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

constexpr std::array<std::string_view, 5> kLibraries = {"libproxychains", "libtorsocks",
                                                        "libtsocks", "libdsocks", "libgraftcp"};

bool leads_away(std::string_view preloaded) {
  return std::ranges::any_of(kLibraries, [&](std::string_view library) {
    return preloaded.find(library) != std::string_view::npos;
  });
}

// The other entries, which somebody else wants (ld.so(8): blanks and colons separate). None: unset.
std::optional<std::string> without_them(std::string_view preloaded) {
  std::string kept;
  while (!preloaded.empty()) {
    const auto end = std::min(preloaded.find_first_of(" :"), preloaded.size());
    const auto entry = preloaded.substr(0, end);
    if (!entry.empty() && !leads_away(entry)) {
      kept += (kept.empty() ? "" : ":") + std::string(entry);
    }
    preloaded.remove_prefix(std::min(end + 1, preloaded.size()));
  }
  if (kept.empty()) return std::nullopt;
  return kept;
}

bool in_the_job(const InForce& row) {
  return std::ranges::any_of(
      row.places, [](const Place& place) { return is_the_jobs_own(place.setting->origin.source); });
}

void run(const Case& c, Judge& judge) {
  see_settings(c, judge);
  if (!set_anywhere(c.cluster, "LD_PRELOAD")) judge.skip("LD_PRELOAD is not set");
  for (const InForce& row : in_force(c, "LD_PRELOAD")) {
    if (!leads_away(row.value())) continue;
    Finding finding{
        .code = "env-proxy-preloaded",
        .severity = in_the_job(row) ? Severity::degraded : Severity::notice,
        .certainty = Certainty::possible,
        .symptom = Symptom::hang,
        .subjects = {.nodes = hosts_of(row.places)},
        .summary = fmt::format("{} {}: connections between the ranks go through a proxy",
                               row.text(), where_text(c, row.places))};
    add_evidence(row, "no library that redirects connections", finding);
    finding.fix = {{.node = "*",
                    .kind = Fix::Kind::env,
                    .env = {{"LD_PRELOAD", without_them(row.value())}},
                    .text = "for the job; what needs the proxy runs before or beside it"}};
    judge.report(std::move(finding));
  }
}

constexpr Page kPage{
    .meaning =
        "proxychains, torsocks and their kind are loaded into each program and send its TCP "
        "connections to a proxy, those of the rendezvous, of NCCL and of Gloo too. The proxy "
        "variables (http_proxy and kin) do no such harm: nothing between ranks reads them, nor "
        "does "
        "the client by which torchrun reaches an etcd rendezvous.",
    .confirm =
        "`tr '\\0' '\\n' < /proc/PID/environ | grep LD_PRELOAD` of a rank; `ss -tnp` shows "
        "the proxy as the peer.",
    .fix = "Start the job without it; or name the nodes' networks in its exceptions (`localnet`).",
    .verify = "`ss -tnp` of a rank shows the other nodes' addresses."};
constexpr std::string_view kCauses[] = {"rendezvous-port-unreachable"};
constexpr Code kCodes[] = {{.id = "env-proxy-preloaded",
                            .fault_class = FaultClass::vpn_nat,
                            .worst = Severity::degraded,
                            .title = "A library leads the job's connections through a proxy",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_proxy_preloaded{
    .title = "No library redirects the job's connections", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
