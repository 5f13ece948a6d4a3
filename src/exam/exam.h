// The one owner of the order of things: collect, predict, probe, judge. Every command calls it.
#pragma once

#include <distdoctor/diagnosis.h>
#include <distdoctor/facts.h>
#include <distdoctor/policy.h>

#include "base/deadline.h"
#include "diagnose/diagnose.h"
#include "fleet/fleet.h"
#include "probe/plan.h"
#include "rules/launch/settings.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::exam {

// A series of tiny all-reduces after the probes, to find which layer is broken or slow, and where.
struct Bisection {
  std::optional<RunBackend> backend = {};  // none: NCCL where a node has GPUs, else Gloo
  std::optional<int> ranks_per_node = {};  // none: one a GPU; of Gloo one a node
  int max_runs = 32;
  std::vector<Layer> only = {};
  std::vector<std::int64_t> sizes = {};     // bytes; empty: the usual ones
  std::string nccl_library = {};            // empty: the job's own, as the facts name it
  bool force = false;                       // although a job runs there
  std::chrono::milliseconds stage{15'000};  // what a rank may take from one step to the next
  // Told of each run before it begins (no outcome yet) and when it has ended.
  std::function<void(const Experiment& run, bool ended)> watch = {};
};

struct Options {
  rules::Said said = {};
  std::vector<std::string> peers = {};  // empty: this machine alone
  std::string checks_dir = {};          // as in CollectRequest
  fleet::LaunchOptions launch = {};
  diagnose::Selection selection = {};
  Expectations expect = {};
  std::optional<ClusterFacts> since = {};    // what an earlier look saved, to tell what came since
  std::chrono::milliseconds budget{60'000};  // the whole run
  std::chrono::milliseconds timeout{5'000};  // one operation: ssh login, a collector, a dial
  bool probe = true;                         // send test traffic at all
  std::optional<Bisection> bisection = {};   // none: no collective is run
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C; ends early with what is known
};

// Told about each stage; a TTY's progress line, nothing else.
using Progress = std::function<void(std::string_view stage, std::string_view detail)>;

struct Outcome {
  ClusterFacts cluster = {};
  probe::ProbePlan plan = {};  // what was sent, or would have been (--dry-run)
  Diagnosis diagnosis = {};
  std::vector<std::string> busy = {};  // why no collective was run: who works on which node
  std::vector<std::string> tree = {};  // the runs that would be made (--dry-run)
  double elapsed_s = 0;
};

// "p2p,shm,net": the layers whose switches bisect may use.
Result<std::vector<Layer>> read_layers(std::string_view text);

Outcome run(const Options& options, const Progress& progress);
// The same judgement over recorded facts.
Outcome run_recorded(ClusterFacts cluster, const Options& options);

}  // namespace distdoctor::exam
