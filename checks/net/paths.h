// What the checks of measured paths share: who is at their ends, and whom they are about.
#pragma once

#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/untested.h>
#include <distdoctor/views.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace distdoctor::checks {

// A measured path that is at fault, between two nodes that were looked at.
struct BadPath {
  const NodeFacts* from;
  const NodeFacts* to;
  const Path* path;
};

// A gap for each path of which nobody knows this.
template <class T>
void see_paths(const Case& c, std::string_view fact, Observed<T> Path::* what, Judge& judge) {
  for (const PairFacts& pair : c.cluster.pairs) {
    const NodeFacts* from = find_node(c.cluster, pair.from);
    for (const Path& path : pair.paths) {
      if (from != nullptr) judge.see(*from, fact, path.*what);
    }
  }
}

template <class Bad>
std::vector<BadPath> bad_paths(const ClusterFacts& cluster, Bad bad) {
  std::vector<BadPath> all;
  for (const PairFacts& pair : cluster.pairs) {
    const NodeFacts* from = find_node(cluster, pair.from);
    const NodeFacts* to = find_node(cluster, pair.to);
    if (from == nullptr || to == nullptr) continue;
    for (const Path& path : pair.paths) {
      if (bad(path)) all.push_back({from, to, &path});
    }
  }
  return all;
}

// The node that is an end of every bad path, where several nodes are at the other ends; else all
// ends, which nothing tells apart.
inline std::vector<std::string> ends_to_blame(const std::vector<BadPath>& paths) {
  std::vector<std::string> ends;
  for (const BadPath& row : paths) {
    for (const std::string& host : {row.from->host, row.to->host}) {
      if (std::ranges::find(ends, host) == ends.end()) ends.push_back(host);
    }
  }
  if (ends.size() < 3) return ends;
  for (const std::string& host : ends) {
    const bool in_all = std::ranges::all_of(
        paths, [&](const BadPath& row) { return row.from->host == host || row.to->host == host; });
    if (in_all) return {host};
  }
  return ends;
}

inline std::string whom(const Case& c, const std::vector<std::string>& hosts) {
  if (hosts.size() == 1) return hosts.front() + " or its link";
  const std::string text = fmt::format("{}", fmt::join(hosts, ", "));
  return c.cluster.nodes.size() == 2 ? text + " or what lies between" : text;
}

inline void add_ends(const std::vector<BadPath>& paths, Finding& finding) {
  finding.subjects.nodes = ends_to_blame(paths);
  for (const BadPath& row : paths) {
    const std::pair ends(row.from->host, row.to->host);
    auto& pairs = finding.subjects.pairs;
    if (std::ranges::find(pairs, ends) == pairs.end()) pairs.push_back(ends);
  }
}

// Notices where the job may do without the library whose paths these are.
inline Severity capped_by_purpose(const JobSpec& job,
                                  Severity severity,
                                  const std::vector<BadPath>& paths) {
  std::vector<Purpose> purposes;
  for (const BadPath& row : paths) purposes.push_back(row.path->purpose);
  return capped_by_purposes(job, severity, purposes);
}

// The interface of a node on such a path.
inline std::string interface_at(const BadPath& row, const std::string& host) {
  if (row.from->host == host) return row.path->interface;
  const auto at =
      row.to->links.known() ? find_address(*row.to->links, row.path->destination) : std::nullopt;
  return at ? at->link->name : "";
}

}  // namespace distdoctor::checks
