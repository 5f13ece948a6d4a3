// What one rank of a tiny all-reduce is told and tells: one JSON object a line, on its stdin and
// stdout. It is told its job, says how far it is, publishes what the others need to find it (once
// or several times), is told what they published, and goes on.
#pragma once

#include <distdoctor/facts/experiment.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor {

struct WorkerJob {
  int rank = 0;
  int size = 1;    // of the world
  int device = 0;  // GPU by number; the CPU backend has none
  std::map<std::string, std::string> switches =
      {};                                // set before any library is loaded; empty: unset
  std::string library = {};              // the NCCL to load; empty: by its name
  std::vector<std::int64_t> sizes = {};  // bytes, each a multiple of 8
  int most_iterations = 20;              // of one size
  double seconds_per_size = 1;  // what the iterations of one size may take; one runs in any case
  double longest_s = 4;         // a size whose one all-reduce would take longer is left out
  double patience_s = 30;       // of one call that waits for the others
  std::uint64_t seed = 0;       // of the data, the same for all ranks
  bool operator==(const WorkerJob&) const = default;
};

// What a rank publishes, in hexadecimal: NCCL's unique id of rank 0, Gloo's addresses of each.
struct WorkerBlob {
  int rank = 0;
  std::string bytes = {};
  bool operator==(const WorkerBlob&) const = default;
};
struct WorkerMeeting {
  std::vector<WorkerBlob> blobs = {};
  bool operator==(const WorkerMeeting&) const = default;
};

// One line of a worker; what it does not tell is left out.
struct WorkerLine {
  std::optional<RunStage> stage = {};  // reached
  double at_s = 0;                     // since it started, CLOCK_MONOTONIC
  std::optional<std::string> publish = {};
  std::optional<RunTiming> timing = {};
  std::optional<RunOutcome> outcome = {};  // the last line: how it ended
  std::string error = {};
  std::vector<std::string> interfaces = {};  // that it uses, where its library says
  bool operator==(const WorkerLine&) const = default;
};

template <class V, Is<WorkerJob> T>
void fields(V& v, T& x) {
  v("rank", x.rank);
  v("size", x.size);
  v("device", x.device);
  v("switches", x.switches);
  v("library", x.library);
  v("sizes", x.sizes);
  v("most_iterations", x.most_iterations);
  v("seconds_per_size", x.seconds_per_size);
  v("longest_s", x.longest_s);
  v("patience_s", x.patience_s);
  v("seed", x.seed);
}
template <class V, Is<WorkerBlob> T>
void fields(V& v, T& x) {
  v("rank", x.rank);
  v("bytes", x.bytes);
}
template <class V, Is<WorkerMeeting> T>
void fields(V& v, T& x) {
  v("blobs", x.blobs);
}
template <class V, Is<WorkerLine> T>
void fields(V& v, T& x) {
  v("stage", x.stage);
  v("at_s", x.at_s);
  v("publish", x.publish);
  v("timing", x.timing);
  v("outcome", x.outcome);
  v("error", x.error);
  v("interfaces", x.interfaces);
}

}  // namespace distdoctor
