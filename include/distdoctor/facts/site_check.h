// What a site's own check programs said, by the exit codes of the Monitoring Plugins guidelines.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace distdoctor {

enum class SiteResult : std::uint8_t { ok, degraded, blocker, unknown };
template <>
struct EnumNames<SiteResult> {
  static constexpr std::string_view values[] = {"ok", "degraded", "blocker", "unknown"};
};

struct SiteCheck {
  std::string name = {};  // of its file
  std::string path = {};
  SiteResult result = SiteResult::ok;
  std::string says = {};   // its first line, or the text of its JSON
  std::string fix = {};    // from its JSON: what a person should do
  std::string error = {};  // of an unknown one: "it did not end in 10 s", "exit status 42"
  double seconds = 0;
  bool operator==(const SiteCheck&) const = default;
};

template <class V, Is<SiteCheck> T>
void fields(V& v, T& x) {
  v("name", x.name);
  v("path", x.path);
  v("result", x.result);
  v("says", x.says);
  v("fix", x.fix);
  v("error", x.error);
  v("seconds", x.seconds);
}

}  // namespace distdoctor
