// The written form of an enum: what JSON, tables and the command line use.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>

namespace distdoctor {

// Specialised beside each enum: `values`, in the order of its enumerators, which count from 0.
template <class Enum>
struct EnumNames;

template <class Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires { EnumNames<Enum>::values; };

template <NamedEnum Enum>
constexpr std::string_view slug(Enum value) {
  return EnumNames<Enum>::values[static_cast<std::size_t>(value)];
}

template <NamedEnum Enum>
constexpr std::optional<Enum> enum_from_slug(std::string_view name) {
  const auto& names = EnumNames<Enum>::values;
  const auto* const found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<Enum>(found - std::begin(names));
}

// `fields(visitor, x)` beside a struct is written once for reading and writing: it takes T& or
// const T&. A visitor is called as visitor("name", member) for each member, in order.
template <class T, class Struct>
concept Is = std::same_as<std::remove_const_t<T>, Struct>;

}  // namespace distdoctor
