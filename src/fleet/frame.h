// Frames: u32 big-endian length, then JSON {id, type, left_ms, body}. What is larger than one frame
// travels as `chunk` frames in a row and is put together again here, unseen by those who read.
#pragma once

#include "base/error.h"
#include "codec/codec.h"
#include "codec/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::fleet {

inline constexpr std::size_t kMaxEarlyFrame = std::size_t{4} << 10;  // until the hellos are said
inline constexpr std::size_t kMaxFrame = std::size_t{1} << 20;
inline constexpr std::size_t kMaxMessage = std::size_t{8} << 20;  // of chunks

struct Frame {
  std::uint64_t id = 0;  // of the request that it belongs to; 0: none
  std::string type = {};
  std::optional<std::int64_t> left_ms = {};  // until the sender gives up: clocks differ
  std::string body = "{}";                   // JSON
};

Frame frame_of(std::uint64_t id,
               codec::TypedBody message,
               std::optional<std::int64_t> left_ms = {});

// The bytes of one frame, or of its chunks.
std::string encode(const Frame& frame);

struct Incoming {
  std::uint64_t id = 0;
  std::string type = {};
  std::optional<std::int64_t> left_ms = {};
  codec::Document document;  // owns what `body` looks at
  codec::Value body;
};

// Takes bytes as they come. After an Error the stream is lost: nobody knows where a frame begins.
class FrameReader {
 public:
  explicit FrameReader(std::size_t most_of_chunks = kMaxMessage) : most_(most_of_chunks) {}

  void feed(std::string_view bytes);
  Result<std::optional<Incoming>> next();
  void allow_large_frames() { limit_ = kMaxFrame; }
  // Bytes that wait for the rest of their frame: a caller stops reading above the limit.
  [[nodiscard]] bool full() const { return buffer_.size() - at_ > limit_ + 4; }

 private:
  Result<std::optional<std::string>> next_text();
  Result<std::optional<Incoming>> take_chunk(const Incoming& chunk);

  std::string buffer_;
  std::size_t at_ = 0;   // what lies before it was read
  std::string message_;  // of the chunks so far
  std::size_t limit_ = kMaxEarlyFrame;
  std::size_t most_;
};

}  // namespace distdoctor::fleet
