#include "machine/memory_tree.h"

#include "base/text.h"
#include "base/utf8.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <vector>

namespace distdoctor::machine {
namespace {

constexpr int kMostLinks = 40;  // as the kernel's, then ELOOP; here the path is simply not found

std::string joined(const std::vector<std::string>& parts) {
  return "/" + join(parts, "/");
}

void add_parts(std::deque<std::string>& parts, std::string_view path) {
  std::vector<std::string> added;
  for (const auto part : split(path, '/')) {
    if (!part.empty() && part != ".") added.emplace_back(part);
  }
  parts.insert(parts.begin(), added.begin(), added.end());
}

std::string content(const CapturedFile& file) {
  return file.hex.empty() ? file.text : from_hex(file.hex).value_or("");
}

}  // namespace

// A recording notes a file by the name that was asked for, which may lead through a link.
bool MemoryTree::noted(std::string_view path, bool last) const {
  const auto asked = files_.find(std::string(path));
  return asked != files_.end() && (asked->second.link.empty() || !last);
}

std::string MemoryTree::resolved(std::string_view path, bool last) const {
  if (noted(path, last)) return std::string(path);
  std::deque<std::string> open;
  add_parts(open, path);
  std::vector<std::string> done;
  int followed = 0;
  while (!open.empty()) {
    const auto part = std::move(open.front());
    open.pop_front();
    if (part == "..") {
      if (!done.empty()) done.pop_back();
      continue;
    }
    done.push_back(part);
    const auto found = files_.find(joined(done));
    const bool follow = found != files_.end() && !found->second.link.empty() &&
                        (last || !open.empty()) && ++followed <= kMostLinks;
    if (!follow) continue;
    if (found->second.link.starts_with('/'))
      done.clear();
    else
      done.pop_back();
    add_parts(open, found->second.link);
  }
  return joined(done);
}

bool MemoryTree::is_folder(const std::string& path) const {
  const auto below = path == "/" ? path : path + "/";
  const auto next = files_.lower_bound(below);
  return next != files_.end() && next->first.starts_with(below);
}

Result<const CapturedFile*> MemoryTree::file(std::string_view path) const {
  const auto name = resolved(path, true);
  const auto found = files_.find(name);
  if (found == files_.end()) {
    return std::unexpected(errno_error("open", path, is_folder(name) ? EISDIR : ENOENT));
  }
  const int error = found->second.link.empty() ? found->second.error : ELOOP;
  if (error != 0) return std::unexpected(errno_error("open", path, error));
  return &found->second;
}

Result<std::string> MemoryTree::read_head(std::string_view path, std::size_t limit) const {
  DD_TRY(const auto* found, file(path));
  return content(*found).substr(0, limit);
}

Result<std::string> MemoryTree::read_at(std::string_view path,
                                        std::uint64_t offset,
                                        std::size_t limit) const {
  DD_TRY(const auto* found, file(path));
  const auto bytes = content(*found);
  return offset < bytes.size() ? bytes.substr(offset, limit) : "";
}

Result<std::vector<std::string>> MemoryTree::list(std::string_view folder) const {
  const auto name = resolved(folder, true);
  const auto refused = files_.find(name);
  if (refused != files_.end() && refused->second.error != 0) {
    return std::unexpected(errno_error("open", folder, refused->second.error));
  }
  if (!is_folder(name)) return std::unexpected(errno_error("open", folder, ENOENT));
  const auto below = name == "/" ? name : name + "/";
  std::vector<std::string> names;
  for (auto next = files_.lower_bound(below); next != files_.end(); ++next) {
    const auto rest = after_prefix(next->first, below);
    if (!rest) break;
    const auto first = rest->substr(0, rest->find('/'));
    if (!first.empty()) names.emplace_back(first);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::string> MemoryTree::read_link(std::string_view path) const {
  const auto found = files_.find(resolved(path, false));
  if (found == files_.end()) return std::unexpected(errno_error("readlink", path, ENOENT));
  const auto& file = found->second;
  const int error = file.error == 0 && file.link.empty() ? EINVAL : file.error;
  if (error != 0) return std::unexpected(errno_error("readlink", path, error));
  return file.link;
}

Result<Links> MemoryTree::links_in(std::string_view folder) const {
  DD_TRY(const auto names, list(folder));
  Links links;
  for (const auto& name : names) {
    if (auto target = read_link(std::string(folder) + "/" + name)) {
      links.emplace_back(name, *std::move(target));
    }
  }
  return links;
}

Result<FileInfo> MemoryTree::info(std::string_view path) const {
  const auto name = resolved(path, true);
  const auto found = files_.find(name);
  if (found == files_.end()) {
    if (is_folder(name)) return FileInfo{.directory = true};
    return std::unexpected(errno_error("open", path, ENOENT));
  }
  const auto& file = found->second;
  const auto length = static_cast<std::int64_t>(content(file).size());
  return FileInfo{
      .size = file.size != 0 ? file.size : length, .modified_s = file.modified_s, .uid = file.uid};
}

Result<FileSystem> MemoryTree::file_system(std::string_view path) const {
  const auto found = file_systems_.find(resolved(path, true));
  if (found == file_systems_.end()) return std::unexpected(errno_error("statvfs", path, ENOENT));
  const auto& [size, free, read_only, free_for_root, files_free] = found->second;
  return FileSystem{size, free, read_only, free_for_root, files_free};
}

Result<bool> MemoryTree::in_use(std::string_view path) const {
  DD_TRY(const auto* found, file(path));
  return found->in_use;
}

Result<void> MemoryTree::may_use(std::string_view path) const {
  DD_TRY(file(path));
  return {};
}

Result<void> MemoryTree::try_open(std::string_view path) const {
  return may_use(path);
}

}  // namespace distdoctor::machine
