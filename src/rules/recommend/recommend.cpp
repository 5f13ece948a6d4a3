#include <distdoctor/facts.h>
#include <distdoctor/hcas.h>
#include <distdoctor/views.h>

#include "base/text.h"
#include "rules/gloo/device.h"
#include "rules/nccl/interfaces.h"
#include "rules/predict.h"
#include "rules/recommend/candidates.h"
#include "rules/recommend/reach.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace distdoctor::rules {

namespace {

using Values = std::vector<std::string>;  // of one variable, one a seen node

// What a library announces on a node under some settings; none: it cannot be told.
using Choose = std::optional<std::vector<Choice>> (*)(const SeenNode&, const Settings&, bool data);

using PredictedDevices = std::optional<std::vector<Choice>> (*)(const Prediction&, bool data);

struct Library {
  std::string_view name;
  std::string variable;
  Choose choose;
  PredictedDevices predicted;
  bool data = true;    // its sockets carry the data
  bool lists = false;  // takes "=a,b", and of it what is there; else one exact name
};

std::optional<std::vector<Choice>> devices_of(const NcclChoice& choice, bool data) {
  if (!choice.bootstrap || (data && choice.net_socket.empty())) return std::vector<Choice>{};
  std::vector<Choice> all = {*choice.bootstrap};
  if (data) all.insert(all.end(), choice.net_socket.begin(), choice.net_socket.end());
  return all;
}

// By the rules of the version in use, or by all of them where nobody knows it.
std::optional<std::vector<Choice>> choose_nccl(const SeenNode& seen,
                                               const Settings& settings,
                                               bool data) {
  std::vector<NcclRules> sets = {NcclRules::from_2_28_3, NcclRules::to_2_27};
  if (seen.prediction->nccl_version_known && seen.node->nccl_library.known()) {
    sets = {nccl_rules_of(seen.node->nccl_library->version)};
  }
  std::vector<Choice> all;
  for (const NcclRules rules : sets) {
    const auto choice = nccl_choice(*seen.node, settings, rules);
    const auto devices = choice.known() ? devices_of(*choice, data) : std::nullopt;
    if (!devices || devices->empty()) return devices;
    all.insert(all.end(), devices->begin(), devices->end());
  }
  return all;
}

std::optional<std::vector<Choice>> choose_gloo(const SeenNode& seen,
                                               const Settings& settings,
                                               bool /*data*/) {
  const auto choice = gloo_choice(*seen.node, settings);
  if (!choice.known()) return std::nullopt;
  return choice->devices;
}

std::optional<std::vector<Choice>> predicted_nccl(const Prediction& prediction, bool data) {
  return prediction.nccl.known() ? devices_of(*prediction.nccl, data) : std::nullopt;
}
std::optional<std::vector<Choice>> predicted_gloo(const Prediction& prediction, bool /*data*/) {
  return prediction.gloo.known() ? std::optional(prediction.gloo->devices) : std::nullopt;
}

std::optional<Choices> choices_now(const Library& library, const std::vector<SeenNode>& seen) {
  Choices all;
  for (const SeenNode& node : seen) {
    auto choice = library.predicted(*node.prediction, library.data);
    if (!choice) return std::nullopt;
    all.push_back(*std::move(choice));
  }
  return all;
}

// What the variable would lead to, or none where a node takes anything but the candidate's link.
std::optional<Choices> choices_with(const Library& library,
                                    const std::vector<SeenNode>& seen,
                                    const Candidate& candidate,
                                    const Values& values) {
  Choices all;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    Settings settings = seen[i].prediction->settings;
    settings[library.variable] = {.value = values[i], .origin = {.source = Source::option}};
    auto choice = library.choose(seen[i], settings, library.data);
    const bool right =
        choice && !choice->empty() && std::ranges::all_of(*choice, [&](const Choice& taken) {
          return taken.interface == candidate.interfaces[i];
        });
    if (!right) return std::nullopt;
    all.push_back(*std::move(choice));
  }
  return all;
}

std::string value_of(const Library& library, std::string_view names) {
  return (library.lists ? "=" : "") + std::string(names);
}

// One value for all nodes: each name once, in the order of the nodes.
std::optional<Values> one_value(const Library& library, const Candidate& candidate) {
  std::string list;
  std::vector<std::string_view> listed;
  for (const std::string& name : candidate.interfaces) {
    if (std::ranges::find(listed, name) != listed.end()) continue;
    listed.push_back(name);
    list += (list.empty() ? "" : ",") + name;
  }
  if (listed.size() > 1 && !library.lists) return std::nullopt;
  return Values(candidate.interfaces.size(), value_of(library, list));
}

std::optional<Values> own_values(const Library& library, const Candidate& candidate) {
  Values values;
  for (const std::string& name : candidate.interfaces) values.push_back(value_of(library, name));
  return values;
}

constexpr int kWorthwhile = 2;  // times as fast, before a working choice is worth a change

// What is wrong now, and what a better choice has to keep to.
struct Need {
  std::string why;
  Reach at_least = Reach::on_link;
  int at_least_mbps = 0;
};

std::optional<Need> need_of(const Verdict& now, int speed_mbps) {
  switch (now.reach) {
    case Reach::broken:
    case Reach::unproved:
      return Need{.why = now.culprit};
    case Reach::blocked:
      return Need{.why = now.culprit, .at_least = Reach::proved};
    default:
      if (speed_mbps == 0) return std::nullopt;
      return Need{.why = fmt::format("the links in use have {} Mb/s together", speed_mbps),
                  .at_least_mbps = kWorthwhile * speed_mbps};
  }
}

struct Answer {
  Values values;
  bool shared = false;
  std::string reason;
};

class Search {
 public:
  Search(const std::vector<SeenNode>& seen,
         const Reachability& reachability,
         std::vector<Candidate> candidates)
      : seen_(seen), reachability_(reachability), candidates_(std::move(candidates)) {}

  // One list for all nodes goes before a value for each.
  [[nodiscard]] std::optional<Answer> find(const Library& library, const Need& need) const {
    for (const auto make : {one_value, own_values}) {
      for (const Candidate& candidate : candidates_) {
        if (candidate.speed_mbps < need.at_least_mbps) continue;
        const auto values = make(library, candidate);
        const auto choices =
            values ? choices_with(library, seen_, candidate, *values) : std::nullopt;
        if (!choices) continue;
        const Verdict verdict = reachability_.of(*choices);
        if (verdict.reach < need.at_least) continue;
        return Answer{*values, make == one_value, reason(library, need, candidate, verdict.reach)};
      }
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] std::string reason(const Library& library,
                                   const Need& need,
                                   const Candidate& candidate,
                                   Reach reach) const {
    const std::string where = candidate.network.empty()
                                  ? "over " + printable(candidate.interfaces.front())
                                  : "in " + candidate.network;
    return fmt::format("{}: {}; with this all {} nodes meet {}{}", library.name, need.why,
                       seen_.size(), where,
                       reach == Reach::proved ? ", where every address answered" : "");
  }

  const std::vector<SeenNode>& seen_;
  const Reachability& reachability_;
  std::vector<Candidate> candidates_;
};

std::vector<Library> libraries_of(const JobSpec& job, const std::vector<SeenNode>& seen) {
  const bool rdma = std::ranges::all_of(
      seen, [](const SeenNode& node) { return rdma_carries_data(*node.node, *node.prediction); });
  std::vector<Library> libraries;
  if (job.nccl != Use::no) {
    libraries.push_back({.name = "NCCL",
                         .variable = "NCCL_SOCKET_IFNAME",
                         .choose = choose_nccl,
                         .predicted = predicted_nccl,
                         .data = !rdma,
                         .lists = true});
  }
  if (job.gloo != Use::no) {
    libraries.push_back({.name = "Gloo",
                         .variable = "GLOO_SOCKET_IFNAME",
                         .choose = choose_gloo,
                         .predicted = predicted_gloo,
                         .data = job.gloo == Use::yes && job.nccl != Use::yes});
  }
  return libraries;
}

std::vector<SeenNode> seen_nodes(const ClusterFacts& cluster,
                                 const std::vector<Prediction>& predictions) {
  std::vector<SeenNode> seen;
  for (const NodeFacts& node : cluster.nodes) {
    const auto found = std::ranges::find(predictions, node.host, &Prediction::node);
    if (node.links.known() && found != predictions.end()) seen.push_back({&node, &*found});
  }
  return seen;
}

void write_down(const Library& library,
                const Answer& answer,
                const std::vector<SeenNode>& seen,
                Recommended& recommended) {
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::string where = answer.shared ? "*" : seen[i].node->host;
    recommended.env[where][library.variable] = answer.values[i];
  }
  recommended.reasons[library.variable] = answer.reason;
}

}  // namespace

Recommended recommend(const ClusterFacts& cluster, const std::vector<Prediction>& predictions) {
  Recommended recommended;
  const auto seen = seen_nodes(cluster, predictions);
  // One node of several that were asked for cannot tell what they have in common.
  if (seen.empty() || (seen.size() == 1 && cluster.nodes.size() > 1)) return recommended;
  const Reachability reachability(seen, cluster.pairs);
  const Search search(seen, reachability,
                      find_candidates(seen, reachability, find_master(cluster, predictions)));
  for (const Library& library : libraries_of(cluster.job, seen)) {
    const auto now = choices_now(library, seen);
    if (!now) continue;
    const bool may_be_slow = library.data && seen.size() > 1;
    const auto need = need_of(reachability.of(*now), may_be_slow ? carried_mbps(seen, *now) : 0);
    const auto answer = need ? search.find(library, *need) : std::nullopt;
    if (answer) write_down(library, *answer, seen, recommended);
  }
  return recommended;
}

}  // namespace distdoctor::rules
