#include "rules/nccl/variables.h"

#include "base/text.h"
#include "rules/slip.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string>

namespace distdoctor::rules {

namespace {

using Words = std::span<const std::string_view>;

// What a value becomes; `name` is filled in by whoever asks.
struct Taken {
  std::string as = {};
  bool as_default = false;
  VariableTrap trap = VariableTrap::none;
};

// --- numbers ---

constexpr std::string_view kSpace = " \t\n\v\f\r";

bool same_word(std::string_view a, std::string_view b) {
  return to_lower(a) == to_lower(b);
}

bool is_one_of(std::string_view word, Words words) {
  return std::ranges::any_of(words, [&](std::string_view known) { return same_word(word, known); });
}

// Words for 0: that NCCL reads no number in them changes nothing.
bool means_zero(std::string_view word) {
  static constexpr std::array<std::string_view, 8> kWords = {"false", "no", "off",     "none",
                                                             "n",     "f",  "disable", "disabled"};
  return is_one_of(word, kWords);
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

// "022" and "08" look decimal and are not; "00", "07" and "0x16" are what they look like.
bool looks_decimal(std::string_view text, std::int64_t number) {
  const auto digits = text.substr(text.starts_with('-') || text.starts_with('+') ? 1 : 0);
  if (!digits.starts_with('0')) return false;
  const auto decimal = parse_int<std::int64_t>(digits);
  return decimal && *decimal != number && *decimal != -number;
}

VariableTrap number_trap(std::string_view text, std::string_view rest, std::int64_t number) {
  if (looks_decimal(text, number)) return VariableTrap::octal;
  if (trimmed(rest) == text) {
    return means_zero(text) ? VariableTrap::none : VariableTrap::word;
  }
  const bool comment = rest.empty() || kSpace.contains(rest.front()) || rest.front() == '#';
  return comment ? VariableTrap::none : VariableTrap::rest;
}

// An empty one, and one that no 64 bits hold, is as if it was not set (param.cc).
Taken take_number(const std::string& value, const std::optional<std::int64_t>& usual) {
  if (value.empty()) return {.as_default = true};
  errno = 0;
  char* end = nullptr;
  const std::int64_t number = std::strtoll(value.c_str(), &end, 0);
  if (errno != 0) return {.as_default = true, .trap = VariableTrap::unknown};
  return {.as = std::to_string(number),
          .as_default = usual && number == *usual,
          .trap = number_trap(trimmed(value), end, number)};
}

Taken take_only_one(const std::string& value) {
  Taken taken = take_number(value, 0);
  if (taken.as.empty() || taken.as == "0" || taken.as == "1") return taken;
  return {.as = "0", .as_default = true, .trap = VariableTrap::exact};
}

// --- words ---

// A digit is a level of NCCL up to 2.4, which knew fewer of them.
Taken take_level(const std::string& value) {
  static constexpr std::array<std::string_view, 10> kLevels = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                                               "PXB", "P2C", "PXN", "PHB", "SYS"};
  static constexpr std::array<std::string_view, 6> kOld = {"LOC", "PIX", "PXB",
                                                           "PHB", "SYS", "SYS"};
  if (std::ranges::find(kLevels, value) != kLevels.end()) return {.as = value};
  if (value.empty()) return {.as_default = true};
  if (value.front() < '0' || value.front() > '9') {
    return {.as_default = true, .trap = VariableTrap::unknown};
  }
  const std::int64_t old = std::strtoll(value.c_str(), nullptr, 0);
  return {.as =
              std::string(kOld.at(static_cast<std::size_t>(std::clamp<std::int64_t>(old, 0, 5))))};
}

Taken take_debug(const std::string& value) {
  static constexpr std::array<std::string_view, 5> kLevels = {"VERSION", "WARN", "INFO", "ABORT",
                                                              "TRACE"};
  const auto* const found = std::ranges::find_if(
      kLevels, [&](std::string_view level) { return same_word(level, value); });
  if (found != kLevels.end()) return {.as = std::string(*found)};
  const bool meant = value.empty() || value == "0" || means_zero(value);
  return {.as_default = true, .trap = meant ? VariableTrap::none : VariableTrap::silenced};
}

// The words of all versions; only whether the mask is empty matters here, since an empty one keeps
// the warnings back, too.
Taken take_subsystems(std::string_view value) {
  static constexpr std::array<std::string_view, 17> kSubsystems = {
      "INIT", "COLL",  "P2P",  "SHM",       "NET", "GRAPH",   "TUNING", "ENV", "ALLOC",
      "CALL", "PROXY", "NVLS", "BOOTSTRAP", "REG", "PROFILE", "RAS",    "ALL"};
  const bool invert = value.starts_with('^');
  if (invert) value.remove_prefix(1);
  bool any = false;
  bool all = false;
  for (const std::string_view word : split(value, ',')) {
    any = any || is_one_of(word, kSubsystems);
    all = all || same_word(word, "ALL");
  }
  const bool empty = invert ? all : !any;
  return {.as = empty ? "" : std::string(value),
          .trap = empty ? VariableTrap::silenced : VariableTrap::none};
}

Taken take_family(const std::string& value) {
  if (value == "AF_INET" || value == "AF_INET6") return {.as = value};
  return {.as_default = true, .trap = value.empty() ? VariableTrap::none : VariableTrap::unknown};
}

// --- lists for tuning.cc parseList: [FUNCTION:][^]WORD,WORD;FUNCTION:... ---

// strtok_r: empty parts vanish.
std::vector<std::string_view> tokens(std::string_view text, char separator) {
  std::vector<std::string_view> parts = split(text, separator);
  std::erase_if(parts, [](std::string_view part) { return part.empty(); });
  return parts;
}

bool entry_is_known(std::string_view entry, Words words, bool first) {
  static constexpr std::array<std::string_view, 5> kFunctions = {"Broadcast", "Reduce", "AllGather",
                                                                 "ReduceScatter", "AllReduce"};
  const auto parts = tokens(entry, ':');
  if (parts.size() < 2 && !first) return false;
  if (parts.size() > 1 && !is_one_of(parts[0], kFunctions)) return false;
  if (parts.empty()) return true;
  std::string_view list = parts[parts.size() > 1 ? 1 : 0];
  if (list.starts_with('^')) list.remove_prefix(1);
  return std::ranges::all_of(tokens(list, ','),
                             [&](std::string_view word) { return is_one_of(word, words); });
}

Taken take_list(std::string_view value, Words words) {
  if (value.empty()) return {.as_default = true};
  for (const std::string_view entry : tokens(value, ';')) {
    const bool first = entry.data() == value.data();
    if (!entry_is_known(entry, words, first)) return {.trap = VariableTrap::refused};
  }
  return {.as = std::string(value)};
}

Taken take_algorithms(std::string_view value) {
  static constexpr std::array<std::string_view, 8> kWords = {
      "Tree", "Ring", "CollNet", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"};
  return take_list(value, kWords);
}

Taken take_protocols(std::string_view value) {
  static constexpr std::array<std::string_view, 3> kWords = {"LL", "LL128", "Simple"};
  return take_list(value, kWords);
}

std::optional<Taken> take(const VariableRow& row, const std::string& value) {
  if (value.contains("***")) return std::nullopt;  // masked: nobody knows what it says
  switch (row.kind) {
    case VariableKind::number:
      return take_number(value, row.usual);
    case VariableKind::only_one:
      return take_only_one(value);
    case VariableKind::level:
      return take_level(value);
    case VariableKind::debug:
      return take_debug(value);
    case VariableKind::subsystems:
      return take_subsystems(value);
    case VariableKind::family:
      return take_family(value);
    case VariableKind::algorithms:
      return take_algorithms(value);
    case VariableKind::protocols:
      return take_protocols(value);
    case VariableKind::text:
      break;
  }
  return std::nullopt;
}

// --- names ---

constexpr std::string_view kPrefix = "NCCL_";

const VariableRow* find_row(std::string_view name) {
  const auto rows = nccl_variables();
  const auto found = std::ranges::lower_bound(rows, name, {}, &VariableRow::name);
  return found != rows.end() && found->name == name ? &*found : nullptr;
}

// DISABLED is one of NCCL's own words too, but in one name only.
const KnownNames& known_names() {
  static const KnownNames names(
      [] {
        std::vector<std::string_view> all;
        for (const VariableRow& row : nccl_variables()) all.push_back(row.name);
        return all;
      }(),
      {"DISABLED"});
  return names;
}

auto find_reading(std::vector<VariableReading>& readings, std::string_view name) {
  return std::ranges::find(readings, name, &VariableReading::name);
}

// Without a level nothing is printed anyway, and nothing is lost.
void forgive_silence(std::vector<VariableReading>& readings) {
  const auto subsystems = find_reading(readings, "NCCL_DEBUG_SUBSYS");
  if (subsystems == readings.end()) return;
  const auto level = find_reading(readings, "NCCL_DEBUG");
  const bool prints =
      level != readings.end() && !level->taken_as.empty() && level->taken_as != "VERSION";
  if (!prints) subsystems->trap = VariableTrap::none;
}

}  // namespace

std::optional<std::string_view> meant_variable(std::string_view name) {
  if (!name.starts_with(kPrefix) || known_elsewhere(name)) return std::nullopt;
  return known_names().meant(name);
}

std::vector<VariableReading> read_variables(const Settings& settings) {
  std::vector<VariableReading> readings;
  for (const auto& [name, setting] : settings) {
    if (!name.starts_with(kPrefix)) continue;
    if (const VariableRow* row = find_row(name)) {
      auto taken = take(*row, setting.value);
      if (!taken) continue;
      readings.push_back({name, std::move(taken->as), taken->as_default, taken->trap});
    } else if (const auto meant = meant_variable(name)) {
      readings.push_back(
          {.name = name, .taken_as = std::string(*meant), .trap = VariableTrap::misspelt});
    }
  }
  forgive_silence(readings);
  return readings;
}

}  // namespace distdoctor::rules
