#include "checks/env/variables.h"
#include "rules/torch/variables.h"

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Verdict ifname(Severity severity, const std::string& fix) {
  return {.code = "env-ifname-misspelt",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::hang,
          .says = "NCCL_SOCKET_IFNAMES on node1 is read by no NCCL: NCCL_SOCKET_IFNAME was meant?",
          .blamed = {"node1"},
          .evidence = {said_row("NCCL_SOCKET_IFNAMES", "eth1", "NCCL_SOCKET_IFNAME")},
          .fixes = {fix}};
}

Verdict ifname_of(const std::string& row, const std::string& fix) {
  Verdict verdict = ifname(degraded, fix);
  verdict.evidence = {"node1 NCCL_SOCKET_IFNAMES: " + row};
  return verdict;
}

Verdict other(Severity severity,
              const std::string& row,
              const std::string& says,
              const std::string& fix) {
  return {.code = "env-variable-misspelt",
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::slow,
          .says = says,
          .blamed = {"node1"},
          .evidence = {row},
          .fixes = {fix}};
}

// What the builder's job says rightly.
void without_ifname(World& w) {
  for (Prediction& prediction : w.cluster.predicted.nodes) {
    prediction.settings.erase("NCCL_SOCKET_IFNAME");
  }
}

const std::string kBothHere = "*: NCCL_SOCKET_IFNAME=eth1 NCCL_SOCKET_IFNAMES unset";
const std::string kBoth = "node1: NCCL_SOCKET_IFNAME=eth1 NCCL_SOCKET_IFNAMES unset";

void say_torch(World& w, const std::string& name, const std::string& value) {
  say_on(w, 1, name, value);
  w.prediction(1).variables = rules::misspelt_for_torch(w.prediction(1).settings);
}

Verdict of_gloo(Severity severity) {
  Verdict verdict = other(severity, said_row("GLOO_SOCKET_IFNAMES", "eth1", "GLOO_SOCKET_IFNAME"),
                          "is read by no PyTorch or Gloo: GLOO_SOCKET_IFNAME was meant?",
                          "node1: GLOO_SOCKET_IFNAME=eth1 GLOO_SOCKET_IFNAMES unset");
  verdict.symptom = Symptom::hang;
  return verdict;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"NVIDIA's container", nvidia_container},
    {"AWS with EFA", aws_efa},
    {"RCCL", amd_rccl},
    {"Google's TCPX", google_tcpx},
    {"a tuned InfiniBand cluster", tuned_infiniband},
    {"near miss: names that nobody knows, and that are near to none",
     [](World& w) {
       for (const char* name : {"NCCL_FOO", "NCCL_RMA_ENABLE", "NCCL_TIMEOUT", "NCCL_IB_XL"}) {
         say(w, name, "1");
       }
     }},
    {"a lost interface",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth1");
     },
     {ifname(degraded, kBoth)}},
    {"a lost interface, and NCCL takes loopback",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth1");
       World::change(w.prediction(1).nccl,
                     [](NcclChoice& c) { c.bootstrap = Choice{"lo", addr("127.0.0.1")}; });
     },
     {ifname(blocker, kBoth)}},
    {"a lost interface of a job on one node, which needs none but for its start",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth1");
       w.cluster.nodes.erase(w.cluster.nodes.begin());
       w.cluster.nodes.resize(1);
     },
     {ifname(notice, kBothHere)}},
    {"the right name is there as well",
     [](World& w) { say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth1"); },
     {ifname(notice, "node1: NCCL_SOCKET_IFNAMES unset")}},
    {"a lost list of HCAs",
     [](World& w) { say_on(w, 1, "NCCL_IB_HCAS", "mlx5"); },
     {other(degraded,
            said_row("NCCL_IB_HCAS", "mlx5", "NCCL_IB_HCA"),
            "NCCL_IB_HCA was meant?",
            "node1: NCCL_IB_HCA=mlx5 NCCL_IB_HCAS unset")}},
    {"in a config file it is mended there",
     [](World& w) {
       say_on(w, 1, "NCCL_IB_HCAS", "mlx5", Source::user_config, "/home/o'brien/.nccl.conf:2");
     },
     {other(degraded,
            "node1 NCCL_IB_HCAS: mlx5 (/home/o'brien/.nccl.conf:2), not NCCL_IB_HCA; grep -n "
            "NCCL_IB_HCAS '/home/o'\\''brien/.nccl.conf'",
            "NCCL_IB_HCA was meant?",
            "node1: sed -i '2s|.*|NCCL_IB_HCA=mlx5|' -- '/home/o'\\''brien/.nccl.conf'")}},
    {"in a config file, an interface that is not there: out with the line",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth9", Source::system_config, "/etc/nccl.conf:2");
     },
     {ifname_of("eth9 (/etc/nccl.conf:2), not NCCL_SOCKET_IFNAME; grep -n NCCL_SOCKET_IFNAMES "
                "/etc/nccl.conf",
                "node1: sed -i 2d -- /etc/nccl.conf")}},
    {"an interface that is not there is not made the job's",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAMES", "eth9");
     },
     {ifname_of("eth9 (--env), not NCCL_SOCKET_IFNAME; printenv NCCL_SOCKET_IFNAMES",
                "node1: NCCL_SOCKET_IFNAMES unset")}},
    {"near miss: a blank in a config file's line is env/nccl_config's",
     [](World& w) {
       without_ifname(w);
       say_on(w, 1, "NCCL_SOCKET_IFNAME ", " eth1", Source::system_config, "/etc/nccl.conf:2");
     }},
    {"a wish alone is lost",
     [](World& w) { say_on(w, 1, "NCCL_DEBG", "INFO"); },
     {other(notice,
            said_row("NCCL_DEBG", "INFO", "NCCL_DEBUG"),
            "NCCL_DEBUG was meant?",
            "node1: NCCL_DEBG unset NCCL_DEBUG=INFO")}},
    {"a login shell is no evidence of the job",
     [](World& w) {
       say_on(w, 1, "NCCL_IB_HCAS", "mlx5", Source::environment);
       w.node(1).context = Context::ssh;
     },
     {other(notice,
            said_row("NCCL_IB_HCAS", "mlx5", "NCCL_IB_HCA"),
            "NCCL_IB_HCA was meant?",
            "node1: NCCL_IB_HCA=mlx5 NCCL_IB_HCAS unset")}},
    {"Gloo's interface, of a job that uses Gloo",
     [](World& w) {
       w.cluster.job.gloo = Use::yes;
       w.cluster.job.nccl = Use::no;
       say_torch(w, "GLOO_SOCKET_IFNAMES", "eth1");
     },
     {of_gloo(degraded)}},
    {"Gloo's interface, of a job that may not use Gloo",
     [](World& w) {
       w.cluster.job.gloo = Use::maybe;
       say_torch(w, "GLOO_SOCKET_IFNAMES", "eth1");
     },
     {of_gloo(notice)}},
    {"a switch of PyTorch's",
     [](World& w) { say_torch(w, "TORCH_NCCL_ASYNC_ERROR_HANDELING", "1"); },
     {other(notice,
            said_row("TORCH_NCCL_ASYNC_ERROR_HANDELING", "1", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
            "is read by no PyTorch or Gloo: TORCH_NCCL_ASYNC_ERROR_HANDLING was meant?",
            "node1: TORCH_NCCL_ASYNC_ERROR_HANDELING unset TORCH_NCCL_ASYNC_ERROR_HANDLING=1")}},
    {"near miss: Gloo reads none of them",
     [](World& w) {
       say(w, "NCCL_IB_HCAS", "mlx5");
       w.cluster.job.nccl = Use::no;
     }},
};

TEST_CASE("env/variable_misspelt") {
  run_cases("env/variable_misspelt", cases);
}

}  // namespace
}  // namespace distdoctor::testing
