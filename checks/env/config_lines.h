// Lines of NCCL's configuration files that are not what their writer meant: what is wrong with one,
// and the line that was meant.
#pragma once

#include "variables.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor::checks::env {

// In the order in which they are told.
enum class Damage : std::uint8_t { none, name, carriage_return, quotes, comment, blanks };

inline std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

inline bool plain_name(std::string_view name) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_abcdefghijklmnopqrstuvwxyz";
  return name.starts_with("NCCL_") && name.find_first_not_of(kLetters) == std::string_view::npos;
}

// The name of "export NCCL_DEBUG", " NCCL_DEBUG " and "\xef\xbb\xbfNCCL_DEBUG"; empty where none is
// alone in it, as in a comment.
inline std::string_view bare_name(std::string_view written) {
  if (written.find('#') != std::string_view::npos) return {};
  const auto begin = written.find("NCCL_");
  if (begin == std::string_view::npos) return {};
  const auto end = written.find_first_of(" \t\r", begin);
  const auto name = written.substr(begin, end == std::string_view::npos ? end : end - begin);
  const bool alone = without_blanks(written.substr(begin)) == name;
  return alone && plain_name(name) ? name : std::string_view{};
}

inline bool in_quotes(std::string_view value) {
  return value.size() > 1 && (value.front() == '"' || value.front() == '\'') &&
         value.back() == value.front();
}

inline std::size_t comment_begin(std::string_view value) {
  const auto mark = std::min(value.find(" #"), value.find("\t#"));
  return std::min(mark, value.size());
}

inline Damage value_damage(std::string_view value) {
  if (value.ends_with('\r')) return Damage::carriage_return;
  const auto bare = without_blanks(value);
  if (comment_begin(value) < value.size()) return Damage::comment;
  if (in_quotes(bare)) return Damage::quotes;
  return bare == value ? Damage::none : Damage::blanks;
}

inline std::string_view damage_text(Damage damage) {
  switch (damage) {
    case Damage::name:
      return "NCCL takes all before the '=' for the name, and ignores the line";
    case Damage::carriage_return:
      return "the carriage return at its end is part of the value";
    case Damage::quotes:
      return "the quotes are part of the value";
    case Damage::comment:
      return "the comment behind it is part of the value";
    case Damage::blanks:
      return "the blanks around it are part of the value";
    case Damage::none:
      break;
  }
  return "";
}

inline std::string meant_value(std::string_view value) {
  value = without_blanks(value.substr(0, comment_begin(value)));
  if (in_quotes(value)) value = value.substr(1, value.size() - 2);
  return std::string(value);
}

// "NAME=VALUE" as it was meant.
inline std::string meant_line(const NcclConfigEntry& entry) {
  return std::string(bare_name(entry.name)) + "=" + meant_value(entry.value);
}

// What replaces line N in sed; none where its text would need more than quotes.
inline std::optional<std::string> replacing(const std::string& line) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-^";
  if (line.find_first_not_of(kHarmless) != std::string::npos) return std::nullopt;
  return "s|.*|" + line + "|";
}

// --- the files ---

// The job names another file than the one that was read.
inline bool another_file(const Prediction& prediction, const NcclConfigFile& file, Judge& judge) {
  const Setting* setting = find_setting(prediction, "NCCL_CONF_FILE");
  const bool other = file.source == Source::user_config && setting != nullptr &&
                     !setting->value.empty() && setting->value != file.path;
  if (other) {
    judge.miss({.node = prediction.node,
                .fact = "nccl_config",
                .why = {Why::not_collected, "NCCL_CONF_FILE of the job names " + setting->value}});
  }
  return other;
}

// Each file that the job's NCCL reads on a node, as far as was seen.
template <class Look>
void each_config_file(const Case& c, Judge& judge, Look look) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const Prediction* prediction = find_prediction(c.cluster, node.host);
    const auto* files = judge.see(node, "nccl_config", node.nccl_config);
    if (files == nullptr || prediction == nullptr) continue;
    for (const NcclConfigFile& file : *files) {
      if (!another_file(*prediction, file, judge)) look(node, *prediction, file);
    }
  }
}

}  // namespace distdoctor::checks::env
