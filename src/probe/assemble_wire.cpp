#include "probe/assemble.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::probe {
namespace {

// The sink that a path of the round leads to; null where it did not open.
const ListenAnswer* sink_of(const Round& round,
                            const PlannedPath& path,
                            std::span<const Observed<Answer>> listens) {
  for (std::size_t i = 0; i < round.listens.size(); ++i) {
    if (round.listens[i].request.id != path.listen) continue;
    const auto* answer = answer_as<ListenAnswer>(listens, i);
    return answer != nullptr && answer->error.empty() && answer->bulk_port != 0 ? answer : nullptr;
  }
  return nullptr;
}

Path* known_path(ClusterFacts& cluster, const PlannedPath& plan) {
  for (PairFacts& pair : cluster.pairs) {
    if (pair.from != plan.from || pair.to != plan.to) continue;
    const auto found = std::ranges::find(pair.paths, plan.target.destination, &Path::destination);
    if (found != pair.paths.end()) return &*found;
  }
  return nullptr;
}

// What was measured before stays.
void add_speeds(const Observed<std::vector<WireSpeed>>& fresh, Path& path) {
  if (!fresh.known()) {
    if (!path.wire.known()) path.wire = fresh.why();
    return;
  }
  auto rows = path.wire.known() ? *path.wire : std::vector<WireSpeed>{};
  rows.insert(rows.end(), fresh->begin(), fresh->end());
  path.wire = std::move(rows);
}

}  // namespace

std::vector<HostRequest> wire_requests(const Round& round,
                                       std::span<const Observed<Answer>> listens) {
  std::vector<HostRequest> requests;
  for (const PlannedPath& path : round.paths) {
    const ListenAnswer* sink = sink_of(round, path, listens);
    if (sink == nullptr) continue;
    PathRequest request{{path.target}, round.path_timeout_ms};
    request.targets.front().bulk_port = sink->bulk_port;
    requests.push_back({path.from, std::move(request)});
  }
  return requests;
}

void take_wires(const Round& round, const RoundAnswers& asked, ClusterFacts& cluster) {
  std::size_t next = 0;
  for (const PlannedPath& plan : round.paths) {
    Observed<std::vector<WireSpeed>> speeds = Unknown{Why::failed, plan.to + " did not listen"};
    if (sink_of(round, plan, asked.listens) != nullptr) {
      const auto* answer = answer_as<PathAnswer>(asked.paths, next);
      const bool came = answer != nullptr && answer->paths.size() == 1;
      speeds = came ? answer->paths.front().wire : why_none(asked.paths, next, plan.from);
      ++next;
    }
    if (Path* path = known_path(cluster, plan)) add_speeds(speeds, *path);
  }
}

}  // namespace distdoctor::probe
