#include "support/check_cases.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"far below the links",
     [](World& w) {
       isolate(w, {.layer = Layer::none,
                   .ailment = Ailment::slow,
                   .allowed_gb_per_s = 14.2,
                   .limit = "PCIe x16 at 16 GT/s of GPU 0 on node0"});
     },
     {{.code = "collective-below-links",
       .severity = Severity::degraded,
       .certainty = Certainty::possible,
       .symptom = Symptom::slow,
       .says = "reaches 2.0 GB/s, where PCIe x16 at 16 GT/s of GPU 0 on node0 lets 14.2 GB/s",
       .evidence = twice_rows("works, 2.0 GB/s", "", "as fast as the run below"),
       .fixes = {"*: (manual)"}}}},
    {"near miss: nobody knows the links",
     [](World& w) { isolate(w, {.layer = Layer::none, .ailment = Ailment::slow}); }},
    {"near miss: not a matter of speed",
     [](World& w) {
       isolate(w, {.layer = Layer::none, .ailment = Ailment::hangs, .allowed_gb_per_s = 14});
     }},
};

TEST_CASE("collective/speed") {
  run_cases("collective/speed", cases);
}

}  // namespace
}  // namespace distdoctor::testing
