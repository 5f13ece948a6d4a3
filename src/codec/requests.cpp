// Requests and answers: {"type": ..., "body": ...}, the types in the order of plan.h's variants.
#include "base/text.h"
#include "codec/codec.h"
#include "codec/read.h"
#include "codec/write.h"

#include <fmt/format.h>

#include <array>
#include <type_traits>
#include <utility>
#include <variant>

namespace distdoctor::codec {
namespace {

constexpr std::array<std::string_view, 8> kTypes = {"collect", "listen",     "dial", "path",
                                                    "report",  "duplicates", "rdma", "run"};
static_assert(kTypes.size() == std::variant_size_v<Request>);
static_assert(kTypes.size() == std::variant_size_v<Answer>);

constexpr std::size_t kMaxMessageBytes = std::size_t{16} << 20;

std::string body_of(const NodeFacts& part) {
  return write_part(part);
}
template <class T>
std::string body_of(const T& body) {
  return write_json(body);
}

template <class Variant>
TypedBody taken_apart(const Variant& message) {
  return {kTypes.at(message.index()),
          std::visit([](const auto& body) { return body_of(body); }, message)};
}

std::string together(const TypedBody& message) {
  Writer writer;
  writer.begin('{');
  writer("type", message.type);
  writer.key("body");
  writer.raw(message.body);
  writer.end('}');
  return writer.take();
}

// Reads the body as the alternative of that index.
template <class Variant, std::size_t Index = 0>
Result<Variant> read_body(std::size_t wanted, Value body, std::string_view attempt) {
  if constexpr (Index == std::variant_size_v<Variant>) {
    std::unreachable();
  } else if (wanted != Index) {
    return read_body<Variant, Index + 1>(wanted, body, attempt);
  } else {
    std::variant_alternative_t<Index, Variant> message;
    DD_TRY(read_value(body, message, attempt));
    return message;
  }
}

template <class Variant>
Result<Variant> read(Value json, std::string_view attempt) {
  std::string type;
  if (const auto found = json.find("type")) {
    DD_TRY(read_value(*found, type, attempt));
  }
  const auto body = json.find("body");
  for (std::size_t i = 0; i < kTypes.size(); ++i) {
    if (body && type == kTypes.at(i)) return read_body<Variant>(i, *body, attempt);
  }
  return failure(attempt,
                 body ? fmt::format("nobody knows the type '{}'", printable(shortened(type, 40)))
                      : "it has no body");
}

template <class Variant>
Result<Variant> read(std::string_view text, std::string_view attempt) {
  DD_TRY(const Document document, Document::parse(text, kMaxMessageBytes));
  return read<Variant>(document.root(), attempt);
}

}  // namespace

TypedBody typed_body(const Request& request) {
  return taken_apart(request);
}

TypedBody typed_body(const Answer& answer) {
  return taken_apart(answer);
}

std::string write_request(const Request& request) {
  return together(typed_body(request));
}

Result<Request> read_request(std::string_view text) {
  return read<Request>(text, "read a request");
}

Result<Request> read_request(Value json) {
  return read<Request>(json, "read a request");
}

std::string write_answer(const Answer& answer) {
  return together(typed_body(answer));
}

Result<Answer> read_answer(std::string_view text) {
  return read<Answer>(text, "read an answer");
}

Result<Answer> read_answer(Value json) {
  return read<Answer>(json, "read an answer");
}

}  // namespace distdoctor::codec
