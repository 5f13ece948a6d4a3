#include "cli/policy.h"

#include "base/nearest.h"
#include "base/text.h"
#include "cli/files.h"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <array>
#include <cstdint>
#include <optional>

namespace distdoctor::cli {
namespace {

std::string place_of(const std::string& path, const toml::node& node) {
  return path + ":" + std::to_string(node.source().begin.line);
}

struct Key {
  const std::string& path;
  std::string_view name;
  const toml::node& node;
};

Result<double> number(const Key& key, double lowest, double highest) {
  const auto value = key.node.value<double>();
  if (!value || !(*value >= lowest && *value <= highest)) {
    return failure("read " + std::string(key.name), "not a number in its range",
                   place_of(key.path, key.node));
  }
  return *value;
}

template <class T>
Result<void> take(const Key& key, double lowest, double highest, Threshold<T>& threshold) {
  DD_TRY(const double value, number(key, lowest, highest));
  threshold = {.value = static_cast<T>(value), .origin = place_of(key.path, key.node)};
  return {};
}

constexpr std::array<std::string_view, 5> kKeys = {"min_data_mtu", "max_loss", "max_clock_skew_ms",
                                                   "min_shm_bytes", "gpus_per_node"};

Result<void> take_count(const Key& key, int most, std::optional<Threshold<int>>& threshold) {
  const auto value = key.node.value_exact<std::int64_t>();
  if (!value || *value < 0 || *value > most) {
    return failure("read " + std::string(key.name), "not a whole number in its range",
                   place_of(key.path, key.node));
  }
  threshold = {.value = static_cast<int>(*value), .origin = place_of(key.path, key.node)};
  return {};
}

Result<void> take_key(const Key& key, Expectations& expect) {
  if (key.name == kKeys[0]) return take(key, 576, 65536, expect.min_data_mtu);
  if (key.name == kKeys[1]) return take(key, 0, 1, expect.max_loss);
  if (key.name == kKeys[2]) return take(key, 0, 1e9, expect.max_clock_skew_ms);
  if (key.name == kKeys[3]) return take(key, 0, 1e15, expect.min_shm_bytes);
  if (key.name == kKeys[4]) return take_count(key, 1024, expect.gpus_per_node);
  return failure("read '" + std::string(key.name) + "' of [expect]",
                 "no such key" + did_you_mean(key.name, kKeys), place_of(key.path, key.node));
}

}  // namespace

Result<Expectations> read_policy(const std::string& path, Deadline by) {
  DD_TRY(const std::string text, read_file(path, std::size_t{1} << 20, by));
  const toml::parse_result parsed = toml::parse(text, path);
  if (!parsed) {
    const auto& error = parsed.error();
    return failure("read " + path, std::string(error.description()),
                   path + ":" + std::to_string(error.source().begin.line));
  }
  Expectations expect;
  for (const auto& [name, node] : parsed.table()) {
    const toml::table* section = node.as_table();
    if (name.str() != "expect" || section == nullptr) {
      return failure("read '" + std::string(name.str()) + "'", "only [expect] is known",
                     place_of(path, node));
    }
    for (const auto& [key, value] : *section) {
      DD_TRY(take_key({path, key.str(), value}, expect));
    }
  }
  return expect;
}

}  // namespace distdoctor::cli
