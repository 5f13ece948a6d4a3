#include "checks/env/variables.h"

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict misread(Severity severity,
                const std::string& says,
                const std::string& row,
                const std::string& fix) {
  return {.code = "env-variable-misread",
          .severity = severity,
          .certainty = proved,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {row},
          .fixes = {fix}};
}

Verdict refused(Severity severity, Certainty certainty, const std::string& row) {
  return {.code = "env-variable-refused",
          .severity = severity,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = "holds a word that NCCL does not know",
          .blamed = {"node1"},
          .evidence = {row},
          .fixes = {"node1: NCCL_PROTO unset"}};
}

const std::string kProtos = "of LL, LL128 and Simple, without blanks";

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA", aws_efa},
    {"RCCL", amd_rccl},
    {"Google's TCPX", google_tcpx},
    {"a tuned InfiniBand cluster", tuned_infiniband},
    {"a word for a number disables nothing",
     [](World& w) { say_on(w, 1, "NCCL_IB_DISABLE", "true"); },
     {misread(notice,
              "NCCL_IB_DISABLE=true on node1 changes nothing: NCCL reads a number there, and "
              "\"true\" is 0",
              said_row("NCCL_IB_DISABLE", "true", "a decimal number"),
              "node1: NCCL_IB_DISABLE=1")}},
    {"a word for a number turns off what it should turn on",
     [](World& w) { say_on(w, 1, "NCCL_CUMEM_ENABLE", "yes"); },
     {misread(degraded,
              "is another value to NCCL",
              said_row("NCCL_CUMEM_ENABLE", "yes", "a decimal number"),
              "node1: NCCL_CUMEM_ENABLE=1")}},
    {"auto is no number",
     [](World& w) { say_on(w, 1, "NCCL_IB_GID_INDEX", "auto"); },
     {misread(degraded,
              "\"auto\" is 0",
              said_row("NCCL_IB_GID_INDEX", "auto", "a decimal number"),
              "node1: NCCL_IB_GID_INDEX unset")}},
    {"quotes",
     [](World& w) { say_on(w, 1, "NCCL_IB_GID_INDEX", "\"3\""); },
     {misread(degraded,
              "is 0",
              said_row("NCCL_IB_GID_INDEX", "\"3\"", "a decimal number"),
              "node1: NCCL_IB_GID_INDEX=3")}},
    {"octal",
     [](World& w) { say_on(w, 1, "NCCL_IB_TIMEOUT", "022"); },
     {misread(degraded,
              "the leading 0 makes it octal, so NCCL reads 18",
              said_row("NCCL_IB_TIMEOUT", "022", "a decimal number"),
              "node1: NCCL_IB_TIMEOUT=22")}},
    {"a unit is dropped",
     [](World& w) { say_on(w, 1, "NCCL_BUFFSIZE", "8M"); },
     {misread(degraded,
              "NCCL reads 8 and drops the rest of \"8M\"",
              said_row("NCCL_BUFFSIZE", "8M", "a number alone"),
              "node1: NCCL_BUFFSIZE=8388608")}},
    {"the rest of a number",
     [](World& w) { say_on(w, 1, "NCCL_IB_TC", "106x"); },
     {misread(degraded,
              "NCCL reads 106",
              said_row("NCCL_IB_TC", "106x", "a number alone"),
              "node1: NCCL_IB_TC=106")}},
    {"only 1 counts",
     [](World& w) { say_on(w, 1, "NCCL_P2P_DISABLE", "2"); },
     {misread(notice,
              "NCCL heeds it only when it is 1, not 2",
              said_row("NCCL_P2P_DISABLE", "2", "1, or unset"),
              "node1: NCCL_P2P_DISABLE=1")}},
    {"levels are upper case",
     [](World& w) { say_on(w, 1, "NCCL_P2P_LEVEL", "nvl"); },
     {misread(notice,
              "NCCL knows no \"nvl\" there",
              said_row("NCCL_P2P_LEVEL", "nvl", "a value that NCCL knows"),
              "node1: NCCL_P2P_LEVEL=NVL")}},
    {"a level that is none",
     [](World& w) { say_on(w, 1, "NCCL_NET_GDR_LEVEL", "NVLINK"); },
     {misread(notice,
              "NCCL knows no \"NVLINK\" there",
              said_row("NCCL_NET_GDR_LEVEL", "NVLINK", "a value that NCCL knows"),
              "node1: NCCL_NET_GDR_LEVEL unset")}},
    {"a family",
     [](World& w) { say_on(w, 1, "NCCL_SOCKET_FAMILY", "ipv6"); },
     {misread(notice,
              "does as if it was not set",
              said_row("NCCL_SOCKET_FAMILY", "ipv6", "a value that NCCL knows"),
              "node1: NCCL_SOCKET_FAMILY=AF_INET6")}},
    {"on all nodes it is one finding and one fix",
     [](World& w) { say(w, "NCCL_SHM_DISABLE", "yes"); },
     {{.code = "env-variable-misread",
       .severity = notice,
       .certainty = proved,
       .symptom = Symptom::slow,
       .says = "NCCL_SHM_DISABLE=yes on all nodes",
       .blamed = {"node0", "node1", "node2", "node3"},
       .evidence =
           {"node0 NCCL_SHM_DISABLE: yes (--env), not a decimal number; printenv NCCL_SHM_DISABLE",
            "node1 NCCL_SHM_DISABLE: yes (--env), not a decimal number; printenv NCCL_SHM_DISABLE",
            "node2 NCCL_SHM_DISABLE: yes (--env), not a decimal number; printenv NCCL_SHM_DISABLE",
            "node3 NCCL_SHM_DISABLE: yes (--env), not a decimal number; printenv "
            "NCCL_SHM_DISABLE"},
       .fixes = {"*: NCCL_SHM_DISABLE=1"}}}},
    {"in a config file it is mended there",
     [](World& w) {
       say_on(w, 1, "NCCL_CUMEM_ENABLE", "true", Source::system_config, "/etc/nccl.conf:3");
     },
     {misread(degraded,
              "is another value",
              "node1 NCCL_CUMEM_ENABLE: true (/etc/nccl.conf:3), not a decimal number; grep -n "
              "NCCL_CUMEM_ENABLE /etc/nccl.conf",
              "node1: sed -i '3s/=.*/=1/' -- /etc/nccl.conf")}},
    {"a login shell is no evidence of the job",
     [](World& w) {
       say_on(w, 1, "NCCL_CUMEM_ENABLE", "true", Source::environment, "$NCCL_CUMEM_ENABLE");
       w.node(1).context = Context::ssh;
     },
     {misread(notice,
              "is another value",
              "node1 NCCL_CUMEM_ENABLE: true ($NCCL_CUMEM_ENABLE), not a decimal number; printenv "
              "NCCL_CUMEM_ENABLE",
              "node1: NCCL_CUMEM_ENABLE=1")}},
    {"nobody knows whether NCCL is used",
     [](World& w) {
       say_on(w, 1, "NCCL_CUMEM_ENABLE", "true");
       w.cluster.job.nccl = Use::maybe;
     },
     {misread(notice,
              "is another value",
              said_row("NCCL_CUMEM_ENABLE", "true", "a decimal number"),
              "node1: NCCL_CUMEM_ENABLE=1")}},
    {"near miss: Gloo reads none of them",
     [](World& w) {
       say(w, "NCCL_CUMEM_ENABLE", "true");
       w.cluster.job.nccl = Use::no;
     }},
    {"near miss: words for 0 are 0",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "false");
       say(w, "NCCL_CUMEM_ENABLE", "off");
     }},
    {"near miss: empty is unset, hexadecimal is a number",
     [](World& w) {
       say(w, "NCCL_IB_DISABLE", "");
       say(w, "NCCL_IB_TC", "0x6a");
     }},
    {"an unseen node is a gap",
     [](World& w) { w.node(2).settings = Unknown{.text = "no answer"}; },
     {},
     {"node2 settings"}},
    {"an unknown protocol",
     [](World& w) { say_on(w, 1, "NCCL_PROTO", "Simple, LL"); },
     {refused(blocker, likely, said_row("NCCL_PROTO", "Simple, LL", kProtos))}},
    {"an unknown protocol of an unknown NCCL",
     [](World& w) {
       say_on(w, 1, "NCCL_PROTO", "LL64");
       w.prediction(1).nccl_version_known = false;
     },
     {refused(blocker, possible, said_row("NCCL_PROTO", "LL64", kProtos))}},
    {"an old NCCL passes over it",
     [](World& w) {
       say_on(w, 1, "NCCL_PROTO", "LL64");
       World::change(w.prediction(1).nccl,
                     [](NcclChoice& choice) { choice.rules = NcclRules::to_2_22; });
     },
     {refused(degraded, possible, said_row("NCCL_PROTO", "LL64", kProtos))}},
};

TEST_CASE("env/variable_misread") {
  run_cases("env/variable_misread", cases);
}

}  // namespace
}  // namespace distdoctor::testing
