// How a setting appears in evidence: where it came from, and what a person types to see it.
#pragma once

#include <distdoctor/job.h>
#include <distdoctor/quote.h>

#include <optional>
#include <string>
#include <string_view>

namespace distdoctor {

// "--env", "/etc/nccl.conf:3", "pid 4711 on node1", "environment".
inline std::string origin_text(const Origin& origin) {
  std::string text = origin.where.empty() ? std::string(slug(origin.source)) : origin.where;
  if (origin.source == Source::process && !origin.node.empty()) text += " on " + origin.node;
  return text;
}

// "^docker0 (/etc/nccl.conf:3)".
inline std::string setting_text(const Setting& setting) {
  return setting.value + " (" + origin_text(setting.origin) + ")";
}

// The number of "pid 4711", as it may stand in a path; none of any other text, which an agent or a
// file of facts may hold.
inline std::optional<std::string> pid_in(std::string_view where) {
  constexpr std::string_view kWord = "pid ";
  if (!where.starts_with(kWord)) return std::nullopt;
  where.remove_prefix(kWord.size());
  const bool digits = where.find_first_not_of("0123456789") == std::string_view::npos;
  return digits && !where.empty() ? std::optional(std::string(where)) : std::nullopt;
}

// To be typed where it was seen. A process's environment is read from /proc, a file is searched;
// anything else is asked of the shell that starts the job.
inline std::string setting_command(std::string_view name, const Setting& setting) {
  const std::string& where = setting.origin.where;
  if (const auto pid = pid_in(where)) {
    return "tr '\\0' '\\n' < /proc/" + *pid + "/environ | grep " +
           shell_quote("^" + std::string(name) + "=");
  }
  const auto colon = where.rfind(':');
  const bool in_file = colon != std::string::npos && colon > 0 && colon + 1 < where.size() &&
                       where.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (in_file) return "grep -n " + shell_quote(name) + " " + shell_quote(where.substr(0, colon));
  return "printenv " + shell_quote(name);
}

}  // namespace distdoctor
