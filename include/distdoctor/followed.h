// Whether the look for the job's libraries could follow what the job says of where they are.
#pragma once

#include <distdoctor/judge.h>
#include <distdoctor/setting_text.h>
#include <distdoctor/views.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace distdoctor {

// Behind the first character: another one of a name, so that $LIBDIR is not $LIB.
inline bool goes_on(std::string_view text) {
  const bool braced = text.starts_with('}');
  const char next = text.size() > 1 ? text[1] : '/';
  const bool of_a_name = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') ||
                         (next >= '0' && next <= '9') || next == '_';
  return !braced && of_a_name;
}

// $ORIGIN and its kind are the loader's, not the shell's.
inline bool needs_a_shell(std::string_view value) {
  constexpr std::string_view kOfLoader[] = {"ORIGIN",   "LIB",   "PLATFORM",
                                            "{ORIGIN}", "{LIB}", "{PLATFORM}"};
  for (auto at = value.find_first_of("$`"); at != std::string_view::npos;
       at = value.find_first_of("$`", at + 1)) {
    const auto rest = value.substr(at + 1);
    const bool loader = value[at] == '$' && std::ranges::any_of(kOfLoader, [&](auto token) {
                          return rest.starts_with(token) && !goes_on(rest.substr(token.size() - 1));
                        });
    if (!loader) return true;
  }
  return false;
}

// Why nobody but the job's shell knows a variable's value on this node; none where it is known.
inline std::optional<Unknown> not_followed(const JobSpec& job,
                                           const Prediction& prediction,
                                           const std::string& name) {
  const Setting* setting = find_setting(prediction, name);
  if (setting != nullptr && setting->origin.source == Source::process) return std::nullopt;
  const auto written = job.unresolved.find(name);
  if (written != job.unresolved.end()) setting = &written->second;
  const bool open =
      written != job.unresolved.end() || (setting != nullptr && needs_a_shell(setting->value));
  if (!open) return std::nullopt;
  return Unknown{
      .kind = Why::unsupported,
      .text = "it is set to " + setting_text(*setting) + ", which only the job's own shell knows"};
}

// Whether a plugin for NCCL's network that was not found is not there; else the gap is noted. A
// rank that lives on the node was followed by its own environment.
inline bool plugin_was_looked_for(const Case& c, const NodeFacts& node, Judge& judge) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  if (prediction == nullptr || !node.software.known()) return false;
  const auto& nccl = node.software->nccl;
  if (!nccl.empty() && nccl.front().origin.starts_with("mapped by pid ")) return true;
  constexpr const char* kPlugin = "NCCL_NET_PLUGIN";
  for (const char* name : {kPlugin, "LD_LIBRARY_PATH", "LD_PRELOAD"}) {
    if (auto why = not_followed(c.cluster.job, *prediction, name)) {
      judge.miss({.node = node.host, .fact = name, .why = *std::move(why)});
      return false;
    }
  }
  const Setting* plugin = find_setting(*prediction, kPlugin);
  const bool named = plugin != nullptr && !plugin->value.empty() && plugin->value != "none";
  const auto& files = node.software->named_files;
  const bool looked =
      !named || std::ranges::find(files, kPlugin, &NamedFile::variable) != files.end();
  if (!looked) {
    judge.miss({.node = node.host,
                .fact = std::string("file of ") + kPlugin,
                .why = {Why::not_collected, "the node itself does not have this setting"}});
  }
  return looked;
}

}  // namespace distdoctor
