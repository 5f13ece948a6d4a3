#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

SiteCheck said(SiteResult result, const std::string& says) {
  return {.name = "nvme", .path = "/etc/distdoctor/checks.d/nvme", .result = result, .says = says};
}

const std::vector<CheckCase> cases = {
    {"healthy: no checks", [](World&) {}, {}, {}, "the site has no checks of its own"},
    {"near miss: a check is content",
     [](World& w) { w.node(1).site_checks = std::vector{said(SiteResult::ok, "4 disks")}; }},
    {"a blocker on one node, with its own advice",
     [](World& w) {
       auto check = said(SiteResult::blocker, "disk 2 is gone");
       check.fix = "call the data centre";
       w.node(2).site_checks = std::vector{check};
     },
     {{.code = "run-site-check",
       .severity = Severity::blocker,
       .certainty = Certainty::likely,
       .symptom = Symptom::crash,
       .says = "node2: the site's check nvme says \"disk 2 is gone\"",
       .blamed = {"node2"},
       .evidence = {"node2 site check nvme: blocker: \"disk 2 is gone\", not ok; "
                    "/etc/distdoctor/checks.d/nvme"},
       .fixes = {"node2: (manual)"}}}},
    {"the same words on two nodes are one finding",
     [](World& w) {
       w.node(1).site_checks = std::vector{said(SiteResult::degraded, "")};
       w.node(3).site_checks = std::vector{said(SiteResult::degraded, "")};
     },
     {{.code = "run-site-check",
       .severity = Severity::degraded,
       .certainty = Certainty::likely,
       .symptom = Symptom::slow,
       .says = "node1, node3: the site's check nvme says nothing",
       .blamed = {"node1", "node3"},
       .evidence = {"node1 site check nvme: degraded: nothing, not ok; "
                    "/etc/distdoctor/checks.d/nvme",
                    "node3 site check nvme: degraded: nothing, not ok; "
                    "/etc/distdoctor/checks.d/nvme"},
       .fixes = {"node1: (manual)", "node3: (manual)"}}}},
    {"a path that a shell would take apart is quoted",
     [](World& w) {
       auto check = said(SiteResult::degraded, "old firmware");
       check.path = "/etc/my checks/nvme;reboot";
       w.node(0).site_checks = std::vector{check};
     },
     {{.code = "run-site-check",
       .severity = Severity::degraded,
       .certainty = Certainty::likely,
       .symptom = Symptom::slow,
       .says = "old firmware",
       .blamed = {"node0"},
       .evidence = {"node0 site check nvme: degraded: \"old firmware\", not ok; "
                    "'/etc/my checks/nvme;reboot'"},
       .fixes = {"node0: (manual)"}}}},
    {"near miss: what it could not tell is a gap",
     [](World& w) {
       auto check = said(SiteResult::unknown, "no nvme tool");
       check.error = "it could not tell";
       w.node(2).site_checks = std::vector{check};
     },
     {},
     {"node2 site check nvme"}},
    {"near miss: none was run",
     [](World& w) { w.node(2).site_checks = Unknown{Why::denied, "none was run"}; },
     {},
     {"node2 site checks"},
     "the site has no checks of its own"},
};

TEST_CASE("run/site_check") {
  run_cases("run/site_check", cases);
}

}  // namespace
}  // namespace distdoctor::testing
