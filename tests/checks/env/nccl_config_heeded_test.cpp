#include "checks/env/config_files.h"

namespace distdoctor::testing {
namespace {

using enum Severity;

Verdict twice() {
  return {.code = "env-nccl-conf-repeated",
          .severity = notice,
          .certainty = Certainty::proved,
          .symptom = Symptom::slow,
          .says = "NCCL_DEBUG stands twice in /etc/nccl.conf on node1, and the first one counts",
          .blamed = {"node1"},
          .evidence = {"node1 /etc/nccl.conf:5: WARN, after INFO in line 2, not one line for a "
                       "name; grep -n NCCL_DEBUG /etc/nccl.conf"},
          .fixes = {"node1: (manual)"}};
}

Verdict shadowed(Severity severity, const std::string& name, const std::string& value) {
  return {.code = "env-nccl-conf-shadowed",
          .severity = severity,
          .certainty = Certainty::proved,
          .symptom = Symptom::slow,
          .says = name + " is set to nothing on node1, so /etc/nccl.conf:1 does not count",
          .blamed = {"node1"},
          .evidence = {"node1 " + name + ": empty (--env), not " + value +
                       " of /etc/nccl.conf:1, or unset; printenv " + name},
          .fixes = {"node1: " + name + " unset"}};
}

Verdict missing(Severity severity, Certainty certainty, const std::string& how) {
  return {.code = "env-nccl-conf-missing",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::slow,
          .says = "NCCL_CONF_FILE names /opt/nccl.conf",
          .blamed = {"node1"},
          .evidence = {"node1 NCCL_CONF_FILE: /opt/nccl.conf, " + how +
                       ", not a file that every rank can read; ls -l -- /opt/nccl.conf"},
          .fixes = {"node1: (manual)"}};
}

void named_file(World& w, bool there) {
  w.node(1).nccl_config = std::vector<NcclConfigFile>{
      {.path = "/opt/nccl.conf", .source = Source::user_config, .named = true, .there = there}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nobody looked",
     [](World& w) { w.node(1).nccl_config = Unknown{.text = "no answer"}; },
     {},
     {"node1 nccl_config"}},
    {"a name twice",
     [](World& w) {
       put_lines(w, {{2, "NCCL_DEBUG", "INFO"}, {3, "NCCL_IB_TC", "1"}, {5, "NCCL_DEBUG", "WARN"}});
     },
     {twice()}},
    {"near miss: twice the same",
     [](World& w) { put_lines(w, {{2, "NCCL_DEBUG", "INFO"}, {5, "NCCL_DEBUG", "INFO"}}); }},
    {"near miss: once in each file",
     [](World& w) {
       NcclConfigFile own = system_config({{1, "NCCL_DEBUG", "WARN"}});
       own.source = Source::user_config;
       own.path = "/users/ann/.nccl.conf";
       put_files(w, 1, {own, system_config({{1, "NCCL_DEBUG", "INFO"}})});
     }},
    {"an empty variable blocks the interface",
     [](World& w) {
       say_on(w, 1, "NCCL_SOCKET_IFNAME", "");
       put_files(w, 1, {system_config({{1, "NCCL_SOCKET_IFNAME", "=eth1"}})});
     },
     {shadowed(degraded, "NCCL_SOCKET_IFNAME", "=eth1")}},
    {"an empty variable blocks something else",
     [](World& w) {
       say_on(w, 1, "NCCL_DEBUG", "");
       put_files(w, 1, {system_config({{1, "NCCL_DEBUG", "WARN"}})});
     },
     {shadowed(notice, "NCCL_DEBUG", "WARN")}},
    {"near miss: another value is a choice",
     [](World& w) {
       say_on(w, 1, "NCCL_DEBUG", "INFO");
       put_files(w, 1, {system_config({{1, "NCCL_DEBUG", "WARN"}})});
     }},
    {"near miss: empty in the file itself",
     [](World& w) { put_lines(w, {{1, "NCCL_DEBUG", ""}, {2, "NCCL_DEBUG", ""}}); }},
    {"the job's file is not there",
     [](World& w) {
       say_on(w, 1, "NCCL_CONF_FILE", "/opt/nccl.conf");
       named_file(w, false);
     },
     {missing(degraded, Certainty::likely, "not there")}},
    {"a login shell's file is not there",
     [](World& w) { named_file(w, false); },
     {missing(notice, Certainty::likely, "not there")}},
    {"a file that we may not read",
     [](World& w) {
       say_on(w, 1, "NCCL_CONF_FILE", "/opt/nccl.conf");
       named_file(w, true);
     },
     {missing(notice, Certainty::possible, "not readable")}},
    {"near miss: no file was named",
     [](World& w) {
       w.node(1).nccl_config = std::vector<NcclConfigFile>{
           {.path = "/users/ann/.nccl.conf", .source = Source::user_config}};
     }},
    {"near miss: Gloo reads none of them",
     [](World& w) {
       named_file(w, false);
       w.cluster.job.nccl = Use::no;
     }},
};

TEST_CASE("env/nccl_config_heeded") {
  run_cases("env/nccl_config_heeded", cases);
}

}  // namespace
}  // namespace distdoctor::testing
