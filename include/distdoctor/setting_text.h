// How a setting appears in evidence: where it came from, and what a person types to see it.
#pragma once

#include <distdoctor/job.h>
#include <distdoctor/quote.h>

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

// To be typed where it was seen. A process's environment is read from /proc, a file is searched;
// anything else is asked of the shell that starts the job.
inline std::string setting_command(std::string_view name, const Setting& setting) {
  const std::string& where = setting.origin.where;
  if (where.starts_with("pid ")) {
    return "tr '\\0' '\\n' < /proc/" + where.substr(4) + "/environ | grep ^" + std::string(name) +
           "=";
  }
  const auto colon = where.rfind(':');
  const bool in_file = colon != std::string::npos && colon > 0 && colon + 1 < where.size() &&
                       where.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  if (in_file) return "grep -n " + std::string(name) + " " + shell_quote(where.substr(0, colon));
  return "printenv " + std::string(name);
}

}  // namespace distdoctor
