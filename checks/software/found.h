// What the nodes would load, and whether that is what the ranks of one job have loaded. Look-ups
// that the checks of this folder share; no judgement.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/quote.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks::software {

struct Found {
  const NodeFacts* node;
  const Software* software;

  [[nodiscard]] const std::string& host() const { return node->host; }
};

// Nodes on which a library for the job was found at all; elsewhere it may run in a container.
inline std::vector<Found> found_on(const Case& c, Judge& judge) {
  std::vector<Found> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    const Software* software = judge.see(node, "software", node.software);
    if (software != nullptr) all.push_back({&node, software});
  }
  return all;
}

inline std::vector<Found> with_nccl(std::vector<Found> all) {
  std::erase_if(all, [](const Found& one) { return one.software->nccl.empty(); });
  return all;
}

inline constexpr std::string_view kMapped = "mapped by pid ";

// MASTER_PORT of the rank that has this library mapped: ranks that meet at different ports are of
// different jobs.
inline std::string meeting_of(const NodeFacts& node, const NcclLibrary& library) {
  if (!node.processes.known()) return "";
  for (const TrainingProcess& process : *node.processes) {
    if (library.origin == fmt::format("{}{}", kMapped, process.pid)) {
      return variable(process, "MASTER_PORT").value_or("");
    }
  }
  return "";
}

// A rank is alive there and has NCCL loaded: what was found goes by its environment.
inline bool live(const Found& one) {
  const auto& nccl = one.software->nccl;
  return !nccl.empty() && nccl.front().origin.starts_with(kMapped);
}

// All are, and of one job as far as one can tell.
inline bool one_live_job(const std::vector<Found>& all) {
  const auto meeting = [](const Found& one) {
    return meeting_of(*one.node, one.software->nccl.front());
  };
  return std::ranges::all_of(all, live) &&
         (all.empty() || odd_ones_out(all, meeting(all.front()), meeting).empty());
}

inline const NcclPlugin* net_plugin(const Found& one) {
  const auto& plugins = one.software->plugins;
  const auto found = std::ranges::find(plugins, "net", &NcclPlugin::kind);
  return found == plugins.end() ? nullptr : &*found;
}

// What a login shell would load need not be what the job loads.
inline Severity capped(const Case& c, const std::vector<Found>& all, Severity severity) {
  if (c.cluster.job.nccl != Use::yes) severity = std::min(severity, Severity::notice);
  if (one_live_job(all)) return severity;
  if (std::ranges::all_of(all, live)) return std::min(severity, Severity::notice);  // of two jobs
  for (const Found& one : all) severity = capped_by_context(severity, one.node->context);
  return severity;
}

inline Evidence row_of(const Found& one,
                       std::string fact,
                       std::string observed,
                       std::string expected,
                       std::string command) {
  return {.node = one.host(),
          .fact = std::move(fact),
          .observed = std::move(observed),
          .expected = std::move(expected),
          .context = std::string(slug(one.node->context)),
          .command = std::move(command)};
}

inline Fix by_hand(std::string node, std::string text) {
  return {.node = std::move(node), .kind = Fix::Kind::manual, .text = std::move(text)};
}

// "2.8" of "2.8.0+cu128".
inline std::string minor_version(std::string_view version) {
  const auto first = version.find('.');
  if (first == std::string_view::npos) return std::string(version);
  return std::string(version.substr(0, version.find_first_not_of("0123456789", first + 1)));
}

// One value of what the nodes have, most of them `usual`; what is not known is left out.
template <class Field>
std::vector<Found> differing(std::vector<Found> all, Field field, std::string& usual) {
  std::erase_if(all, [&](const Found& one) { return field(one).empty(); });
  const auto most = usual_value(all, field);
  if (!most) return {};
  usual = most->value;
  return odd_ones_out(all, usual, field);
}

}  // namespace distdoctor::checks::software
