// The thread that serves all listening sets of an agent.
#include "probe/listen_set.h"
#include "probe/probe.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace distdoctor::probe {

struct Listeners::State {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<ListenSet>> sets;
  std::optional<SynWatch> watch;
  std::string not_watching;
  bool ending = false;
  Fd wake{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::thread thread;

  void serve();
  void dispatch(const std::vector<pollfd>& events);
  void drain_watch();
  void open_watch();
  void nudge() const { static_cast<void>(::eventfd_write(wake.get(), 1)); }
};

void Listeners::State::serve() {
  std::unique_lock lock(mutex);
  while (!ending) {
    std::vector<pollfd> events = {{.fd = wake.get(), .events = POLLIN, .revents = 0}};
    if (watch) events.push_back({.fd = watch->fd(), .events = POLLIN, .revents = 0});
    Deadline until = Deadline::after(std::chrono::minutes(1));
    for (const auto& [id, set] : sets) {
      set->add_descriptors(events);
      until = std::min(until, set->next());
    }
    lock.unlock();
    const int ready = ::poll(events.data(), events.size(), until.remaining_ms());
    lock.lock();
    if (ready > 0) dispatch(events);
    for (const auto& [id, set] : sets) set->tick();
  }
}

void Listeners::State::dispatch(const std::vector<pollfd>& events) {
  eventfd_t count = 0;
  static_cast<void>(::eventfd_read(wake.get(), &count));
  drain_watch();
  for (const pollfd& event : events) {
    if (event.revents == 0) continue;
    for (const auto& [id, set] : sets) set->ready(event);
  }
}

void Listeners::State::drain_watch() {
  if (!watch) return;
  for (const SeenSyn& syn : watch->take()) {
    if (syn.answer) continue;
    for (const auto& [id, set] : sets) {
      if (set->watches()) set->saw(syn);
    }
  }
}

void Listeners::State::open_watch() {
  if (watch) return;
  auto opened = SynWatch::open();
  if (opened) {
    watch = *std::move(opened);
    not_watching.clear();
  } else {
    not_watching = opened.error().render();
  }
}

Listeners::Listeners() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] { state->serve(); });
}

Listeners::~Listeners() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ending = true;
  }
  state_->nudge();
  state_->thread.join();
}

ListenAnswer Listeners::open(const ListenRequest& request) {
  const std::lock_guard lock(state_->mutex);
  if (state_->sets.contains(request.id)) return {.error = "a set of this name is open already"};
  if (request.watch_arrivals) state_->open_watch();
  auto set = std::make_unique<ListenSet>(request);
  set->answer().watching = request.watch_arrivals ? state_->not_watching : "not asked for";
  const ListenAnswer answer = set->answer();
  state_->sets.emplace(request.id, std::move(set));
  state_->nudge();
  return answer;
}

ReportAnswer Listeners::report(const ReportRequest& request) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->sets.find(request.id);
  if (found == state_->sets.end()) return {.watching = "no such set", .closed = "no such set"};
  state_->drain_watch();
  ListenSet& set = *found->second;
  ReportAnswer report = set.report();
  report.watching = set.answer().watching;
  auto& watch = state_->watch;
  if (report.watching.empty() && watch && watch->lost_some()) {
    report.watching = "the kernel left packets out";
  }
  state_->sets.erase(found);
  state_->nudge();
  return report;
}

}  // namespace distdoctor::probe
