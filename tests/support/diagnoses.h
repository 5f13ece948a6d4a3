// A diagnosis that uses every part of the contract, for what writes and renders it.
#pragma once

#include <distdoctor/diagnosis.h>

namespace distdoctor::testing {

inline Cause dropped_port_cause() {
  Finding finding{.code = "rendezvous-port-dropped",
                  .severity = Severity::blocker,
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {"node1"}, .pairs = {{"node0", "node1"}}},
                  .summary = "node1 drops what node0 sends to port 29500"};
  finding.evidence = {{.node = "node1",
                       .fact = "dial",
                       .observed = "timed out",
                       .expected = "connected",
                       .context = "ssh",
                       .command = "nft list ruleset"}};
  finding.fix = {{.node = "node1",
                  .kind = Fix::Kind::shell,
                  .command = "nft insert rule ...",
                  .text = "let the peers in"},
                 {.node = "*",
                  .kind = Fix::Kind::env,
                  .env = {{"NCCL_SOCKET_IFNAME", "=eth1"}, {"NCCL_IB_DISABLE", std::nullopt}},
                  .text = "or use the other network"}};
  return {.finding = finding,
          .fault_class = FaultClass::firewall,
          .title = "A firewall drops MASTER_PORT",
          .because = "it explains the most"};
}

inline Diagnosis dropped_port_diagnosis() {
  Cause cause = dropped_port_cause();
  cause.explains = {{.finding = {.code = "run-agent-timed-out",
                                 .severity = Severity::notice,
                                 .certainty = Certainty::likely,
                                 .symptom = Symptom::slow,
                                 .summary = "an agent was slow"},
                     .title = "An agent was slow",
                     .because = "it follows"}};
  cause.also_explains = {"net-peer-unreachable"};
  return {
      .causes = {cause},
      .checks = {{.name = "rendezvous/port_reachable",
                  .title = "MASTER_PORT is reachable",
                  .result = CheckResult::blocker,
                  .detail = "dropped"}},
      .gaps = {{.nodes = {"node2", "node3"}, .fact = "sockets", .why = {Why::denied, "EACCES"}}},
      .nodes = {{.host = "node0", .reached = true},
                {.host = "node1", .reached = false, .why = "Permission denied (publickey)."}},
      .verdict = Verdict::problems,
      .exit_code = 1};
}

}  // namespace distdoctor::testing
