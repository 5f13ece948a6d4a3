// What may stop packets between two nodes without a trace on either; words that checks share.
#pragma once

#include <distdoctor/facts.h>
#include <distdoctor/finding.h>

#include <string>

namespace distdoctor {

inline bool in_a_pod(const NodeFacts* node) {
  return node != nullptr && node->identity.known() && node->identity->container == "kubernetes";
}

inline std::string what_lies_between(const NodeFacts* node) {
  return in_a_pod(node) ? "a NetworkPolicy, the cluster's network plugin, a security group"
                        : "security group, NetworkPolicy, switch ACL";
}

// A pod's own look at its policies: only the cluster knows them.
inline Fix look_at_policies(const NodeFacts& node) {
  return {.node = node.host,
          .kind = Fix::Kind::manual,
          .text =
              "`kubectl get networkpolicy -o yaml` in the pods' namespace shows which policies "
              "select them: the job needs ingress and egress among its own pods on all TCP ports"};
}

}  // namespace distdoctor
