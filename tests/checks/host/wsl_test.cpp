#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

constexpr const char* kWsl2 = "5.15.153.1-microsoft-standard-WSL2";

void wsl(World& w, const char* kernel, const char* nccl) {
  w.node(1).world = distdoctor::World{.platform = "wsl"};
  World::change(w.node(1).identity, [&](Identity& me) { me.kernel = kernel; });
  World::change(w.node(1).nccl_library, [&](NcclLibrary& library) { library.version = nccl; });
}

Verdict told(Severity severity, const char* says, const std::string& evidence) {
  return {.code = "host-wsl",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = {"node1 " + evidence},
          .fixes = {"node1: (manual)"}};
}
const std::string kOld =
    "NCCL: 2.8.3, not 2.11 or later; strings /usr/lib/libnccl.so.2 | grep 'NCCL version'";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"healthy: WSL 2 with a later NCCL", [](World& w) { wsl(w, kWsl2, "2.21.5"); }},
    {"an old NCCL",
     [](World& w) { wsl(w, kWsl2, "2.8.3"); },
     {told(blocker, "node1 runs in WSL 2, and NCCL 2.8.3 cannot work there", kOld)}},
    {"an old NCCL that may not be used: a notice",
     [](World& w) {
       wsl(w, kWsl2, "2.8.3");
       w.cluster.job.nccl = w.cluster.job.gloo = Use::maybe;
     },
     {told(notice, "NCCL 2.8.3 cannot work there", kOld)}},
    {"WSL 1",
     [](World& w) { wsl(w, "4.4.0-19041-Microsoft", "2.21.5"); },
     {told(blocker,
           "node1 runs in WSL 1, which has no GPU",
           "kernel: 4.4.0-19041-Microsoft, not ...-microsoft-standard-WSL2; uname -r")}},
    {"near miss: the same NCCL on Linux",
     [](World& w) {
       wsl(w, "6.1.0", "2.8.3");
       w.node(1).world = distdoctor::World{.platform = "hyper-v"};
     }},
    {"near miss: the first that works", [](World& w) { wsl(w, kWsl2, "2.11.4"); }},
    {"near miss: a version that is none", [](World& w) { wsl(w, kWsl2, "2.x"); }},
    {"near miss: no NCCL",
     [](World& w) {
       wsl(w, kWsl2, "2.8.3");
       w.cluster.job.nccl = Use::no;
     }},
    {"nobody knows which NCCL",
     [](World& w) {
       wsl(w, kWsl2, "2.8.3");
       w.node(1).nccl_library = Unknown{.kind = Why::failed, .text = "none was found"};
     },
     {},
     {"node1 nccl_library"}},
    {"unseen is a gap",
     [](World& w) { w.node(1).world = Unknown{.kind = Why::timed_out, .text = "late"}; },
     {},
     {"node1 world"}},
};

TEST_CASE("host/wsl") {
  run_cases("host/wsl", cases);
}

}  // namespace
}  // namespace distdoctor::testing
