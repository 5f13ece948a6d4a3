// A parsed JSON text to look at, without its library in this header: a file that reads a struct
// from JSON (read.h) compiles in a fraction of the second that nlohmann/json.hpp costs.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::codec {

inline constexpr std::size_t kMaxDepth = 32;

enum class Kind : std::uint8_t { null, boolean, integer, natural, real, string, array, object };
std::string_view name_of(Kind kind);  // "a string", for sentences

// One value inside a Document, which must outlive it. Asking for what it is not is a bug.
class Value {
 public:
  explicit Value(const void* node) : node_(node) {}

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;   // below zero
  [[nodiscard]] std::uint64_t natural() const;  // zero and above
  [[nodiscard]] double real() const;            // of any number
  [[nodiscard]] std::string_view string() const;
  [[nodiscard]] std::size_t size() const;  // of an array or object
  [[nodiscard]] Value at(std::size_t index) const;
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;  // nothing in a non-object
  [[nodiscard]] std::vector<std::pair<std::string_view, Value>> members() const;

 private:
  const void* node_;
};

class Document {
 public:
  // Strict RFC 8259 with valid UTF-8. Refused: more than `max_bytes`, deeper than kMaxDepth, and
  // what is no JSON, with the byte at which that shows.
  static Result<Document> parse(std::string_view text, std::size_t max_bytes);

  [[nodiscard]] Value root() const { return Value(tree_.get()); }

 private:
  explicit Document(std::shared_ptr<const void> tree) : tree_(std::move(tree)) {}
  std::shared_ptr<const void> tree_;
};

// A JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string quoted(std::string_view text);
// The shortest text that reads back as the same number; "null" for what is not finite.
std::string number(double value);

// The same value over several lines, keys in their order.
std::string indented(std::string_view json);

}  // namespace distdoctor::codec
