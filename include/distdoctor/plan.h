// What an agent may be asked to do: a fixed list, as values. Nothing else is ever run on a node.
#pragma once

#include <distdoctor/address.h>
#include <distdoctor/enum_names.h>
#include <distdoctor/facts.h>
#include <distdoctor/worker_line.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor {

// Read the node. Answered by NodeFacts, in parts as the collectors finish.
struct CollectRequest {
  std::vector<std::string> collectors = {};  // names of src/collect; empty: all of them
  std::vector<std::string> names = {};       // to resolve by each source, as the own hostname is
  std::vector<std::string> also = {};        // after them, only as the job would; as time allows
  // What the job says of where its libraries and files are: LD_LIBRARY_PATH, NCCL_NET_PLUGIN, ...
  // Each in place of the agent's own.
  std::map<std::string, std::string> settings = {};
  std::string checks_dir = {};  // of the site's own checks; empty: /etc/distdoctor/checks.d
  int within_ms = 0;            // set by the agent from the frame's deadline; 0: none
  bool operator==(const CollectRequest&) const = default;
};

// Open listeners and keep them until the report is asked for, or `hold_ms` is over.
struct ListenRequest {
  std::string id = {};  // names the set in later requests
  Address address = {};
  int spread = 0;  // so many ports over the node's own ip_local_port_range, both ends included
  bool outside = false;                    // and one port outside that range, where there is room
  std::optional<std::uint16_t> port = {};  // or this one: MASTER_PORT, released at a foreign client
  std::uint64_t nonce = 0;                 // sent to whoever connects
  bool udp = false;             // a UDP sink and a bulk TCP sink too, for loss and path MTU
  bool watch_arrivals = false;  // watch for SYNs on the links, where the node lets us
  bool watch_only = false;      // bind nothing: somebody else owns `port`
  int hold_ms = 0;
  bool operator==(const ListenRequest&) const = default;
};
struct ListenAnswer {
  std::vector<std::uint16_t> ports = {};
  std::uint16_t outside_port = 0;  // 0: none
  std::uint16_t udp_port = 0;
  std::uint16_t bulk_port = 0;
  std::string watching = {};  // empty: arrivals are watched; else why not
  std::string error = {};     // no listener could be opened, and why
  bool operator==(const ListenAnswer&) const = default;
};

struct DialTarget {
  Purpose purpose = Purpose::master;
  Address address = {};
  std::uint16_t port = 0;
  std::optional<std::uint64_t> nonce = {};  // none: connect and close at once, send nothing
  std::optional<Address> source = {};       // bind to it first; none: let the kernel choose
  // Only when another target of this address has failed: it tells whether all ports do.
  bool only_after_failure = false;
  bool operator==(const DialTarget&) const = default;
};
struct DialRequest {
  std::vector<DialTarget> targets = {};
  int timeout_ms = 0;  // each; all are dialled at once
  bool operator==(const DialRequest&) const = default;
};
struct DialAnswer {
  std::vector<Dial> dials = {};             // one a target, in their order
  std::vector<std::uint32_t> untried = {};  // which of them: only_after_failure, and nothing failed
  bool operator==(const DialAnswer&) const = default;
};

// Round trip, path MTU and loss to a listening set with `udp`; with `streams` round trip and wire.
struct PathTarget {
  Purpose purpose = Purpose::nccl_data;
  Address source = {};  // unspecified: the kernel chooses, as for NCCL and Gloo
  Address destination = {};
  std::uint16_t udp_port = 0;
  std::uint16_t bulk_port = 0;
  std::uint64_t nonce = 0;
  int loss_packets = 1000;  // 0 to 100,000
  // So many TCP streams fill the wire at once, one number after the other; 1 to 64, 8 numbers.
  std::vector<int> streams = {};
  int speed_ms = 0;  // for each of these numbers, up to 5,000
  bool operator==(const PathTarget&) const = default;
};
struct PathRequest {
  std::vector<PathTarget> targets = {};
  int timeout_ms = 0;
  bool operator==(const PathRequest&) const = default;
};
struct PathAnswer {
  std::vector<Path> paths = {};
  bool operator==(const PathAnswer&) const = default;
};

// Close a listening set and tell what came.
struct ReportRequest {
  std::string id = {};
  bool operator==(const ReportRequest&) const = default;
};
struct Arrival {
  Address source = {};
  Address destination = {};
  std::uint16_t port = 0;
  std::string interface = {};
  bool operator==(const Arrival&) const = default;
};
struct ReportAnswer {
  std::vector<Arrival> syns = {};      // seen on the links, each (source, port) once
  std::vector<Arrival> accepted = {};  // connections that were accepted and got the nonce
  std::string watching = {};           // as in ListenAnswer
  // Empty: listened until this report. Else why not: "the hold time was over", "a foreign client".
  std::string closed = {};
  bool operator==(const ReportAnswer&) const = default;
};

// ARP probes on these interfaces (RFC 5227; needs root). An address of the node's own is reported
// for every MAC that answers and is not the node's; an address of a peer for every MAC, when more
// than one answers. The coordinator fills in `node`: the one that asked.
struct DuplicateRequest {
  std::vector<Choice> choices = {};
  bool operator==(const DuplicateRequest&) const = default;
};
struct DuplicateAnswer {
  Observed<std::vector<DuplicateAddress>> duplicates = {};
  bool operator==(const DuplicateAnswer&) const = default;
};

// Opens a queue pair on an RDMA port and waits for the other end. First asked with `other` empty:
// the answer is this end's name. Asked again with the other end's, it connects, sends or receives,
// and tells what happened.
struct RdmaEnd {
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  // its packet sequence number
  int lid = 0;
  std::string gid = {};
  int mtu = 0;  // of the port, bytes
  bool operator==(const RdmaEnd&) const = default;
};
struct RdmaRequest {
  std::string id = {};  // names the queue pair in the second request
  std::string device = {};
  int port = 1;
  int gid_index = -1;                    // of RoCE
  bool sends = false;                    // this end sends; the other receives
  std::vector<std::int64_t> sizes = {};  // of the messages, bytes; 4 MiB at most
  std::optional<RdmaEnd> other = {};
  int timeout_ms = 0;
  bool operator==(const RdmaRequest&) const = default;
};
struct RdmaAnswer {
  RdmaEnd end = {};
  std::string error = {};
  int error_code = 0;
  std::vector<RdmaMessage> messages = {};  // of the second request
  bool operator==(const RdmaAnswer&) const = default;
};

// Ranks of a tiny all-reduce, each a process of its own. The first request of an id starts them; a
// rank then runs until it publishes something, or to its end. While any rank of the job waits, all
// that was published goes to every node in the next request.
struct RunRequest {
  std::string id = {};
  RunBackend backend = RunBackend::nccl;
  std::vector<WorkerJob> jobs = {};    // this node's ranks; of the first request only
  std::vector<WorkerBlob> blobs = {};  // of all ranks; of later requests
  bool over = false;                   // end what is left of them: another rank is gone
  int stage_ms = 0;                    // how long a rank may take from one line to the next
  bool operator==(const RunRequest&) const = default;
};
// Those lines of a rank's own log that show switches, transports, interfaces and warnings.
struct WorkerLog {
  int rank = 0;
  std::vector<std::string> lines = {};
  bool operator==(const WorkerLog&) const = default;
};
struct RunAnswer {
  std::vector<WorkerBlob> blobs = {};  // of the ranks that wait
  std::vector<RankRun> ranks = {};     // of those that have ended since the last answer
  std::vector<WorkerLog> logs = {};
  bool operator==(const RunAnswer&) const = default;
};

using Request = std::variant<CollectRequest,
                             ListenRequest,
                             DialRequest,
                             PathRequest,
                             ReportRequest,
                             DuplicateRequest,
                             RdmaRequest,
                             RunRequest>;
using Answer = std::variant<NodeFacts,
                            ListenAnswer,
                            DialAnswer,
                            PathAnswer,
                            ReportAnswer,
                            DuplicateAnswer,
                            RdmaAnswer,
                            RunAnswer>;

template <class V, Is<CollectRequest> T>
void fields(V& v, T& x) {
  v("collectors", x.collectors);
  v("names", x.names);
  v("also", x.also);
  v("settings", x.settings);
  v("checks_dir", x.checks_dir);
  v("within_ms", x.within_ms);
}
template <class V, Is<ListenRequest> T>
void fields(V& v, T& x) {
  v("id", x.id);
  v("address", x.address);
  v("spread", x.spread);
  v("outside", x.outside);
  v("port", x.port);
  v("nonce", x.nonce);
  v("udp", x.udp);
  v("watch_arrivals", x.watch_arrivals);
  v("watch_only", x.watch_only);
  v("hold_ms", x.hold_ms);
}
template <class V, Is<ListenAnswer> T>
void fields(V& v, T& x) {
  v("ports", x.ports);
  v("outside_port", x.outside_port);
  v("udp_port", x.udp_port);
  v("bulk_port", x.bulk_port);
  v("watching", x.watching);
  v("error", x.error);
}
template <class V, Is<DialTarget> T>
void fields(V& v, T& x) {
  v("purpose", x.purpose);
  v("address", x.address);
  v("port", x.port);
  v("nonce", x.nonce);
  v("source", x.source);
  v("only_after_failure", x.only_after_failure);
}
template <class V, Is<DialRequest> T>
void fields(V& v, T& x) {
  v("targets", x.targets);
  v("timeout_ms", x.timeout_ms);
}
template <class V, Is<DialAnswer> T>
void fields(V& v, T& x) {
  v("dials", x.dials);
  v("untried", x.untried);
}
template <class V, Is<PathTarget> T>
void fields(V& v, T& x) {
  v("purpose", x.purpose);
  v("source", x.source);
  v("destination", x.destination);
  v("udp_port", x.udp_port);
  v("bulk_port", x.bulk_port);
  v("nonce", x.nonce);
  v("loss_packets", x.loss_packets);
  v("streams", x.streams);
  v("speed_ms", x.speed_ms);
}
template <class V, Is<PathRequest> T>
void fields(V& v, T& x) {
  v("targets", x.targets);
  v("timeout_ms", x.timeout_ms);
}
template <class V, Is<PathAnswer> T>
void fields(V& v, T& x) {
  v("paths", x.paths);
}
template <class V, Is<ReportRequest> T>
void fields(V& v, T& x) {
  v("id", x.id);
}
template <class V, Is<Arrival> T>
void fields(V& v, T& x) {
  v("source", x.source);
  v("destination", x.destination);
  v("port", x.port);
  v("interface", x.interface);
}
template <class V, Is<ReportAnswer> T>
void fields(V& v, T& x) {
  v("syns", x.syns);
  v("accepted", x.accepted);
  v("watching", x.watching);
  v("closed", x.closed);
}
template <class V, Is<DuplicateRequest> T>
void fields(V& v, T& x) {
  v("choices", x.choices);
}
template <class V, Is<DuplicateAnswer> T>
void fields(V& v, T& x) {
  v("duplicates", x.duplicates);
}
template <class V, Is<RdmaEnd> T>
void fields(V& v, T& x) {
  v("queue_pair", x.queue_pair);
  v("first_packet", x.first_packet);
  v("lid", x.lid);
  v("gid", x.gid);
  v("mtu", x.mtu);
}
template <class V, Is<RdmaRequest> T>
void fields(V& v, T& x) {
  v("id", x.id);
  v("device", x.device);
  v("port", x.port);
  v("gid_index", x.gid_index);
  v("sends", x.sends);
  v("sizes", x.sizes);
  v("other", x.other);
  v("timeout_ms", x.timeout_ms);
}
template <class V, Is<RdmaAnswer> T>
void fields(V& v, T& x) {
  v("end", x.end);
  v("error", x.error);
  v("error_code", x.error_code);
  v("messages", x.messages);
}
template <class V, Is<RunRequest> T>
void fields(V& v, T& x) {
  v("id", x.id);
  v("backend", x.backend);
  v("jobs", x.jobs);
  v("blobs", x.blobs);
  v("over", x.over);
  v("stage_ms", x.stage_ms);
}
template <class V, Is<WorkerLog> T>
void fields(V& v, T& x) {
  v("rank", x.rank);
  v("lines", x.lines);
}
template <class V, Is<RunAnswer> T>
void fields(V& v, T& x) {
  v("blobs", x.blobs);
  v("ranks", x.ranks);
  v("logs", x.logs);
}

}  // namespace distdoctor
