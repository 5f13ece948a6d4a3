#include "fleet/channel.h"

#include "base/units.h"
#include "codec/read.h"
#include "codec/write.h"
#include "fleet/greeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::fleet {
namespace {

constexpr std::string_view kAttempt = "listen to the channel";
constexpr int kBurst = 4;
// Ten a second is five times what a healthy side sends; the rest is for what was queued up.
constexpr std::size_t kSpareBeats = 200;

}  // namespace

Channel::Channel(Side side, Fd in, Fd out, Fd words)
    : side_(side), stream_(std::move(in), std::move(out), std::move(words)) {}

std::chrono::nanoseconds Channel::silent_for() const {
  return Deadline::Clock::now() - last_byte_;
}

void Channel::pump(Deadline deadline) {
  stream_.pump(deadline, !reader_.full());
}

Result<std::string> Channel::await_greeting(Deadline deadline) {
  while (true) {
    early_ += stream_.take();
    DD_TRY(const std::optional<Greeting> found, find_greeting(early_));
    if (found) {
      noise_ = found->noise;
      std::string nonce(found->nonce);
      early_.erase(0, found->end);
      if (!nonce.empty()) reader_.feed(std::exchange(early_, {}));
      return nonce;
    }
    noise_ = early_;
    if (stream_.stopped()) return failure(kAttempt, "it was closed");
    if (!stream_.ended().empty()) return failure(kAttempt, stream_.ended());
    if (deadline.expired()) return failure(kAttempt, "the agent said nothing in time");
    stream_.pump(deadline);
  }
}

Result<std::optional<Incoming>> Channel::next(Deadline deadline) {
  while (true) {
    DD_TRY(std::optional<Incoming> incoming, buffered());
    if (incoming) return incoming;
    DD_TRY(alive());
    if (stream_.take_nudge() || deadline.expired()) return std::nullopt;
    beat_if_due();
    pump(beating_ ? std::min(deadline, Deadline::at(next_beat_)) : deadline);
    const std::string bytes = stream_.take();
    if (!bytes.empty()) last_byte_ = Deadline::Clock::now();
    reader_.feed(bytes);
  }
}

// What has come already, beats taken out.
Result<std::optional<Incoming>> Channel::buffered() {
  while (true) {
    DD_TRY(std::optional<Incoming> incoming, reader_.next());
    if (!incoming || incoming->type != "beat") return incoming;
    DD_TRY(hear(*incoming));
  }
}

Result<void> Channel::alive() const {
  if (stream_.stopped()) return failure(kAttempt, "it was closed");
  if (!stream_.ended().empty()) return failure(kAttempt, stream_.ended());
  if (silent_for() < kSilence) return {};
  return failure(kAttempt, fmt::format("nothing came for {}", human_duration(silent_for())));
}

void Channel::begin_beats() {
  beating_ = true;
  next_beat_ = Deadline::Clock::now() + kBeat;
}

void Channel::compare_clocks() {
  burst_ = kBurst;
  next_beat_ = Deadline::Clock::now();
}

Result<void> Channel::hear(const Incoming& incoming) {
  Beat beat;
  DD_TRY(codec::read_value(incoming.body, beat, "read a beat"));
  const std::int64_t now = realtime_us();
  const auto age =
      std::chrono::duration_cast<std::chrono::seconds>(Deadline::Clock::now() - began_);
  if (++beats_heard_ > kSpareBeats + 10 * static_cast<std::size_t>(age.count())) {
    return failure(kAttempt, "a flood of beats");
  }
  last_heard_ = {.sent_us = beat.sent_us, .heard_us = now};
  if (side_ == Side::agent) {
    next_beat_ = Deadline::Clock::now();  // an answer at once, for the comparison of clocks
  } else if (beat.echo_us && beat.heard_us) {
    clock_.add(
        {.sent = *beat.echo_us, .heard = *beat.heard_us, .answered = beat.sent_us, .came = now});
    if (burst_ > 0) answered_burst();
  }
  return {};
}

void Channel::answered_burst() {
  next_beat_ = Deadline::Clock::now();
  if (--burst_ > 0) return;
  next_beat_ += kBeat;
  stream_.nudge();  // whoever waits for clocks_compared() need not wait longer
}

void Channel::beat_if_due() {
  if (!beating_ || Deadline::Clock::now() < next_beat_) return;
  next_beat_ = Deadline::Clock::now() + kBeat;
  Beat beat{.sent_us = realtime_us()};
  if (last_heard_.heard_us) {
    beat.echo_us = last_heard_.sent_us;
    beat.heard_us = last_heard_.heard_us;
  }
  post({.type = "beat", .body = codec::write_json(beat)});
}

}  // namespace distdoctor::fleet
