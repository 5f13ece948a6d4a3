// Runs of a tiny all-reduce in fresh processes, each with its own switches, and what several of
// them together isolate. Bus bandwidth is nccl-tests' (doc/PERFORMANCE.md): 2(n-1)/n times bytes
// over seconds.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class RunBackend : std::uint8_t { nccl, gloo };
template <>
struct EnumNames<RunBackend> {
  static constexpr std::string_view values[] = {"nccl", "gloo"};
};

// How far a rank came, in the order in which it goes.
enum class RunStage : std::uint8_t {
  none,
  loaded,  // the libraries
  device,
  comm_init,
  first_allreduce,
  verified,  // every result was right
  timed,
  done
};
template <>
struct EnumNames<RunStage> {
  static constexpr std::string_view values[] = {
      "none", "loaded", "device", "comm_init", "first_allreduce", "verified", "timed", "done"};
};

enum class RunOutcome : std::uint8_t { ok, wrong_result, failed, crashed, hung, not_run };
template <>
struct EnumNames<RunOutcome> {
  // failed: a library said so; crashed: a signal ended it; not_run: it could not be started
  static constexpr std::string_view values[] = {"ok",      "wrong result", "failed",
                                                "crashed", "hung",         "not run"};
};

// A rank's place: which GPU of which node (of the CPU backend: which process).
struct RunPlace {
  std::string node = {};
  int device = 0;  // of an isolation -1: the whole node
  auto operator<=>(const RunPlace&) const = default;
};

struct RunTiming {
  std::int64_t bytes = 0;
  double seconds = 0;       // one all-reduce, the median
  double own_seconds = 0;   // of it, before this rank's own part was handed over
  double bus_gb_per_s = 0;  // 10^9 bytes
  bool operator==(const RunTiming&) const = default;
};

struct RankRun {
  int rank = 0;
  RunPlace place = {};
  RunStage reached = RunStage::none;
  RunOutcome outcome = RunOutcome::not_run;
  std::string error = {};  // the library's own words
  std::vector<RunTiming> timings = {};
  // As its own log names them: "P2P/CUMEM", "SHM/direct", "NET/IB/0", "NET/Socket/0".
  std::vector<std::string> transports = {};
  std::vector<std::string> interfaces = {};  // interfaces and HCAs that its log names as in use
  bool operator==(const RankRun&) const = default;
};

struct Experiment {
  int number = 0;         // from 0, the baseline
  std::string what = {};  // "baseline", "P2P off", "node1 alone"
  RunBackend backend = RunBackend::nccl;
  // On top of the job's own; an empty value unsets.
  std::map<std::string, std::string> switches = {};
  std::vector<std::int64_t> sizes = {};  // bytes to reduce, in order
  std::vector<RankRun> ranks = {};
  RunOutcome outcome = RunOutcome::not_run;  // the worst of its ranks
  // Switches that the ranks' own logs do not show in force: the run proves nothing of them.
  std::vector<std::string> unheeded = {};
  double seconds = 0;
  bool operator==(const Experiment&) const = default;
};

enum class Layer : std::uint8_t {
  none,
  p2p,
  shm,
  nvls,
  gdr,
  ib,
  plugin,
  net,  // sockets, or whatever carries between nodes
  cumem,
  pxn,
  tuner,
  algorithm,
  protocol,
  interface,
  hca,
  node,
  gpu,
  link,      // between two places
  setup,     // nothing could run: libraries, driver, bootstrap
  rail,      // between HCAs of different rails
  streams,   // too few TCP connections for the wire
  settings,  // the job's own switches
  straggler  // a place whose own part takes longer than the others'
};
template <>
struct EnumNames<Layer> {
  static constexpr std::string_view values[] = {
      "none",  "P2P",  "SHM",   "NVLS",      "GDR",      "IB",        "plugin",   "net",
      "CUMEM", "PXN",  "tuner", "algorithm", "protocol", "interface", "HCA",      "node",
      "GPU",   "link", "setup", "rail",      "streams",  "settings",  "straggler"};
};

enum class Ailment : std::uint8_t { fails, hangs, corrupts, slow };
template <>
struct EnumNames<Ailment> {
  static constexpr std::string_view values[] = {"fails", "hangs", "corrupts", "slow"};
};

// What several experiments together prove.
struct Isolation {
  Layer layer = Layer::none;
  Ailment ailment = Ailment::fails;
  std::vector<RunPlace> places = {};    // empty: everywhere; two of Layer::link are its ends
  std::vector<std::string> names = {};  // of the interfaces, HCAs or variables that are meant
  std::map<std::string, std::string> workaround = {};  // the switches with which it works
  // Numbers of experiments: first the sick one, then the sound one; of Layer::setup and
  // Layer::none, which have no sound one, the sick ones.
  std::vector<int> proof = {};
  bool flaky = false;           // the same run went both ways
  double bus_gb_per_s = 0;      // of the sick run at its largest size, and
  double other_gb_per_s = 0;    // of the sound one; 0: it has none
  double allowed_gb_per_s = 0;  // what the links allow, as far as known; else 0
  std::string limit = {};       // the link that sets that limit: "one NIC of 100 Gb/s per node"
  bool operator==(const Isolation&) const = default;
};

template <class V, Is<RunPlace> T>
void fields(V& v, T& x) {
  v("node", x.node);
  v("device", x.device);
}
template <class V, Is<RunTiming> T>
void fields(V& v, T& x) {
  v("bytes", x.bytes);
  v("seconds", x.seconds);
  v("own_seconds", x.own_seconds);
  v("bus_gb_per_s", x.bus_gb_per_s);
}
template <class V, Is<RankRun> T>
void fields(V& v, T& x) {
  v("rank", x.rank);
  v("place", x.place);
  v("reached", x.reached);
  v("outcome", x.outcome);
  v("error", x.error);
  v("timings", x.timings);
  v("transports", x.transports);
  v("interfaces", x.interfaces);
}
template <class V, Is<Experiment> T>
void fields(V& v, T& x) {
  v("number", x.number);
  v("what", x.what);
  v("backend", x.backend);
  v("switches", x.switches);
  v("sizes", x.sizes);
  v("ranks", x.ranks);
  v("outcome", x.outcome);
  v("unheeded", x.unheeded);
  v("seconds", x.seconds);
}
template <class V, Is<Isolation> T>
void fields(V& v, T& x) {
  v("layer", x.layer);
  v("ailment", x.ailment);
  v("places", x.places);
  v("names", x.names);
  v("workaround", x.workaround);
  v("proof", x.proof);
  v("flaky", x.flaky);
  v("bus_gb_per_s", x.bus_gb_per_s);
  v("other_gb_per_s", x.other_gb_per_s);
  v("allowed_gb_per_s", x.allowed_gb_per_s);
  v("limit", x.limit);
}

}  // namespace distdoctor
