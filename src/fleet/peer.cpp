#include "fleet/peer.h"

#include "codec/codec.h"
#include "codec/read.h"
#include "codec/write.h"
#include "fleet/greeting.h"
#include "fleet/here.h"
#include "fleet/launch.h"
#include "fleet/program.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

namespace distdoctor::fleet {
namespace {

using std::chrono::milliseconds;

// A resolver that hangs here makes a peer remote; ssh may still know better.
constexpr milliseconds kResolve{700};
constexpr milliseconds kCompareClocks{300};
// For an agent that was asked to go, before it is killed.
constexpr milliseconds kTimeToGo{600};
// From the end of its output to a launcher's own end.
constexpr milliseconds kTimeToEnd{100};
constexpr std::chrono::seconds kForWords{1};
constexpr std::size_t kMostWords = 400;

}  // namespace

Peer::Peer(std::size_t index,
           const std::vector<std::string>& hosts,
           const LaunchOptions& options,
           Events& events)
    : index_(index), hosts_(hosts), options_(options), events_(events), asks_(index, events) {
  state_.host = hosts.at(index);
}

void Peer::start(Deadline hello_by) {
  try {
    thread_.begin(kPeerStack, [this, hello_by] { run(hello_by); });
  } catch (const std::exception& error) {
    state_.not_reached = error.what();
    events_.push({.peer = index_, .what = Lost{state_}});
  }
}

void Peer::run(Deadline hello_by) {
  const auto result = live(hello_by);
  state_.not_reached = result ? "it was closed" : explain(result.error());
  state_.reached = false;
  end_launcher();
  asks_.end_all({Why::failed, state_.not_reached});
  events_.push({.peer = index_, .what = Lost{state_}});
}

Result<void> Peer::live(Deadline hello_by) {
  DD_TRY(launch(hello_by));
  DD_TRY(AgentHello hello, shake_hands(hello_by));
  compare_clocks(hello_by);
  state_.reached = true;
  state_.version = hello.version;
  state_.context = hello.context;
  if (const auto offset = channel_->clock_offset()) {
    state_.clock_offset_ms = offset->offset_ms;
    state_.clock_error_ms = offset->error_ms;
  }
  events_.push({.peer = index_, .what = Met{state_, std::move(hello)}});
  return serve();
}

Result<void> Peer::launch(Deadline hello_by) {
  const bool name_only = !options_.launch_template.empty();
  const Place place = place_of(state_.host, hosts_, name_only, hello_by.capped(kResolve));
  if (!place.misled.empty()) {
    return failure("follow its name", "it leads to this machine itself: " + place.misled);
  }
  state_.local = place.here;
  state_.channel = state_.local ? "local" : name_only ? "launch" : "ssh";
  std::vector<std::string> argv = {own_program(), "agent"};
  if (!state_.local) {
    // A second less than we have, so that it is ssh that says why.
    const auto left = std::chrono::floor<std::chrono::seconds>(hello_by.remaining()) - kForWords;
    const int timeout_s = static_cast<int>(std::min<std::int64_t>(left.count(), 3600));
    DD_TRY(argv, launch_argv(state_.host, options_, remote_program(options_), timeout_s));
  }
  launcher_ = argv.front();
  const auto wire = state_.local ? Process::Wire::socket : Process::Wire::pipes;
  DD_TRY(auto started, Process::start(argv, wire));
  process_.emplace(std::move(started.first));
  Process::Ends& ends = started.second;
  const std::scoped_lock lock(mutex_);
  channel_ = std::make_unique<Channel>(Side::coordinator, std::move(ends.in), std::move(ends.out),
                                       std::move(ends.words));
  if (closing_ || late_) channel_->stop();
  return {};
}

Result<AgentHello> Peer::shake_hands(Deadline hello_by) {
  DD_TRY(greet(hello_by));
  DD_TRY(const std::optional<Incoming> incoming, channel_->next(hello_by));
  if (!incoming) return failure("wait for the agent's hello", "the agent said nothing in time");
  AgentHello hello;
  if (incoming->type != "hello") return failure("wait for the agent's hello", "it said no hello");
  DD_TRY(codec::read_value(incoming->body, hello, "read the agent's hello"));
  if (!hello.error.empty()) return failure("start the agent", hello.error);
  channel_->allow_large_frames();
  channel_->begin_beats();
  return hello;
}

Result<void> Peer::greet(Deadline hello_by) {
  DD_TRY(std::string nonce, channel_->await_greeting(hello_by));
  if (nonce.empty()) {
    if (!options_.push) return failure("start the agent", "it asks for a program unasked");
    DD_TRY(const auto program, program_bytes());
    channel_->stream().post(*program);
    DD_TRY(nonce, channel_->await_greeting(hello_by));
  }
  CoordinatorHello hello{.version = DISTDOCTOR_VERSION, .nonce = nonce};
  if (state_.local) hello.enter_pid = options_.enter_pid;
  hello.enter_job = options_.enter_job;
  channel_->post({.type = "hello", .body = codec::write_json(hello)});
  return {};
}

// Its failure is no failure of the peer: then the offset stays unknown.
void Peer::compare_clocks(Deadline hello_by) {
  channel_->compare_clocks();
  const Deadline deadline = hello_by.capped(kCompareClocks);
  while (!channel_->clocks_compared() && !deadline.expired()) {
    if (!channel_->next(deadline)) return;
  }
}

Result<void> Peer::serve() {
  while (true) {
    const auto silent = channel_->silent_for();
    asks_.end_overdue(silent < kBeat * 3 ? "" : ", and nothing else either");
    const Deadline tick = Deadline::after(kSilence);
    DD_TRY(const std::optional<Incoming> incoming, channel_->next(asks_.earliest(tick)));
    if (!incoming) continue;
    DD_TRY(asks_.take(*incoming));
  }
}

void Peer::ask(std::uint64_t id, const Request& request, Deadline deadline, const NodeFacts& node) {
  asks_.add(id, request, deadline, node);
  const std::scoped_lock lock(mutex_);
  if (!channel_) return;
  channel_->post(frame_of(id, codec::typed_body(request), deadline.remaining_ms()));
  channel_->stream().nudge();  // its next wait may be the longer one
}

void Peer::end_asks(const Unknown& why) {
  asks_.end_all(why);
}

void Peer::give_up() {
  late_ = true;
  const std::scoped_lock lock(mutex_);
  if (channel_) channel_->stop();
}

void Peer::close() {
  closing_ = true;
  const std::scoped_lock lock(mutex_);
  if (channel_) channel_->stop();
}

void Peer::end_launcher() {
  if (!process_) return;
  if (channel_) channel_->stream().finish();
  if (closing_) process_->wait(Deadline::after(kTimeToGo));
  process_->kill();
}

// The launcher's own words are worth more than ours, when its end is all that we saw. Some say them
// on stdout, where they stood as noise before a greeting that never came.
std::string Peer::explain(const Error& error) {
  if (!channel_) return error.render();
  Stream& stream = channel_->stream();
  const bool over = !stream.ended().empty();
  if (over) process_->wait(Deadline::after(kTimeToEnd));
  stream.drain_words();
  std::string words = in_one_line(stream.words(), kMostWords);
  if (words.empty() && !state_.reached) words = in_one_line(channel_->noise(), kMostWords);
  const std::string reason = late_ ? "the agent said nothing in time" : error.reason;
  if (!over) return words.empty() ? reason : fmt::format("{} ({})", reason, words);
  if (!words.empty()) return words;
  const std::string fate = process_->fate();
  return fate.empty() ? error.reason : fmt::format("{} {}", launcher_, fate);
}

}  // namespace distdoctor::fleet
