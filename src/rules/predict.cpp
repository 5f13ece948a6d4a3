#include "rules/predict.h"

#include "rules/gloo/device.h"
#include "rules/nccl/hcas.h"
#include "rules/nccl/interfaces.h"
#include "rules/nccl/variables.h"
#include "rules/torch/endpoint.h"
#include "rules/torch/rendezvous.h"
#include "rules/torch/variables.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

namespace distdoctor::rules {

namespace {

// A variable that the job sets to what only its own shell knows: no choice can be worked out.
std::optional<Unknown> unresolved(const JobSpec& job,
                                  const Settings& settings,
                                  std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto written = job.unresolved.find(name);
    if (written == job.unresolved.end()) continue;
    const auto seen = settings.find(name);
    if (seen != settings.end() && seen->second.origin.source == Source::process) continue;
    return Unknown{.kind = Why::unsupported,
                   .text = std::string(name) + " is set to " + written->second.value +
                           ", which only the job's own shell knows"};
  }
  return std::nullopt;
}

bool same_choice(NcclChoice one, const NcclChoice& other) {
  one.rules = other.rules;
  return one == other;
}

void predict_nccl(const NodeFacts& node, Prediction& prediction) {
  prediction.nccl_version_known = node.nccl_library.known() && !node.nccl_library->version.empty();
  const auto rules = prediction.nccl_version_known ? nccl_rules_of(node.nccl_library->version)
                                                   : NcclRules::from_2_28_3;
  prediction.nccl = nccl_choice(node, prediction.settings, rules);
  if (prediction.nccl_version_known || !prediction.nccl.known()) return;
  // Up to 2.27 the interfaces follow one set of rules.
  const auto older = nccl_choice(node, prediction.settings, NcclRules::to_2_27);
  if (!same_choice(*older, *prediction.nccl)) prediction.nccl_others.push_back(*older);
}

Observed<bool> predict_endpoint(const JobSpec& job, const NodeFacts& node) {
  const auto meeting = rendezvous_of(job, node.host);
  if (!meeting || !meeting->endpoint) {
    return Unknown{.kind = Why::unsupported, .text = "the job has no c10d endpoint that we know"};
  }
  const Launch* launch = deciding_launch(job, node.host);
  const bool about_this_node = launch->origin.node.empty() || launch->origin.node == node.host;
  if (meeting->is_host && about_this_node) return *meeting->is_host;
  return claims_endpoint(node, meeting->host);
}

}  // namespace

Prediction predict_node(const JobSpec& job, const NodeFacts& node) {
  Prediction prediction{.node = node.host, .settings = settings_in_force(job, node)};
  prediction.variables = read_variables(prediction.settings);
  std::ranges::move(misspelt_for_torch(prediction.settings),
                    std::back_inserter(prediction.variables));
  if (!node.reached) {
    const Unknown why{.kind = Why::not_collected, .text = node.host + " was not reached"};
    prediction.nccl = why;
    prediction.hcas = why;
    prediction.gloo = why;
    prediction.hosts_endpoint = why;
    return prediction;
  }
  const Settings& settings = prediction.settings;
  predict_nccl(node, prediction);
  const auto& library = node.nccl_library;
  prediction.hcas = nccl_hcas(node, settings, library.known() ? library->version : "");
  prediction.gloo = gloo_choice(node, settings);
  prediction.hosts_endpoint = predict_endpoint(job, node);
  if (auto why =
          unresolved(job, settings, {"NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY", "NCCL_COMM_ID"})) {
    prediction.nccl = *std::move(why);
    prediction.nccl_others.clear();
  }
  if (auto why = unresolved(job, settings,
                            {"NCCL_IB_HCA", "NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX", "NCCL_NET"})) {
    prediction.hcas = *std::move(why);
  }
  if (auto why = unresolved(job, settings, {"GLOO_SOCKET_IFNAME"})) {
    prediction.gloo = *std::move(why);
  }
  return prediction;
}

Predicted predict(const ClusterFacts& cluster) {
  Predicted predicted;
  for (const NodeFacts& node : cluster.nodes) {
    predicted.nodes.push_back(predict_node(cluster.job, node));
  }
  predicted.master = find_master(cluster, predicted.nodes);
  predicted.recommended = recommend(cluster, predicted.nodes);
  return predicted;
}

}  // namespace distdoctor::rules
