#include "fleet/frame.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace): a test of it
using namespace distdoctor::fleet;  // NOLINT(google-build-using-namespace): a test of it

namespace {

std::string raw(std::string_view json) {
  std::string bytes(3, '\0');
  bytes += static_cast<char>(json.size());
  return bytes.append(json);
}

Incoming only_frame(FrameReader& reader) {
  auto frame = reader.next();
  REQUIRE(frame.has_value());
  REQUIRE(frame->has_value());
  const auto none = reader.next();
  CHECK((none.has_value() && !none->has_value()));
  return **std::move(frame);
}

}  // namespace

TEST_CASE("a frame comes out as it went in, however its bytes come") {
  const std::string bytes =
      encode({.id = 7, .type = "dial", .left_ms = 250, .body = R"({"targets":[]})"});
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, bytes.size()}) {
    CAPTURE(step);
    FrameReader reader;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      CHECK_FALSE(reader.next().value().has_value());
      reader.feed(std::string_view(bytes).substr(at, step));
    }
    const Incoming frame = only_frame(reader);
    CHECK(frame.id == 7);
    CHECK(frame.type == "dial");
    CHECK(frame.left_ms == 250);
    CHECK(frame.body.find("targets").has_value());
  }
}

TEST_CASE("several frames in one read") {
  FrameReader reader;
  reader.feed(encode({.id = 1, .type = "a"}) + encode({.id = 2, .type = "b"}));
  CHECK(reader.next().value().value().id == 1);
  CHECK(only_frame(reader).id == 2);
}

TEST_CASE("what is larger than a frame travels in chunks") {
  std::string text;
  while (text.size() < kMaxFrame + 1) text += "\u00fc\\\"x";
  const std::string body = "{\"text\":" + codec::quoted(text) + "}";
  const std::string bytes = encode({.id = 5, .type = "part", .body = body});
  FrameReader reader;
  reader.allow_large_frames();
  reader.feed(bytes);
  const Incoming frame = only_frame(reader);
  CHECK(frame.id == 5);
  CHECK(frame.type == "part");
  CHECK((frame.body.find("text").value().string() == text));
}

TEST_CASE("what is no frame is refused") {
  struct Row {
    std::string_view name;
    std::string bytes;
    std::string_view message;
  };
  const std::vector<Row> rows = {
      {"text", "GET / HTTP/1.1", "1195725856 bytes, more than the 4096 allowed"},
      {"too large before the hellos", std::string("\x00\x00\x10\x01", 4),
       "4097 bytes, more than the 4096 allowed"},
      {"empty", raw(""), "this is no JSON text (byte 1)"},
      {"no JSON", raw("hello"), "this is no JSON text (byte 1)"},
      {"no object", raw("[]"), "a list where an object belongs"},
      {"no body", raw(R"({"id":1,"type":"a"})"), "it has no body"},
      {"a body that is no object", raw(R"({"id":1,"body":3})"), "it has no body"},
      {"an id below zero", raw(R"({"id":-1,"body":{}})"),
       "-1 is out of range (0 to 18446744073709551615) (id)"},
      {"a chunk without its text", raw(R"({"id":1,"type":"chunk","body":{"text":1}})"),
       "a number where a string belongs (text)"},
      {"a chunk in a chunk",
       raw(R"({"type":"chunk","body":{"last":true,"text":"{\"type\":\"chunk\",\"body\":{}}"}})"),
       "a chunk inside a chunk"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    FrameReader reader;
    reader.feed(row.bytes);
    const auto frame = reader.next();
    REQUIRE_FALSE(frame.has_value());
    CHECK(frame.error().render().ends_with(row.message));
  }
}

TEST_CASE("chunks without end are refused") {
  FrameReader reader(3000);
  const std::string chunk =
      encode({.type = "chunk", .body = "{\"text\":\"" + std::string(1000, 'x') + "\"}"});
  reader.feed(chunk + chunk + chunk);
  CHECK(reader.next().has_value());
  reader.feed(chunk);
  const auto frame = reader.next();
  REQUIRE_FALSE(frame.has_value());
  CHECK(frame.error().reason == "an answer of more than 3000 bytes");
}
