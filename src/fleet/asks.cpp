#include "fleet/asks.h"

#include "base/text.h"
#include "codec/codec.h"
#include "codec/read.h"
#include "collect/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace distdoctor::fleet {
namespace {

// Late answers to asks that ran out are no flood; more than this is.
constexpr std::size_t kMostStrays = 1000;
// What was asked with less than this left was not really asked.
constexpr std::chrono::milliseconds kNoTime{500};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

const collect::Collector* collector_named(std::string_view name) {
  const auto all = collect::all_collectors();
  const auto found = std::ranges::find(all, name, &collect::Collector::name);
  return found == all.end() ? nullptr : &*found;
}

std::set<std::string, std::less<>> wanted_collectors(const Request& request) {
  const auto* collect = std::get_if<CollectRequest>(&request);
  if (collect == nullptr) return {};
  std::set<std::string, std::less<>> names(collect->collectors.begin(), collect->collectors.end());
  if (!names.empty()) return names;
  for (const collect::Collector& collector : collect::all_collectors()) {
    names.emplace(collector.name);
  }
  return names;
}

std::string text_of(codec::Value body, std::string_view key) {
  const auto found = body.find(key);
  return found && found->kind() == codec::Kind::string ? std::string(found->string()) : "";
}

}  // namespace

void Asks::add(std::uint64_t id, const Request& request, Deadline deadline, const NodeFacts& node) {
  const std::scoped_lock lock(mutex_);
  open_.emplace(id, Open{.deadline = deadline,
                         .begun = Deadline::Clock::now(),
                         .type = request.index(),
                         .missing = wanted_collectors(request),
                         .node = node});
}

Deadline Asks::earliest(Deadline otherwise) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [id, open] : open_) otherwise = std::min(otherwise, open.deadline);
  return otherwise;
}

Result<void> Asks::take(const Incoming& incoming) {
  const std::scoped_lock lock(mutex_);
  const auto ask = open_.find(incoming.id);
  if (ask == open_.end()) {
    if (++strays_ <= kMostStrays) return {};
    return failure("listen to the channel", "a flood of frames that nobody asked for");
  }
  if (incoming.type == "part") {
    take_part(ask->second, incoming);
  } else if (incoming.type == "done") {
    give_up(ask, {Why::not_collected, "this agent has no such collector"});
  } else if (incoming.type == "trouble") {
    const std::string text = shortened(printable(text_of(incoming.body, "text")), 300);
    give_up(ask, {Why::failed, text});
  } else {
    auto answer = codec::read_answer(incoming.document.root());
    const bool fits = answer && answer->index() == ask->second.type;
    if (answer && !fits) answer = failure("read an answer", "it answers something else");
    finish(ask, observed(std::move(answer)));
  }
  return {};
}

// A part that cannot be read costs its collector's facts, not the others.
void Asks::take_part(Open& open, const Incoming& incoming) {
  const std::string name = text_of(incoming.body, "collector");
  const auto facts = incoming.body.find("facts");
  const collect::Collector* collector = collector_named(name);
  if (open.missing.erase(name) == 0 || !facts || collector == nullptr) return;
  open.any = true;
  const auto read = codec::read_into(*facts, open.node);
  if (!read) collector->give_up(open.node, unknown_because(read.error()));
}

void Asks::finish(Table::iterator ask, Observed<Answer> answer) {
  events_.push({.peer = peer_, .what = Done{ask->first, std::move(answer)}});
  open_.erase(ask);
}

// With what has come so far.
void Asks::give_up(Table::iterator ask, const Unknown& why) {
  Open& open = ask->second;
  if (!open.any) return finish(ask, why);
  for (const std::string& name : open.missing) {
    if (const auto* collector = collector_named(name)) collector->give_up(open.node, why);
  }
  finish(ask, Answer(std::move(open.node)));
}

void Asks::end_overdue(const std::string& silence) {
  const std::scoped_lock lock(mutex_);
  for (auto ask = open_.begin(); ask != open_.end();) {
    const auto next = std::next(ask);
    if (ask->second.deadline.expired()) {
      const auto waited = Deadline::Clock::now() - ask->second.begun;
      give_up(ask, {Why::timed_out, waited < kNoTime ? "the budget was used up before it was asked"
                                                     : fmt::format("no answer within {:.0f} s{}",
                                                                   seconds(waited), silence)});
    }
    ask = next;
  }
}

void Asks::end_all(const Unknown& why) {
  const std::scoped_lock lock(mutex_);
  while (!open_.empty()) give_up(open_.begin(), why);
}

}  // namespace distdoctor::fleet
