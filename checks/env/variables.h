// NCCL's variables in force on the nodes: one value and the nodes that have it, its evidence, and
// how it is mended where it stands. Look-ups that the checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/setting_text.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::env {

struct Place {
  const NodeFacts* node;
  const Setting* setting;
};

// A variable with one value.
struct InForce {
  std::string name;
  const VariableReading* reading = nullptr;  // null: its value is not NCCL's to parse
  std::vector<Place> places = {};

  [[nodiscard]] const std::string& value() const { return places.front().setting->value; }
  // The value as NCCL has it.
  [[nodiscard]] const std::string& taken() const {
    return reading == nullptr ? value() : reading->taken_as;
  }
  [[nodiscard]] std::string text() const { return name + "=" + value(); }
};

inline const VariableReading* find_reading(const Prediction& prediction, std::string_view name) {
  const auto found = std::ranges::find(prediction.variables, name, &VariableReading::name);
  return found == prediction.variables.end() ? nullptr : &*found;
}

// A node whose settings nobody saw may have any of them.
inline void see_settings(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "settings", node.settings);
}

// By value, in the order of the values; none where nobody sets it.
inline std::vector<InForce> in_force(const Case& c, const std::string& name) {
  std::map<std::string, InForce> by_value;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    const Setting* setting = prediction == nullptr ? nullptr : find_setting(*prediction, name);
    if (setting == nullptr) continue;
    InForce& row = by_value[setting->value];
    row.name = name;
    row.reading = find_reading(*prediction, name);
    row.places.push_back({&node, setting});
  }
  std::vector<InForce> all;
  for (auto& [value, row] : by_value) all.push_back(std::move(row));
  return all;
}

// The nodes on which NCCL takes the variable for `taken`.
inline std::vector<InForce> taken_as(const Case& c,
                                     const std::string& name,
                                     std::string_view taken) {
  std::vector<InForce> all = in_force(c, name);
  std::erase_if(all, [&](const InForce& row) { return row.taken() != taken; });
  return all;
}

// Each variable with such a reading on any node.
template <class Wanted>
std::vector<InForce> with_trap(const Case& c, Wanted wanted) {
  std::vector<std::string> names;
  for (const Prediction& prediction : c.cluster.predicted.nodes) {
    for (const VariableReading& reading : prediction.variables) {
      const bool seen = std::ranges::find(names, reading.name) != names.end();
      if (!seen && wanted(reading.trap)) names.push_back(reading.name);
    }
  }
  std::vector<InForce> all;
  for (const std::string& name : names) {
    for (InForce& row : in_force(c, name)) {
      if (row.reading != nullptr && wanted(row.reading->trap)) all.push_back(std::move(row));
    }
  }
  return all;
}

inline std::optional<long long> number_of(const InForce& row) {
  const std::string& text = row.taken();
  long long value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return whole ? std::optional(value) : std::nullopt;
}

// Without case, as strcasecmp(3) compares.
inline bool same_text(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; };
    return lower(x) == lower(y);
  });
}

// A cloud's own plugin is in use, whose makers tell people to set some of NCCL's switches.
inline bool follows_a_recipe(const Case& c, const Place& place) {
  constexpr std::string_view kPlugins[] = {"NCCL_OFI_", "NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_",
                                           "FI_EFA_"};
  const Prediction* prediction = find_prediction(c.cluster, place.node->host);
  return std::ranges::any_of(prediction->settings, [&](const auto& setting) {
    return std::ranges::any_of(
        kPlugins, [&](std::string_view family) { return setting.first.starts_with(family); });
  });
}

// A job that loses one of these takes another way than was meant.
inline bool steers_traffic(std::string_view name) {
  constexpr std::string_view kNames[] = {"NCCL_SOCKET_IFNAME", "NCCL_IB_HCA",   "NCCL_IB_GID_INDEX",
                                         "NCCL_IB_TC",         "NCCL_IB_SL",    "NCCL_IB_PKEY",
                                         "NCCL_SOCKET_FAMILY", "NCCL_NET",      "NCCL_NET_PLUGIN",
                                         "NCCL_CROSS_NIC",     "NCCL_TOPO_FILE"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Without a variable that was lost NCCL has no interface, or one that leads every node to itself.
inline bool interface_is_bad(const Case& c, const Prediction& prediction) {
  if (!prediction.nccl.known()) return false;
  const auto& bootstrap = prediction.nccl->bootstrap;
  return !bootstrap || (c.cluster.nodes.size() > 1 && bootstrap->address.loopback());
}

// --- how grave ---

// What a login shell has set is no evidence of the job, unless we are in the job's own world.
inline Severity capped_by_origin(const Place& place, Severity severity) {
  return place.setting->origin.source == Source::environment
             ? capped_by_context(severity, place.node->context)
             : severity;
}

inline Severity capped(const Case& c, const InForce& row, Severity severity) {
  if (c.cluster.job.nccl != Use::yes) severity = std::min(severity, Severity::notice);
  Severity worst = Severity::notice;
  for (const Place& place : row.places) {
    worst = std::max(worst, capped_by_origin(place, severity));
  }
  return worst;
}

// --- words ---

inline std::vector<std::string> hosts_of(const std::vector<Place>& places) {
  std::vector<std::string> hosts;
  for (const Place& place : places) hosts.push_back(place.node->host);
  return hosts;
}

// "on all nodes", "on node1, node2", "on 12 of 64 nodes".
inline std::string where_text(const Case& c, const std::vector<Place>& places) {
  constexpr std::size_t kFew = 4;
  const std::size_t all = c.cluster.nodes.size();
  if (all > 1 && places.size() == all) return "on all nodes";
  if (places.size() > kFew) return fmt::format("on {} of {} nodes", places.size(), all);
  return fmt::format("on {}", fmt::join(hosts_of(places), ", "));
}

inline void add_evidence(const InForce& row, const std::string& expected, Finding& finding) {
  for (const Place& place : row.places) {
    finding.evidence.push_back({.node = place.node->host,
                                .fact = row.name,
                                .observed = setting_text(*place.setting),
                                .expected = expected,
                                .context = std::string(slug(place.node->context)),
                                .command = setting_command(row.name, *place.setting)});
  }
}

// --- mending ---

struct FileLine {
  std::string path;
  std::string line;  // digits
};

// Where a setting stands in one of NCCL's own files.
inline std::optional<FileLine> config_line(const Setting& setting) {
  const auto source = setting.origin.source;
  if (source != Source::user_config && source != Source::system_config) return std::nullopt;
  const std::string& where = setting.origin.where;
  const auto colon = where.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == where.size()) return std::nullopt;
  FileLine at{.path = where.substr(0, colon), .line = where.substr(colon + 1)};
  const bool digits = at.line.find_first_not_of("0123456789") == std::string::npos;
  return digits ? std::optional(std::move(at)) : std::nullopt;
}

inline Fix edit_line(const NodeFacts& node, const FileLine& at, const std::string& script) {
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command =
              fmt::format("sed -i {} -- {}", shell_quote(at.line + script), shell_quote(at.path)),
          .text = "NCCL reads this file in every job on the node"};
}

// Out with it, or another value, wherever it stands. `value` holds no '/' and no '&'.
inline std::vector<Fix> mend(const Case& c,
                             const InForce& row,
                             const std::optional<std::string>& value,
                             const std::string& text) {
  std::vector<Fix> fixes;
  std::vector<Place> elsewhere;
  for (const Place& place : row.places) {
    const auto at = config_line(*place.setting);
    if (!at) {
      elsewhere.push_back(place);
      continue;
    }
    fixes.push_back(edit_line(*place.node, *at, value ? "s/=.*/=" + *value + "/" : "s/^/#/"));
  }
  const bool everywhere = elsewhere.size() == c.cluster.nodes.size();
  for (const Place& place : elsewhere) {
    fixes.push_back({.node = everywhere ? "*" : place.node->host,
                     .kind = Fix::Kind::env,
                     .env = {{row.name, value}},
                     .text = text});
    if (everywhere) break;
  }
  return fixes;
}

}  // namespace distdoctor::checks::env
