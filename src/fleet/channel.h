// Frames over a Stream, with what keeps it alive: a beat each 500 ms in both directions. It runs
// over any pair of descriptors: a launcher's pipes, a socketpair, later a TLS connection.
#pragma once

#include "base/deadline.h"
#include "base/error.h"
#include "fleet/clock.h"
#include "fleet/frame.h"
#include "fleet/messages.h"
#include "fleet/stream.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::fleet {

inline constexpr std::chrono::milliseconds kBeat{500};
inline constexpr std::chrono::seconds kSilence{30};  // ends a channel

enum class Side : std::uint8_t { coordinator, agent };

class Channel {
 public:
  Channel(Side side, Fd in, Fd out, Fd words = Fd());

  // Any thread.
  void post(const Frame& frame) { stream_.post(encode(frame)); }
  void stop() { stream_.stop(); }

  // The coordinator's first step: skips noise up to the agent's greeting and returns its nonce, or
  // "" when the launched script asks for the program instead; then it is called again.
  Result<std::string> await_greeting(Deadline deadline);

  // The next frame that is no beat; nothing when the deadline passed or the stream was nudged. An
  // Error ends the channel: end of file, garbage, a flood, silence, or stop().
  Result<std::optional<Incoming>> next(Deadline deadline);

  void allow_large_frames() { reader_.allow_large_frames(); }
  // Both sides call it once the hellos are said.
  void begin_beats();
  // The coordinator's: some beats in a row, each when the last one was answered; then next()
  // returns, once.
  void compare_clocks();
  [[nodiscard]] bool clocks_compared() const { return burst_ == 0; }
  [[nodiscard]] std::optional<ClockOffset> clock_offset() const { return clock_.best(); }

  [[nodiscard]] std::chrono::nanoseconds silent_for() const;
  [[nodiscard]] const std::string& noise() const { return noise_; }
  [[nodiscard]] Stream& stream() { return stream_; }

 private:
  Result<std::optional<Incoming>> buffered();
  Result<void> hear(const Incoming& incoming);
  void answered_burst();
  void beat_if_due();
  void pump(Deadline deadline);
  [[nodiscard]] Result<void> alive() const;

  Side side_;
  Stream stream_;
  FrameReader reader_;
  std::string early_;  // until the greeting is found
  std::string noise_;
  ClockComparison clock_;
  int burst_ = 0;  // beats that are still to be sent at once
  Beat last_heard_;
  Deadline::Clock::time_point began_ = Deadline::Clock::now();
  Deadline::Clock::time_point last_byte_ = began_;
  Deadline::Clock::time_point next_beat_ = began_;
  std::size_t beats_heard_ = 0;
  bool beating_ = false;
};

}  // namespace distdoctor::fleet
