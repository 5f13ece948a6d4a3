#include "base/units.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace distdoctor {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

struct Unit {
  std::string_view name;
  double factor;
};

// One digit after the point below ten, none where it would be a zero.
std::string with_unit(double value, std::string_view unit) {
  std::string number = fmt::format("{:.{}f}", value, value < 9.95 ? 1 : 0);
  if (number.ends_with(".0")) number.resize(number.size() - 2);
  return fmt::format("{} {}", number, unit);
}

// In the largest of the units (smallest first) in which the value does not round to zero.
std::string scaled(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step - 0.5) {
    value /= step;
    ++unit;
  }
  return with_unit(value, units[unit]);
}

struct Number {
  double value = 0;
  std::string_view unit;
};

std::optional<Number> number_with_unit(std::string_view text) {
  text = trim(text);
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> value = parse_double(text.substr(0, end));
  if (!value) return std::nullopt;
  return Number{*value, trim(text.substr(end))};
}

std::optional<double> factor_of(std::string_view name, std::span<const Unit> units) {
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return unit->factor;
}

struct Clock {
  std::string_view unit;
  std::chrono::seconds length;
};

// "5 min 10 s", "2 h": the largest part and the next one, unless that is zero.
std::string two_parts(std::chrono::seconds t) {
  using namespace std::chrono_literals;
  constexpr std::array<Clock, 4> kParts = {{{"d", 24h}, {"h", 1h}, {"min", 1min}, {"s", 1s}}};
  std::size_t part = 0;
  while (t < kParts.at(part).length) ++part;
  const Clock& large = kParts.at(part);
  const Clock& small = kParts.at(part + 1);
  const std::string head = fmt::format("{} {}", t / large.length, large.unit);
  const auto rest = t % large.length / small.length;
  return rest == 0 ? head : fmt::format("{} {} {}", head, rest, small.unit);
}

}  // namespace

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  return scaled(static_cast<double>(bytes), 1024, kUnits);
}

std::string human_bits_per_second(double bits) {
  constexpr std::array<std::string_view, 5> kUnits = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s",
                                                      "Tbit/s"};
  return scaled(std::max(bits, 0.0), 1000, kUnits);
}

namespace {

// std::chrono::round goes one beyond, which for the largest time is too much.
std::chrono::seconds rounded(nanoseconds t) {
  using namespace std::chrono_literals;
  const auto whole = std::chrono::floor<std::chrono::seconds>(t);
  return t - whole >= 500ms ? whole + 1s : whole;
}

}  // namespace

std::string human_duration(nanoseconds t) {
  using namespace std::chrono_literals;
  if (t < 0ns) return "-" + human_duration(t == nanoseconds::min() ? nanoseconds::max() : -t);
  if (t >= 59500ms) return two_parts(rounded(t));
  constexpr std::array<std::string_view, 4> kUnits = {"ns", "us", "ms", "s"};
  return scaled(static_cast<double>(t.count()), 1000, kUnits);
}

Result<milliseconds> parse_duration(std::string_view text) {
  constexpr std::array<Unit, 6> kUnits = {
      {{"", 1e3}, {"ms", 1}, {"s", 1e3}, {"m", 60e3}, {"min", 60e3}, {"h", 3600e3}}};
  const std::string attempt = fmt::format("read '{}' as a duration", text);
  const std::optional<Number> number = number_with_unit(text);
  const std::optional<double> factor = number ? factor_of(number->unit, kUnits) : std::nullopt;
  if (!factor) return failure(attempt, "write it as 500ms, 10s, 2m or 1h");
  constexpr double kLongest = 7 * 24 * 3600e3;
  const double count = number->value * *factor;
  if (count < 1 || count > kLongest) return failure(attempt, "it must lie between 1ms and 168h");
  return milliseconds(static_cast<milliseconds::rep>(count));
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<Unit, 6> kUnits = {
      {{"", 1}, {"b", 1}, {"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}, {"t", 0x1p40}}};
  const std::string attempt = fmt::format("read '{}' as a size", text);
  const std::optional<Number> number = number_with_unit(text);
  std::string unit = to_lower(number ? number->unit : "");
  if (unit.size() > 1 && unit.ends_with('b')) unit.pop_back();
  if (unit.size() > 1 && unit.ends_with('i')) unit.pop_back();
  const std::optional<double> factor = number ? factor_of(unit, kUnits) : std::nullopt;
  if (!factor) return failure(attempt, "write it as 65536, 64k, 512M or 2G");
  const double bytes = number->value * *factor;
  if (bytes >= 0x1p63) return failure(attempt, "it is too large");
  return static_cast<std::uint64_t>(bytes);
}

}  // namespace distdoctor
