#include "fleet/frame.h"

#include "codec/read.h"
#include "codec/write.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace distdoctor::fleet {
namespace {

constexpr std::string_view kAttempt = "read a frame";
// JSON inside a JSON string doubles at worst, so that a chunk keeps below kMaxFrame.
constexpr std::size_t kChunk = std::size_t{256} << 10;

struct Header {
  std::uint64_t id = 0;
  std::string type = {};
  std::optional<std::int64_t> left_ms = {};
};
template <class V, Is<Header> T>
void fields(V& v, T& x) {
  v("id", x.id);
  v("type", x.type);
  v("left_ms", x.left_ms);
}

struct Chunk {
  std::string text = {};
  bool last = false;
};
template <class V, Is<Chunk> T>
void fields(V& v, T& x) {
  v("text", x.text);
  v("last", x.last);
}

std::string framed(std::string_view json) {
  std::string bytes;
  bytes.reserve(json.size() + 4);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    bytes += static_cast<char>((json.size() >> shift) & 0xffU);
  }
  return bytes.append(json);
}

std::string json_of(const Frame& frame) {
  codec::Writer writer;
  writer.begin('{');
  const Header header{.id = frame.id, .type = frame.type, .left_ms = frame.left_ms};
  fields(writer, header);
  writer.key("body");
  writer.raw(frame.body);
  writer.end('}');
  return writer.take();
}

// As much of the text as fits, no character cut.
std::size_t cut(std::string_view text) {
  std::size_t end = std::min(kChunk, text.size());
  const auto inside = [&] { return (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U; };
  while (end < text.size() && end > 0 && inside()) --end;
  return end;
}

std::string in_chunks(std::uint64_t id, std::string_view json) {
  std::string bytes;
  while (!json.empty()) {
    const std::size_t end = cut(json);
    const Chunk chunk{.text = std::string(json.substr(0, end)), .last = end == json.size()};
    bytes += framed(json_of({.id = id, .type = "chunk", .body = codec::write_json(chunk)}));
    json.remove_prefix(end);
  }
  return bytes;
}

Result<Incoming> parse(std::string_view json) {
  DD_TRY(codec::Document document, codec::Document::parse(json, kMaxMessage));
  Header header;
  DD_TRY(codec::read_value(document.root(), header, kAttempt));
  const auto body = document.root().find("body");
  if (!body || body->kind() != codec::Kind::object) return failure(kAttempt, "it has no body");
  return Incoming{.id = header.id,
                  .type = header.type,
                  .left_ms = header.left_ms,
                  .document = document,
                  .body = *body};
}

}  // namespace

Frame frame_of(std::uint64_t id, codec::TypedBody message, std::optional<std::int64_t> left_ms) {
  return {.id = id,
          .type = std::string(message.type),
          .left_ms = left_ms,
          .body = std::move(message.body)};
}

std::string encode(const Frame& frame) {
  const std::string json = json_of(frame);
  return json.size() <= kChunk ? framed(json) : in_chunks(frame.id, json);
}

void FrameReader::feed(std::string_view bytes) {
  buffer_.erase(0, std::exchange(at_, 0));
  buffer_ += bytes;
}

Result<std::optional<std::string>> FrameReader::next_text() {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < 4) return std::nullopt;
  std::size_t size = 0;
  for (const char byte : rest.substr(0, 4)) size = size << 8U | static_cast<unsigned char>(byte);
  if (size > limit_) {
    return failure(kAttempt, fmt::format("{} bytes, more than the {} allowed", size, limit_));
  }
  if (rest.size() < size + 4) return std::nullopt;
  at_ += size + 4;
  return std::string(rest.substr(4, size));
}

Result<std::optional<Incoming>> FrameReader::take_chunk(const Incoming& incoming) {
  Chunk chunk;
  DD_TRY(codec::read_value(incoming.body, chunk, kAttempt));
  if (message_.size() + chunk.text.size() > most_) {
    return failure(kAttempt, fmt::format("an answer of more than {} bytes", most_));
  }
  message_ += chunk.text;
  if (!chunk.last) return std::nullopt;
  const std::string whole = std::exchange(message_, {});
  DD_TRY(Incoming message, parse(whole));
  if (message.type == "chunk") return failure(kAttempt, "a chunk inside a chunk");
  return message;
}

Result<std::optional<Incoming>> FrameReader::next() {
  while (true) {
    DD_TRY(const std::optional<std::string> text, next_text());
    if (!text) return std::nullopt;
    DD_TRY(Incoming incoming, parse(*text));
    if (incoming.type != "chunk") return incoming;
    DD_TRY(std::optional<Incoming> message, take_chunk(incoming));
    if (message) return message;
  }
}

}  // namespace distdoctor::fleet
