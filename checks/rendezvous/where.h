// Where MASTER_ADDR leads, as each node sees it. Look-ups that the checks of this folder share; no
// judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/meeting.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::checks {

inline const Master* master_of(const Case& c) {
  return c.cluster.predicted.master ? &*c.cluster.predicted.master : nullptr;
}

inline bool only_the_jobs_shell_knows(std::string_view text) {
  return text.find('$') != std::string_view::npos;
}

inline bool means_loopback_everywhere(std::string_view host) {
  return host == "localhost" || host.ends_with(".localhost");  // RFC 6761
}

// Whether nobody looks at the others from here: then MASTER_ADDR is right to be no peer's.
inline bool looks_alone(const Case& c) {
  return c.cluster.nodes.size() < 2;
}

// To another machine, or to none: it is not this node's own.
inline bool leads_away(const Case& c, const NodeFacts& node) {
  const Master* master = master_of(c);
  if (master == nullptr || means_loopback_everywhere(master->host)) return false;
  if (only_the_jobs_shell_knows(master->host)) return false;
  return std::ranges::none_of(master->addresses, [&](const Address& address) {
    return address.loopback() || address.unspecified() || has_address(node, address);
  });
}

// One node alone needs nobody to meet, unless its master is elsewhere; neither does a job whose
// launches are all for one node.
inline bool meets_others(const Case& c) {
  const auto& launches = c.cluster.job.launches;
  const bool alone = std::ranges::any_of(launches, for_one_node);
  const bool together = std::ranges::any_of(launches, [](const Launch& launch) {
    return starts_ranks_of_a_node(launch) && !for_one_node(launch);
  });
  if (c.cluster.nodes.empty() || (alone && !together)) return false;
  return !looks_alone(c) || leads_away(c, c.cluster.nodes.front());
}

inline std::string master_name(const Master& master) {
  return master.endpoint ? "--rdzv_endpoint" : "MASTER_ADDR";
}

// Not a finding: that nothing was said is our blindness.
inline void note_unsaid(const Case& c, Judge& judge) {
  const auto& unresolved = c.cluster.job.unresolved;
  const auto found = unresolved.find("MASTER_ADDR");
  const std::string why =
      found == unresolved.end()
          ? "no setting of the job was seen; say --master HOST:PORT or -- COMMAND"
          : fmt::format("{} is known to the job's own shell only; say --master HOST:PORT",
                        setting_text(found->second));
  judge.miss({.node = "", .fact = "MASTER_ADDR", .why = {Why::not_collected, why}});
}

// --- names ---

enum class Answer : std::uint8_t { unknown, nothing, silence, found };

// What a node makes of the master's name. `unknown` has left a gap behind.
struct View {
  const NodeFacts* node = nullptr;
  std::string host = {};
  Answer answer = Answer::unknown;
  std::vector<Address> addresses = {};
};

inline View view_from(const NodeFacts& node, const std::string& host, Judge& judge) {
  View view{.node = &node, .host = host};
  auto literal = Address::parse(means_loopback_everywhere(host) ? "127.0.0.1" : host);
  if (literal) {
    view.answer = Answer::found;
    view.addresses = {*std::move(literal)};
    return view;
  }
  const auto* names = judge.see(node, "names", node.names);
  if (names == nullptr) return view;
  const auto row = std::ranges::find(*names, host, &Resolution::name);
  if (row == names->end()) {
    static const Observed<bool> never = Unknown{.text = "this name was not asked for"};
    judge.see(node, "names." + host, never);
    return view;
  }
  if (!row->all.known() && row->all.why().kind == Why::timed_out) {
    view.answer = Answer::silence;
  } else if (const auto* all = judge.see(node, "names." + host, row->all)) {
    view.answer = all->empty() ? Answer::nothing : Answer::found;
    view.addresses = *all;
  }
  return view;
}

// MASTER_ADDR as this node has it: its own processes or launcher may say something else.
inline std::string host_said_on(const Case& c, const NodeFacts& node) {
  const Master& master = *master_of(c);
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (master.endpoint || prediction == nullptr) return master.host;
  const Setting* said = find_setting(*prediction, "MASTER_ADDR");
  const bool own =
      said != nullptr && said->origin.node == node.host && is_the_jobs_own(said->origin.source);
  return own ? said->value : master.host;
}

inline std::vector<View> views_of_master(const Case& c, Judge& judge) {
  std::vector<View> views;
  for (const NodeFacts& node : c.cluster.nodes) {
    views.push_back(view_from(node, host_said_on(c, node), judge));
  }
  return views;
}

// --- addresses ---

inline bool all_links_seen(const ClusterFacts& cluster) {
  return std::ranges::all_of(cluster.nodes,
                             [](const NodeFacts& node) { return node.links.known(); });
}

// Every dial from a node to an address, whatever the port and purpose.
inline std::vector<const Dial*> dials_to(const ClusterFacts& cluster,
                                         std::string_view from,
                                         const Address& address) {
  std::vector<const Dial*> dials;
  for (const PairFacts& pair : cluster.pairs) {
    if (pair.from != from) continue;
    for (const Dial& dial : pair.dials) {
      if (dial.address == address) dials.push_back(&dial);
    }
  }
  return dials;
}

inline bool connects(const Dial* dial) {
  return dial->outcome == Outcome::ok;
}

// The peer that an address leads to from a node: the node itself when it has the address. Null for
// a stranger's and for nobody's.
inline const NodeFacts* peer_at(const ClusterFacts& cluster,
                                const NodeFacts& from,
                                const Address& address) {
  if (address.loopback() || address.unspecified() || has_address(from, address)) return &from;
  const auto owner = std::ranges::find_if(
      cluster.nodes, [&](const NodeFacts& node) { return has_address(node, address); });
  return owner == cluster.nodes.end() ? nullptr : &*owner;
}

// The peers, or foreign addresses, that a view may end at. Empty: nobody can say.
inline std::set<std::string> places(const ClusterFacts& cluster, const View& view) {
  std::set<std::string> all;
  for (const Address& address : view.addresses) {
    const NodeFacts* peer = peer_at(cluster, *view.node, address);
    if (peer != nullptr) {
      all.insert(peer->host);
    } else if (!all_links_seen(cluster) ||
               std::ranges::any_of(dials_to(cluster, view.node->host, address), connects)) {
      return {};  // an unseen node's, or translated on its way to one of them
    } else {
      all.insert(address.text());
    }
  }
  return all;
}

inline std::string list_of(const std::vector<Address>& addresses) {
  std::vector<std::string> texts;
  for (const Address& address : addresses) texts.push_back(address.text());
  return fmt::format("{}", fmt::join(texts, ", "));
}

inline bool all_loopback(const View& view) {
  return view.answer == Answer::found && std::ranges::all_of(view.addresses, &Address::loopback);
}

}  // namespace distdoctor::checks
