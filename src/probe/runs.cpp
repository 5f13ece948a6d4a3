// Ranks of a tiny all-reduce: each is a process of a helper of ours, talked to by a thread of its
// own while a request is being answered.
#include "probe/runs.h"

#include <distdoctor/run_ending.h>

#include "codec/read.h"
#include "codec/write.h"
#include "machine/open_child.h"
#include "probe/rank_log.h"
#include "probe/rank_watch.h"
#include "probe/shared_segments.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace distdoctor::probe {
namespace {

using machine::OpenChild;

constexpr std::size_t kMostRanks = 64;  // of one run on one node
constexpr std::size_t kMostRuns = 8;    // at once
constexpr std::size_t kMostOutput = std::size_t{8}
                                    << 20;  // of one rank: a thousand ranks' addresses

machine::Child helper_of(RunBackend backend) {
  machine::Child child{.argv = {"vendor", "nccl"}, .ours = true, .most_output = kMostOutput};
  if (backend == RunBackend::gloo) child.argv = {"gloo_allreduce", "rank"};
  return child;
}

// One that never said a word did not begin: what execve says, or a helper that this libc or a
// missing library does not let start. EPIPE later on: it ended without its last line.
RunOutcome outcome_of(const Error& error, bool began) {
  if (error.errno_value == ETIMEDOUT) return RunOutcome::hung;
  return error.errno_value == EPIPE && began ? RunOutcome::crashed : RunOutcome::not_run;
}

}  // namespace

// One rank: its process, and what it has told so far.
class Runs::Rank {
 public:
  Rank(RunBackend backend, WorkerJob job, std::shared_ptr<RankWatch> watch)
      : backend_(backend), job_(std::move(job)), watch_(std::move(watch)) {
    run_.rank = job_.rank;
    run_.place.device = job_.device;
    run_.outcome = RunOutcome::hung;  // until it says otherwise
  }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const RankRun& run() const { return run_; }
  [[nodiscard]] const std::optional<std::string>& published() const { return published_; }
  [[nodiscard]] WorkerLog log() const { return {.rank = job_.rank, .lines = log_.lines()}; }

  // Until it publishes something, ends or is late.
  void begin(int stage_ms, Deadline deadline) {
    if (backend_ == RunBackend::nccl) log_.ask_for(job_.switches);
    auto child = started(deadline);
    if (!child) return end(RunOutcome::not_run, child.error().render());
    child_ = *std::move(child);
    if (!watch_->add(child_->pid())) return end(RunOutcome::not_run, "the agent ends");
    go_on(codec::write_json(job_), stage_ms, deadline);
  }
  void meet(const std::string& meeting, int stage_ms, Deadline deadline) {
    published_.reset();
    go_on(meeting, stage_ms, deadline);
  }
  void give_up(const std::string& why) {
    if (!ended_) end(RunOutcome::not_run, why);
  }

 private:
  // On a busy machine the ranks of the run before may take a while to die.
  Result<std::unique_ptr<OpenChild>> started(Deadline deadline) {
    const auto patience = deadline.capped(std::chrono::seconds(5));
    while (true) {
      auto child = OpenChild::start(helper_of(backend_));
      if (child || child.error().errno_value != EBUSY || patience.expired()) return child;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  void go_on(const std::string& said, int stage_ms, Deadline deadline) {
    const auto patience = std::chrono::milliseconds(stage_ms);
    auto line = child_->ask(said, deadline.capped(patience));
    while (take(line, deadline)) line = child_->next_line(deadline.capped(patience));
  }

  // Whether another line is to be waited for.
  bool take(const Result<std::string>& line, Deadline deadline) {
    if (!line) {
      const bool late = line.error().errno_value == ETIMEDOUT;
      if (late && deadline.expired()) {
        end(RunOutcome::not_run, std::string(kCutByBudget));
      } else {
        end(outcome_of(line.error(), spoke_), line.error().render());
      }
      return false;
    }
    WorkerLine told;
    if (const auto read = codec::read_json(*line, told, "read what a rank says", kMostOutput);
        !read) {
      end(RunOutcome::failed, read.error().render());
      return false;
    }
    note(told);
    if (told.outcome) end(*told.outcome, told.error);
    return !told.outcome && !told.publish;
  }

  void note(const WorkerLine& told) {
    spoke_ = true;
    if (told.stage) run_.reached = *told.stage;
    if (told.timing) run_.timings.push_back(*told.timing);
    if (!told.interfaces.empty()) run_.interfaces = told.interfaces;
    if (told.publish) published_ = told.publish;
  }

  void end(RunOutcome outcome, std::string error) {
    run_.outcome = outcome;
    run_.error = std::move(error);
    ended_ = true;
    published_.reset();
    const auto segments = child_ ? watch_->take(child_->pid()) : SharedSegments{};
    child_.reset();
    remove_unused(segments);
    log_.close();
  }

  RunBackend backend_;
  WorkerJob job_;
  RankRun run_ = {};
  RankLog log_ = {};
  std::shared_ptr<RankWatch> watch_;
  std::unique_ptr<OpenChild> child_;
  std::optional<std::string> published_;
  bool spoke_ = false;
  bool ended_ = false;
};

namespace {

template <class Act>
void each_in_a_thread(const auto& ranks, Act act) {
  std::vector<std::jthread> threads;
  for (const auto& rank : ranks) {
    if (rank->ended()) continue;
    try {
      threads.emplace_back([&act, one = rank.get()] { act(*one); });
    } catch (const std::system_error& error) {  // no more threads here: the ranks go without it
      rank->give_up(error.what());
    }
  }
}

// What has come, without the ranks that have ended.
RunAnswer taken(auto& ranks) {
  RunAnswer answer;
  for (const auto& rank : ranks) {
    if (rank->ended()) {
      answer.ranks.push_back(rank->run());
      answer.logs.push_back(rank->log());
    } else if (rank->published()) {
      answer.blobs.push_back({.rank = rank->run().rank, .bytes = *rank->published()});
    }
  }
  std::erase_if(ranks, [](const auto& rank) { return rank->ended(); });
  return answer;
}

}  // namespace

struct Runs::State {
  std::mutex mutex;
  std::map<std::string, RankList> waiting;
};

Runs::Runs() : watch_(std::make_shared<RankWatch>()), state_(std::make_unique<State>()) {}
Runs::~Runs() = default;

void Runs::end_all(Deadline deadline) {
  watch_->end_all(deadline);
}

Result<RunAnswer> Runs::act(const RunRequest& request, Deadline deadline) {
  DD_TRY(auto ranks, request.jobs.empty() ? take_waiting(request.id) : made(request));
  if (!request.jobs.empty()) {
    each_in_a_thread(ranks, [&](Rank& rank) { rank.begin(request.stage_ms, deadline); });
  } else if (request.over) {
    for (const auto& rank : ranks) rank->give_up(std::string(kAnotherHadEnded));
  } else {
    const auto meeting = codec::write_json(WorkerMeeting{.blobs = request.blobs});
    each_in_a_thread(ranks, [&](Rank& rank) { rank.meet(meeting, request.stage_ms, deadline); });
  }
  auto answer = taken(ranks);
  if (!ranks.empty()) {
    const std::scoped_lock lock(state_->mutex);
    state_->waiting.insert_or_assign(request.id, std::move(ranks));
  }
  return answer;
}

Result<Runs::RankList> Runs::made(const RunRequest& request) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->waiting.size() >= kMostRuns || request.jobs.size() > kMostRanks) {
    return failure("start ranks", "too many are running here");
  }
  RankList ranks;
  for (const WorkerJob& job : request.jobs) {
    ranks.push_back(std::make_unique<Rank>(request.backend, job, watch_));
  }
  return ranks;
}

Result<Runs::RankList> Runs::take_waiting(const std::string& id) {
  const std::scoped_lock lock(state_->mutex);
  auto found = state_->waiting.extract(id);
  if (found.empty()) return failure("go on with the run " + id, "none of its ranks is here");
  return std::move(found.mapped());
}

}  // namespace distdoctor::probe
