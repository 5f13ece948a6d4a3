#include "base/nccl_config.h"

#include "base/secrets.h"
#include "collect/collectors.h"
#include "collect/settings.h"

#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::collect {
namespace {

constexpr std::size_t kMostEntries = 500;  // of one file; it is foreign text

std::string masked_value(const NcclConfigLine& line) {
  return names_a_secret(line.name) ? "***" : mask_value(line.value);
}

std::vector<NcclConfigEntry> entries_of(std::string_view text) {
  std::vector<NcclConfigEntry> entries;
  for (const NcclConfigLine& line : nccl_config_lines(text)) {
    if (!line.name.contains("NCCL")) continue;
    if (entries.size() == kMostEntries) break;
    entries.push_back({line.line, mask_value(line.name), masked_value(line)});
  }
  return entries;
}

NcclConfigFile read_file(const machine::FileTree& files,
                         const std::string& path,
                         Source source,
                         bool named) {
  NcclConfigFile file{.path = path, .source = source, .named = named};
  const auto text = files.read(path);
  file.readable = text.has_value();
  file.there = text || (text.error().errno_value != ENOENT && text.error().errno_value != ENOTDIR);
  if (text) file.entries = entries_of(*text);
  return file;
}

}  // namespace

void collect_nccl_config(machine::Machine& machine,
                         const CollectRequest& request,
                         NodeFacts& node) {
  std::vector<NcclConfigFile> files;
  const auto user = user_config(machine, request.settings);
  if (!user.path.empty()) {
    files.push_back(read_file(machine.files(), user.path, Source::user_config, user.named));
  }
  files.push_back(read_file(machine.files(), kSystemConfig, Source::system_config, false));
  node.nccl_config = std::move(files);
}

}  // namespace distdoctor::collect
