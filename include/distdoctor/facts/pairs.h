// What test traffic between two nodes showed. The dialling side is `from`.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/facts/network.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class Purpose : std::uint8_t { master, nccl_bootstrap, nccl_data, gloo };
template <>
struct EnumNames<Purpose> {
  static constexpr std::string_view values[] = {"master", "bootstrap", "data", "gloo"};
};

enum class Outcome : std::uint8_t {
  ok,         // the listener's nonce came back; to MASTER_PORT owned by others: connected
  refused,    // RST, or ICMP port unreachable
  timed_out,  // nothing came back
  host_unreachable,
  net_unreachable,
  prohibited,    // ICMP administratively prohibited: a firewall's reject
  reset,         // accepted, then reset before the nonce
  wrong_answer,  // somebody else's nonce or other bytes: NAT, proxy, duplicate address, ourselves
  no_answer,     // connected, but no nonce within the deadline
  local_error,   // never left this node: EPERM, EADDRNOTAVAIL, EINVAL, ...
};
template <>
struct EnumNames<Outcome> {
  static constexpr std::string_view values[] = {
      "ok",         "refused", "timed out",    "host unreachable", "network unreachable",
      "prohibited", "reset",   "wrong answer", "no answer",        "local error"};
};

struct Dial {
  Purpose purpose = Purpose::master;
  Address address;
  std::uint16_t port = 0;
  bool ours = false;  // a listener of ours was there; false: the job's own port, or nobody's
  Outcome outcome = Outcome::ok;
  std::string error = {};               // "connect: ECONNREFUSED", "ICMP 3/13 from 10.0.0.1"
  double ms = 0;                        // until the outcome; for ok the TCP handshake alone
  std::optional<Address> source = {};   // our own end, as getsockname says
  std::optional<Address> seen_as = {};  // our end as the listener saw it; differs behind NAT
  // Whether the first packet was seen going out on our own link: a filter for outgoing packets or
  // an unanswered ARP request keeps it from there (needs root here).
  Observed<bool> syn_left = {};
  // Whether the first packet was seen arriving on the target's own link (needs root there).
  Observed<bool> syn_arrived = {};
  std::string arrived_by = {};  // the target's link on which it was seen first, where it was
  RouteAnswer route = {};
  bool operator==(const Dial&) const = default;
};

struct PathMtu {
  int link_mtu = 0;                 // of the interface that the packets left by
  std::optional<int> largest = {};  // IP packet with DF that got through, bytes; none: see `error`
  bool bulk_arrived = false;        // a TCP transfer with full segments was delivered whole
  bool small_arrived = false;       // a TCP transfer of one small segment was delivered
  std::int64_t bulk_bytes = 0;      // delivered before the deadline
  std::string error = {};
  bool operator==(const PathMtu&) const = default;
};

struct Loss {
  int sent = 0;  // UDP packets of ours that the kernel took
  int received = 0;
  int repeated_sent = 0;  // the second round, made when the first lost any
  int repeated_received = 0;
  bool operator==(const Loss&) const = default;
};

// What plain TCP carries over a path, nothing else of ours being under way. Measured on request
// only: it fills the wire for about a second.
struct WireSpeed {
  int streams = 1;
  double gb_per_s = 0;  // 10^9 bytes of payload, as the other end acknowledged them
  double seconds = 0;   // over which that was counted
  bool operator==(const WireSpeed&) const = default;
};

struct Path {  // from one address to one address
  Purpose purpose = Purpose::nccl_data;
  Address source;
  Address destination;
  std::string interface = {};    // at the sender
  Observed<double> rtt_ms = {};  // median TCP round trip of the probe's own bytes
  Observed<PathMtu> mtu = {};
  Observed<Loss> loss = {};
  Observed<std::vector<WireSpeed>> wire = {};  // by number of streams
  bool operator==(const Path&) const = default;
};

struct PairFacts {
  std::string from = {};
  std::string to = {};  // a peer; empty: MASTER_ADDR is no peer's address
  std::vector<Dial> dials = {};
  std::vector<Path> paths = {};
  Observed<bool> complete = true;  // Unknown: some or all of the planned traffic has no outcome
  bool operator==(const PairFacts&) const = default;
};

// Traffic that was not planned, or not sent at all, and why.
struct Untried {
  std::string node = {};  // whose; empty: everybody's
  std::string what = {};  // "MASTER_PORT": dials to it; else between the nodes, or all of it
  Unknown why = {};
  bool operator==(const Untried&) const = default;
};

// A MAC that answers ARP for an address though it is not the only one, or not the owner's. `node`
// asked; it owns the address or is a peer of the owner (needs root).
struct DuplicateAddress {
  std::string node = {};
  std::string interface = {};
  Address address = {};
  std::string other_mac = {};
  bool operator==(const DuplicateAddress&) const = default;
};

template <class V, Is<Dial> T>
void fields(V& v, T& x) {
  v("purpose", x.purpose);
  v("address", x.address);
  v("port", x.port);
  v("ours", x.ours);
  v("outcome", x.outcome);
  v("error", x.error);
  v("ms", x.ms);
  v("source", x.source);
  v("seen_as", x.seen_as);
  v("syn_left", x.syn_left);
  v("syn_arrived", x.syn_arrived);
  v("arrived_by", x.arrived_by);
  v("route", x.route);
}
template <class V, Is<PathMtu> T>
void fields(V& v, T& x) {
  v("link_mtu", x.link_mtu);
  v("largest", x.largest);
  v("bulk_arrived", x.bulk_arrived);
  v("small_arrived", x.small_arrived);
  v("bulk_bytes", x.bulk_bytes);
  v("error", x.error);
}
template <class V, Is<Loss> T>
void fields(V& v, T& x) {
  v("sent", x.sent);
  v("received", x.received);
  v("repeated_sent", x.repeated_sent);
  v("repeated_received", x.repeated_received);
}
template <class V, Is<WireSpeed> T>
void fields(V& v, T& x) {
  v("streams", x.streams);
  v("gb_per_s", x.gb_per_s);
  v("seconds", x.seconds);
}
template <class V, Is<Path> T>
void fields(V& v, T& x) {
  v("purpose", x.purpose);
  v("source", x.source);
  v("destination", x.destination);
  v("interface", x.interface);
  v("rtt_ms", x.rtt_ms);
  v("mtu", x.mtu);
  v("loss", x.loss);
  v("wire", x.wire);
}
template <class V, Is<PairFacts> T>
void fields(V& v, T& x) {
  v("from", x.from);
  v("to", x.to);
  v("dials", x.dials);
  v("paths", x.paths);
  v("complete", x.complete);
}
template <class V, Is<Untried> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("what", x.what);
  v("why", x.why);
}
template <class V, Is<DuplicateAddress> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("interface", x.interface);
  v("address", x.address);
  v("other_mac", x.other_mac);
}

}  // namespace distdoctor
