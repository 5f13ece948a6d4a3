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
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::exam {

struct Options {
  rules::Said said = {};
  std::vector<std::string> peers = {};  // empty: this machine alone
  fleet::LaunchOptions launch = {};
  diagnose::Selection selection = {};
  Expectations expect = {};
  std::chrono::milliseconds budget{60'000};        // the whole run
  std::chrono::milliseconds timeout{5'000};        // one operation: ssh login, a collector, a dial
  bool probe = true;                               // send test traffic at all
  const std::atomic<bool>* interrupted = nullptr;  // set by Ctrl-C; ends early with what is known
};

// Told about each stage; a TTY's progress line, nothing else.
using Progress = std::function<void(std::string_view stage, std::string_view detail)>;

struct Outcome {
  ClusterFacts cluster = {};
  probe::ProbePlan plan = {};  // what was sent, or would have been (--dry-run)
  Diagnosis diagnosis = {};
  double elapsed_s = 0;
};

Outcome run(const Options& options, const Progress& progress);
// The same judgement over recorded facts.
Outcome run_recorded(ClusterFacts cluster, const Options& options);

}  // namespace distdoctor::exam
