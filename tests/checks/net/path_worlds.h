// What the tests of path checks change: the dials from one node to what another one announces.
#pragma once

#include <distdoctor/firewall_fix.h>

#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {

inline constexpr std::uint16_t kOutside = 16896;

// The dials of one direction to the address that carries NCCL's data, or Gloo's traffic.
template <class Change>
void each_dial(World& w, std::size_t from, std::size_t to, Change change) {
  for (Dial& dial : w.pair(from, to).dials) {
    if (dial.purpose != Purpose::master) change(dial);
  }
}

inline void fail(Dial& dial,
                 Outcome outcome,
                 std::optional<bool> arrived,
                 std::optional<bool> left) {
  dial.outcome = outcome;
  dial.seen_as.reset();
  dial.syn_arrived = Unknown{.kind = Why::denied};
  dial.syn_left = Unknown{.kind = Why::denied};
  if (arrived) dial.syn_arrived = *arrived;
  if (left) dial.syn_left = *left;
  dial.route = {.interface = dial.address.text().starts_with("10.20") ? "eth1" : "eth0"};
}

// Where the SYN was last seen.
enum class Seen { arrived, left, kept, unwatched };
inline void fail_at(Dial& dial, Outcome outcome, Seen seen) {
  switch (seen) {
    case Seen::arrived:
      return fail(dial, outcome, true, true);
    case Seen::left:
      return fail(dial, outcome, false, true);
    case Seen::kept:
      return fail(dial, outcome, false, false);
    case Seen::unwatched:
      return fail(dial, outcome, std::nullopt, std::nullopt);
  }
}

// Data and bootstrap of one direction fail, ports from `first` to `last`.
struct Failing {
  Outcome outcome = Outcome::timed_out;
  Seen seen = Seen::arrived;
  int first = 32768;
  int last = 60999;
};
inline void fail_data(World& w, std::size_t from, std::size_t to, const Failing& how) {
  each_dial(w, from, to, [&](Dial& dial) {
    const bool data = dial.purpose != Purpose::gloo;
    if (data && dial.port >= how.first && dial.port <= how.last)
      fail_at(dial, how.outcome, how.seen);
  });
}

// The port outside the range was dialled too, and did the same or passed.
inline void try_outside(World& w, std::size_t from, std::size_t to, std::optional<Failing> how) {
  Dial dial = good_dial(Purpose::nccl_bootstrap, fast(to), kOutside, fast(from));
  if (how) fail_at(dial, how->outcome, how->seen);
  w.pair(from, to).dials.push_back(dial);
}

inline std::string open_data(std::size_t at, const std::vector<std::size_t>& peers) {
  Opening opening{.node = "node" + std::to_string(at),
                  .peers = {},
                  .ports = {32768, 60999},
                  .interface = "eth1"};
  for (const std::size_t peer : peers) opening.peers.push_back(addr(fast(peer)));
  return opening.node + ": " + open_port_fix(opening).front().command;
}

inline std::string dialled(std::size_t from,
                           std::size_t to,
                           const std::string& seen,
                           int port = 32768) {
  return "node" + std::to_string(from) + " dial " + fast(to) + ": " + seen +
         ", not a connection on each; nc -vz -w 3 " + fast(to) + " " + std::to_string(port);
}

}  // namespace distdoctor::testing
