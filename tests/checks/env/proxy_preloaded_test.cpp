#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

void preload(World& w, const std::string& value, Source source) {
  w.prediction(1).settings["LD_PRELOAD"] = {value, {.source = source, .where = "$LD_PRELOAD"}};
}

Verdict led_away(Severity severity) {
  return {.code = "env-proxy-preloaded",
          .severity = severity,
          .certainty = possible,
          .symptom = Symptom::hang,
          .says = "LD_PRELOAD=libproxychains4.so on node1: connections between the ranks",
          .blamed = {"node1"},
          .evidence = {"node1 LD_PRELOAD: libproxychains4.so ($LD_PRELOAD), not no library that "
                       "redirects connections; printenv LD_PRELOAD"},
          .fixes = {"*: LD_PRELOAD unset"}};
}

Verdict others_stay() {
  Verdict verdict = led_away(degraded);
  const std::string value = "/usr/lib/libjemalloc.so.2 /opt/lib/libproxychains4.so:libfoo.so";
  verdict.says = "on node1: connections between the ranks";
  verdict.evidence = {"node1 LD_PRELOAD: " + value +
                      " ($LD_PRELOAD), not no library that redirects "
                      "connections; printenv LD_PRELOAD"};
  verdict.fixes = {"*: LD_PRELOAD=/usr/lib/libjemalloc.so.2:libfoo.so"};
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}, {}, {}, "LD_PRELOAD is not set"},
    {"healthy: the proxy variables, which nothing between ranks reads",
     [](World& w) {
       w.node(1).world = distdoctor::World{
           .proxies = {{"http_proxy", "http://proxy:3128"}, {"https_proxy", "http://proxy:3128"}}};
       w.set("http_proxy", "http://proxy:3128");
     },
     {},
     {},
     "LD_PRELOAD is not set"},
    {"proxychains",
     [](World& w) { preload(w, "libproxychains4.so", Source::process); },
     {led_away(degraded)}},
    {"in a login shell: a notice",
     [](World& w) { preload(w, "libproxychains4.so", Source::environment); },
     {led_away(notice)}},
    {"between other libraries, which stay",
     [](World& w) {
       preload(w, "/usr/lib/libjemalloc.so.2 /opt/lib/libproxychains4.so:libfoo.so",
               Source::process);
     },
     {others_stay()}},
    {"near miss: another library",
     [](World& w) { preload(w, "/usr/lib/libjemalloc.so.2", Source::process); }},
    {"unseen settings are a gap",
     [](World& w) { w.node(1).settings = Unknown{.kind = Why::failed, .text = "no"}; },
     {},
     {"node1 settings"},
     "LD_PRELOAD is not set"},
};

TEST_CASE("env/proxy_preloaded") {
  run_cases("env/proxy_preloaded", cases);
}

}  // namespace
}  // namespace distdoctor::testing
