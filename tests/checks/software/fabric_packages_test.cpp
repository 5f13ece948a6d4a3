#include "checks/software/nodes.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

auto ofed(const char* text) {
  return [=](Software& software) { software.ofed = text; };
}
auto efa(const char* text) {
  return [=](Software& software) { software.efa = text; };
}

Verdict differs(const std::string& usual, const std::string& row) {
  return {.code = "software-fabric-differs",
          .severity = notice,
          .certainty = possible,
          .symptom = Symptom::crash,
          .says = "1 of 4 nodes do not have " + usual,
          .blamed = {"node1"},
          .evidence = {"node1 fabric drivers: " + row},
          .fixes = {"node1: (manual)"}};
}

const std::vector<CheckCase> cases = {
    {"healthy, the kernel's own drivers",
     [](World&) {},
     {},
     {},
     "no package of a fabric was found"},
    {"healthy, one OFED", [](World& w) { on_all(w, ofed("MLNX_OFED_LINUX-23.10-1.1.9.0")); }},
    {"another OFED",
     [](World& w) {
       on_all(w, ofed("MLNX_OFED_LINUX-23.10-1.1.9.0"));
       on(w, 1, ofed("MLNX_OFED_LINUX-5.8-3.0.7.0"));
     },
     {differs("MLNX_OFED_LINUX-23.10-1.1.9.0",
              "MLNX_OFED_LINUX-5.8-3.0.7.0, not MLNX_OFED_LINUX-23.10-1.1.9.0; ofed_info -s")}},
    {"another driver, seen from containers",
     [](World& w) {
       on_all(w, ofed("mlx5_core 23.10-1.1.9"));
       on(w, 1, ofed("mlx5_core 5.8-3.0.7"));
     },
     {differs("mlx5_core 23.10-1.1.9",
              "mlx5_core 5.8-3.0.7, not mlx5_core 23.10-1.1.9; cat "
              "/sys/module/mlx5_core/version")}},
    {"another EFA",
     [](World& w) {
       on_all(w, efa("1.43.1"));
       on(w, 1, efa("1.30.0"));
     },
     {differs("EFA installer 1.43.1",
              "EFA installer 1.30.0, not EFA installer 1.43.1; head -1 "
              "/opt/amazon/efa_installed_packages")}},
    {"near miss: a package and a driver cannot be compared",
     [](World& w) {
       on_all(w, ofed("MLNX_OFED_LINUX-23.10-1.1.9.0"));
       on(w, 1, ofed("mlx5_core 23.10-1.1.9"));
     }},
    {"near miss: a node without",
     [](World& w) {
       on_all(w, ofed("MLNX_OFED_LINUX-23.10-1.1.9.0"));
       on(w, 1, ofed(""));
     }},
    {"nobody looked: a gap",
     [](World& w) { w.node(1).software = Unknown{.kind = Why::timed_out}; },
     {},
     {"node1 software"},
     "no package of a fabric was found"},
};

TEST_CASE("software/fabric_packages") {
  run_cases("software/fabric_packages", cases);
}

}  // namespace
}  // namespace distdoctor::testing
