#include "codec/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace distdoctor::codec {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kAttempt = "read JSON";

const Json& json(const void* node) {
  return *static_cast<const Json*>(node);
}

// Before the tree is built: a tree has no cheap way to say how deep it would become.
std::size_t depth_of(std::string_view text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

bool plain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {
      "null", "a boolean", "a number", "a number", "a number", "a string", "a list", "an object"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Kind Value::kind() const {
  switch (json(node_).type()) {
    case Json::value_t::boolean:
      return Kind::boolean;
    case Json::value_t::number_integer:
      return Kind::integer;
    case Json::value_t::number_unsigned:
      return Kind::natural;
    case Json::value_t::number_float:
      return Kind::real;
    case Json::value_t::string:
      return Kind::string;
    case Json::value_t::array:
      return Kind::array;
    case Json::value_t::object:
      return Kind::object;
    default:
      return Kind::null;
  }
}

bool Value::boolean() const {
  return json(node_).get<bool>();
}

std::int64_t Value::integer() const {
  return json(node_).get<std::int64_t>();
}

std::uint64_t Value::natural() const {
  return json(node_).get<std::uint64_t>();
}

double Value::real() const {
  return json(node_).get<double>();
}

std::string_view Value::string() const {
  return json(node_).get_ref<const std::string&>();
}

std::size_t Value::size() const {
  return json(node_).size();
}

Value Value::at(std::size_t index) const {
  return Value(&json(node_).at(index));
}

std::optional<Value> Value::find(std::string_view key) const {
  const Json& object = json(node_);
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  return Value(&*found);
}

std::vector<std::pair<std::string_view, Value>> Value::members() const {
  std::vector<std::pair<std::string_view, Value>> all;
  for (const auto& [key, member] : json(node_).get_ref<const Json::object_t&>()) {
    all.emplace_back(key, Value(&member));
  }
  return all;
}

Result<Document> Document::parse(std::string_view text, std::size_t max_bytes) {
  if (text.size() > max_bytes) {
    return failure(kAttempt, fmt::format("{} bytes, more than {}", text.size(), max_bytes));
  }
  if (depth_of(text) > kMaxDepth) {
    return failure(kAttempt, fmt::format("nested deeper than {} levels", kMaxDepth));
  }
  try {
    return Document(std::make_shared<const Json>(Json::parse(text)));
  } catch (const Json::parse_error& error) {
    return failure(kAttempt, "this is no JSON text", fmt::format("byte {}", error.byte));
  } catch (const Json::out_of_range&) {
    return failure(kAttempt, "a number is too large for any type");
  }
}

std::string quoted(std::string_view text) {
  if (plain(text)) return fmt::format("\"{}\"", text);
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string number(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "null";
}

std::string indented(std::string_view json) {
  return nlohmann::ordered_json::parse(json).dump(2) + "\n";
}

}  // namespace distdoctor::codec
