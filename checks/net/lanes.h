// A lane: one node's dials to one address that another node announces, over the ports that the
// libraries may be given. Sorted here into what stops them, so that each check takes its own.
#pragma once

#include <distdoctor/between.h>
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/open_way.h>
#include <distdoctor/untested.h>

#include "gloo_way.h"
#include "use.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace distdoctor::checks {

struct Lane {
  const NodeFacts* from;
  const NodeFacts* to;
  Address address;
  std::vector<Purpose> purposes = {};    // of the libraries that would dial it this way
  std::vector<const Dial*> inside = {};  // the ephemeral range of `to`, in rising order
  const Dial* outside = nullptr;         // a port of ours outside that range, where it was tried
  const Dial* master = nullptr;          // MASTER_PORT at the same address
};

enum class LaneState : std::uint8_t {
  open,
  dropped,      // ephemeral ports, while another port passes or MASTER_PORT is dropped as well
  rejected,     // ephemeral ports
  one_way,      // every port is dropped, the other way is open
  unreachable,  // nothing gets there, and nothing comes back
  elsewhere,    // another check names the reason, or nothing clear
};

struct LaneReading {
  Lane lane;
  LaneState state = LaneState::open;
  Reading sample;                        // the most certain of the failing dials
  std::vector<const Dial*> failed = {};  // of `inside`
};

// --- building ---

// Where the range is not known all ports of our listeners count as of it: they were spread over it.
inline bool ephemeral(const NodeFacts& node, std::uint16_t port) {
  return !node.kernel.known() || (port >= node.kernel->port_low && port <= node.kernel->port_high);
}

inline void add_purpose(const ClusterFacts& cluster, Lane& lane, const Dial& dial) {
  const bool used = dial.purpose != Purpose::gloo || gloo_dials(cluster, *lane.from, dial.address);
  if (used && std::ranges::find(lane.purposes, dial.purpose) == lane.purposes.end()) {
    lane.purposes.push_back(dial.purpose);
  }
}

inline void add_to(Lane& lane, const Dial& dial) {
  if (dial.purpose == Purpose::master) {
    lane.master = &dial;
    return;
  }
  if (!ephemeral(*lane.to, dial.port)) {
    lane.outside = &dial;
  } else if (std::ranges::find(lane.inside, dial.port, &Dial::port) == lane.inside.end()) {
    lane.inside.push_back(&dial);
  }
}

inline std::vector<Lane> lanes_of(const ClusterFacts& cluster, const PairFacts& pair) {
  std::vector<Lane> lanes;
  const NodeFacts* from = find_node(cluster, pair.from);
  const NodeFacts* to = find_node(cluster, pair.to);
  if (from == nullptr || to == nullptr || from == to) return lanes;
  for (const Dial& dial : pair.dials) {
    if (dial.address.loopback()) continue;  // never leads to another node
    auto lane = std::ranges::find(lanes, dial.address, &Lane::address);
    if (lane == lanes.end()) {
      lanes.push_back({.from = from, .to = to, .address = dial.address});
      lane = lanes.end() - 1;
    }
    add_to(*lane, dial);
    if (dial.purpose != Purpose::master) add_purpose(cluster, *lane, dial);
  }
  std::erase_if(lanes, [](const Lane& lane) { return lane.inside.empty(); });
  for (Lane& lane : lanes) std::ranges::sort(lane.inside, {}, &Dial::port);
  return lanes;
}

// --- sorting ---

inline bool passes(const Dial* dial) {
  return dial != nullptr && dial->outcome == Outcome::ok;
}

inline Reading reading_of(const Lane& lane, const Dial& dial) {
  return distdoctor::reading_of(*lane.from, lane.to, dial);
}

// Lost dials of a lossy path are no filter's: two neighbours at least, or all.
inline bool in_one_run(const Lane& lane, const std::vector<const Dial*>& failed) {
  if (failed.size() == lane.inside.size()) return true;
  if (failed.size() < 2) return false;
  const auto first = std::ranges::find(lane.inside, failed.front());
  return std::equal(failed.begin(), failed.end(), first,
                    std::min(first + static_cast<long>(failed.size()), lane.inside.end()));
}

inline bool very_lossy(const ClusterFacts& cluster, const Lane& lane) {
  constexpr double kMuch = 0.1;
  const PairFacts* pair = find_pair(cluster, lane.from->host, lane.to->host);
  return pair != nullptr && std::ranges::any_of(pair->paths, [&](const Path& path) {
           return path.destination == lane.address && path.loss.known() &&
                  path.loss->received < static_cast<int>((1 - kMuch) * path.loss->sent);
         });
}

// What `to` tried towards `from`: by the addresses that the failing dials come from, else any.
inline bool other_way_open(const ClusterFacts& cluster, const Lane& lane) {
  const PairFacts* back = find_pair(cluster, lane.to->host, lane.from->host);
  if (back == nullptr) return false;
  const auto& source = lane.inside.front()->source;
  const auto same = [&](const Dial& dial) { return !source || dial.address == *source; };
  const bool tried = std::ranges::any_of(back->dials, same);
  return std::ranges::any_of(back->dials, [&](const Dial& dial) {
    return dial.outcome == Outcome::ok && (!tried || same(dial));
  });
}

inline bool dropped_too(const Lane& lane, const Dial* dial) {
  return dial != nullptr && dial->outcome == Outcome::timed_out &&
         reading_of(lane, *dial).kind == Kind::dropped;
}

inline LaneState state_of_dropped(const ClusterFacts& cluster, const LaneReading& row) {
  const Lane& lane = row.lane;
  const bool some_pass = row.failed.size() < lane.inside.size();
  if (some_pass || passes(lane.outside) || passes(lane.master)) return LaneState::dropped;
  const bool back = other_way_open(cluster, lane);
  if (!back) return LaneState::unreachable;
  const bool all_tried = lane.outside != nullptr && !dropped_too(lane, lane.master);
  return all_tried ? LaneState::one_way : LaneState::dropped;
}

inline bool no_route_here(const Dial& dial) {
  return dial.error.ends_with(", at once");
}

inline LaneState state_of(const ClusterFacts& cluster, const LaneReading& row) {
  const Reading& sample = row.sample;
  if (!in_one_run(row.lane, row.failed) || very_lossy(cluster, row.lane)) {
    return LaneState::elsewhere;
  }
  switch (sample.kind) {
    case Kind::dropped:
      return state_of_dropped(cluster, row);
    case Kind::rejected:
      return LaneState::rejected;
    case Kind::unreachable: {
      const bool all = row.failed.size() == row.lane.inside.size() && !passes(row.lane.outside);
      const bool ours = sample.excluded.empty() && !no_route_here(*sample.dial) &&
                        sample.dial->outcome != Outcome::local_error;
      return all && ours ? LaneState::unreachable : LaneState::elsewhere;
    }
    case Kind::refused:
    case Kind::wrong_service:
      break;
  }
  return LaneState::elsewhere;
}

inline LaneReading read_lane(const ClusterFacts& cluster, const Lane& lane) {
  LaneReading row{.lane = lane,
                  .sample = {.from = lane.from,
                             .target = lane.to,
                             .dial = lane.inside.front(),
                             .kind = Kind::unreachable,
                             .spot = Spot::unknown,
                             .certainty = Certainty::possible}};
  std::vector<Reading> readings;
  for (const Dial* dial : lane.inside) {
    if (dial->outcome == Outcome::ok) continue;
    row.failed.push_back(dial);
    readings.push_back(reading_of(lane, *dial));
  }
  // The kind that most have speaks for all; of these the one that is the surest.
  const auto usual = usual_value(readings, &Reading::kind);
  if (!usual) return row;
  const Kind kind = usual->value;
  for (const Reading& reading : readings) {
    if (reading.kind != kind) continue;
    if (row.sample.kind != kind || reading.certainty > row.sample.certainty) row.sample = reading;
  }
  row.state = state_of(cluster, row);
  return row;
}

inline std::vector<LaneReading> lanes_in(const ClusterFacts& cluster, std::set<LaneState> states) {
  std::vector<LaneReading> all;
  for (const PairFacts& pair : cluster.pairs) {
    for (const Lane& lane : lanes_of(cluster, pair)) {
      LaneReading row = read_lane(cluster, lane);
      if (states.contains(row.state)) all.push_back(std::move(row));
    }
  }
  return all;
}

// --- words ---

using LaneReadings = std::vector<LaneReading>;

template <class Field>
std::vector<std::string> hosts_of(const LaneReadings& rows, Field field) {
  std::vector<std::string> hosts;
  for (const LaneReading& row : rows) {
    const std::string& host = (row.lane.*field)->host;
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return hosts;
}

inline std::string list(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, ", "));
}

// None where the node's kernel was not seen: no figure may stand in for it.
inline std::optional<PortRange> range_of(const NodeFacts& node) {
  if (!node.kernel.known()) return std::nullopt;
  return PortRange{static_cast<std::uint16_t>(node.kernel->port_low),
                   static_cast<std::uint16_t>(node.kernel->port_high)};
}

inline std::string spot_text(const LaneReadings& rows) {
  const Spot spot = rows.front().sample.spot;
  const std::string to = list(hosts_of(rows, &Lane::to));
  switch (spot) {
    case Spot::target:
      return "by " + to + (hosts_of(rows, &Lane::to).size() == 1 ? " itself" : " themselves") +
             rule_text(rows.front().sample);
    case Spot::sender:
      return "on " + list(hosts_of(rows, &Lane::from)) + " already" +
             rule_text(rows.front().sample);
    case Spot::between:
      return "between " + list(hosts_of(rows, &Lane::from)) + " and " + to;
    case Spot::unknown:
      break;
  }
  return fmt::format("by a filter on {}, or on the way there ({})", to,
                     what_lies_between(rows.front().lane.to));
}

inline Evidence evidence_of(const LaneReading& row) {
  const Dial& dial = *row.sample.dial;
  return {
      .node = row.lane.from->host,
      .fact = "dial " + row.lane.address.text(),
      .observed = fmt::format("{}{} on {} of {} ephemeral ports ({} to {}){}{}", slug(dial.outcome),
                              dial.error.starts_with("ICMP") ? " (" + dial.error + ")" : "",
                              row.failed.size(), row.lane.inside.size(), row.failed.front()->port,
                              row.failed.back()->port, trace_text(dial), doubt_text(row.sample)),
      .expected = "a connection on each",
      .command = fmt::format("nc -vz -w 3 {} {}", shell_quote(row.lane.address.text()), dial.port)};
}

// --- how bad, about whom ---

inline std::vector<Purpose> purposes_of(const LaneReadings& rows) {
  std::vector<Purpose> purposes;
  for (const LaneReading& row : rows) {
    purposes.insert(purposes.end(), row.lane.purposes.begin(), row.lane.purposes.end());
  }
  return purposes;
}

inline Severity severity_of(const JobSpec& job, const LaneReadings& rows) {
  return capped_by_purposes(job, Severity::blocker, purposes_of(rows));
}

// The end where the packets were seen to stop. Else the target, if it fails for several and nobody
// gets through; else both ends of the only pair, which nothing tells apart.
inline std::vector<std::string> blamed(const LaneReadings& rows) {
  const Spot spot = rows.front().sample.spot;
  auto targets = hosts_of(rows, &Lane::to);
  auto senders = hosts_of(rows, &Lane::from);
  if (spot == Spot::sender) return senders;
  if (spot == Spot::target || senders.size() > 1) return targets;
  for (const std::string& host : senders) {
    if (std::ranges::find(targets, host) == targets.end()) targets.push_back(host);
  }
  return targets;
}

inline Readings samples_of(const LaneReadings& rows) {
  Readings samples;
  for (const LaneReading& row : rows) samples.push_back(row.sample);
  return samples;
}

inline Finding finding_about(const Case& c, const LaneReadings& rows, std::string code) {
  Finding finding{.code = std::move(code),
                  .severity = severity_of(c.cluster.job, rows),
                  .certainty = Certainty::proved,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = blamed(rows)},
                  .summary = ""};
  for (const LaneReading& row : rows) {
    const std::pair ends(row.lane.from->host, row.lane.to->host);
    auto& pairs = finding.subjects.pairs;
    if (std::ranges::find(pairs, ends) == pairs.end()) pairs.push_back(ends);
    finding.certainty = std::min(finding.certainty, row.sample.certainty);
    finding.evidence.push_back(evidence_of(row));
  }
  add_rules(samples_of(rows), finding.evidence);
  return finding;
}

// Reported with a word on why it is no more than a notice, where that hangs on the library.
inline void conclude(const Case& c, const LaneReadings& rows, Finding finding, Judge& judge) {
  const JobSpec& job = c.cluster.job;
  std::vector<Purpose> purposes = purposes_of(rows);
  const bool only_gloo =
      std::ranges::all_of(purposes, [](Purpose purpose) { return purpose == Purpose::gloo; });
  const bool open = job.nccl == Use::maybe || job.gloo == Use::maybe;
  if (finding.severity == Severity::notice && open && !purposes.empty()) {
    finding.summary += only_gloo ? hangs_on_use(Use::maybe, "Gloo", "gloo")
                                 : hangs_on_use(Use::maybe, "NCCL", "nccl");
  }
  judge.report(std::move(finding));
}

// --- mending ---

// At one target for all who fail there.
inline std::vector<Fix> let_in(const LaneReadings& rows, const Lane& target) {
  const auto ports = range_of(*target.to);
  if (!ports) return {};
  LaneReadings there;
  std::ranges::copy_if(rows, std::back_inserter(there), [&](const LaneReading& row) {
    return row.lane.to == target.to && row.lane.address == target.address;
  });
  return distdoctor::let_in(samples_of(there), *ports, false);
}

inline std::vector<Fix> let_out(const LaneReading& row) {
  const auto ports = range_of(*row.lane.to);
  if (!ports) return {};
  return distdoctor::let_out(row.sample, *ports);
}

// "TCP to node1 ports 32768-60999"
inline std::string what_to_allow(const LaneReadings& rows) {
  const auto ports = range_of(*rows.front().lane.to);
  return fmt::format("TCP to {} ports {}", list(hosts_of(rows, &Lane::to)),
                     ports ? ports->text() : "of `sysctl net.ipv4.ip_local_port_range`");
}

inline Fix allow_in_the_filter(const LaneReadings& rows) {
  return {.node = rows.front().lane.to->host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("allow {} from {} in the packet filter of the node",
                              what_to_allow(rows), list(hosts_of(rows, &Lane::from)))};
}

inline std::vector<Fix> open_the_way(const LaneReadings& rows) {
  const Spot spot = rows.front().sample.spot;
  std::vector<Fix> fixes;
  for (const LaneReading& row : rows) {
    if (spot == Spot::sender) add_new(fixes, let_out(row));
    if (spot == Spot::target || spot == Spot::unknown) {
      add_new(fixes, let_in(rows, row.lane));
    }
  }
  if (spot == Spot::between || spot == Spot::unknown) {
    const NodeFacts* const to = rows.front().lane.to;
    if (in_a_pod(to)) fixes.push_back(look_at_policies(*to));
    fixes.push_back(
        ask_the_network(to->host, what_to_allow(rows), list(hosts_of(rows, &Lane::from))));
  }
  if (fixes.empty()) fixes.push_back(allow_in_the_filter(rows));
  return fixes;
}

// Lanes of one kind and spot together, in the order of their first.
inline std::vector<LaneReadings> by_spot(const LaneReadings& rows) {
  std::vector<LaneReadings> groups;
  for (const LaneReading& row : rows) {
    const auto group = std::ranges::find_if(groups, [&](const LaneReadings& known) {
      return known.front().state == row.state && known.front().sample.spot == row.sample.spot;
    });
    if (group == groups.end()) {
      groups.push_back({row});
    } else {
      group->push_back(row);
    }
  }
  return groups;
}

// What might be the reason of a silence in place of a filter, and could not be looked at.
inline void note_doubts(const LaneReadings& rows, Judge& judge) {
  for (const LaneReading& row : rows) note_doubt(row.sample, judge);
}

}  // namespace distdoctor::checks
