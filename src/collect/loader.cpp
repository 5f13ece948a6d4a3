#include "collect/loader.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::array<std::string_view, 5> kFolders = {"/usr/lib/x86_64-linux-gnu",
                                                      "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                                      "/usr/lib", "/usr/lib/wsl/lib"};
constexpr std::size_t kKindBytes = 20;
constexpr std::size_t kLongestPath = 4096;  // PATH_MAX: no file has a longer one

std::string folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  if (slash == std::string_view::npos) return "";
  return std::string(slash == 0 ? "/" : path.substr(0, slash));
}

std::string base_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

bool in_any(std::string_view path, std::string_view word) {
  return path.find(word) != std::string_view::npos;
}

// "/venv/nvidia/lib" of "/venv/torch/lib/../../nvidia/lib", as most people would write it.
std::string without_dots(std::string_view path) {
  std::vector<std::string_view> parts;
  for (const auto part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (!parts.empty()) {
      parts.pop_back();
    }
  }
  return "/" + join(parts, "/");
}

// One search: the folders in their order, each file once.
class Search {
 public:
  Search(const machine::FileTree& files,
         const LoaderView& view,
         std::span<const Loaded> chain,
         std::string_view name)
      : files_(files), view_(view), chain_(chain), name_(name) {}

  std::vector<LibraryFile> all() && {
    if (in_any(name_, "/")) {
      add(absolute(name_), "its path");
      return std::move(found_);
    }
    rpaths();
    split_into_folders(view_.library_path, ":;", folder_of(view_.program), "LD_LIBRARY_PATH");
    runpath();
    if (!chain_.empty() && chain_.front().elf.own_folders_only) return std::move(found_);
    const auto cache = files_.read("/etc/ld.so.cache");
    if (cache) {
      for (const auto& path : all_in_ld_cache(*cache, name_)) add(path, "ld.so.cache");
    }
    for (const auto folder : kFolders) in_folder(std::string(folder), std::string(folder));
    return std::move(found_);
  }

 private:
  // A DT_RUNPATH of who asks turns all DT_RPATHs off; one of who stands above only its own.
  void rpaths() {
    if (chain_.empty() || chain_.front().elf.runpath) return;
    for (const auto& object : chain_) {
      if (object.elf.runpath || !object.elf.rpath) continue;
      split_into_folders(*object.elf.rpath, ":", folder_of(object.path),
                         "DT_RPATH of " + base_name(object.path));
    }
  }
  void runpath() {
    if (chain_.empty()) return;
    const auto& object = chain_.front();
    if (!object.elf.runpath) return;
    split_into_folders(*object.elf.runpath, ":", folder_of(object.path),
                       "DT_RUNPATH of " + base_name(object.path));
  }

  // An empty text names no folder, an empty part the working one.
  void split_into_folders(std::string_view text,
                          std::string_view separators,
                          const std::string& origin_folder,
                          const std::string& origin) {
    if (text.empty()) return;
    while (true) {
      const auto end = text.find_first_of(separators);
      in_folder(expanded(std::string(text.substr(0, end)), origin_folder), origin);
      if (end == std::string_view::npos) return;
      text.remove_prefix(end + 1);
    }
  }

  [[nodiscard]] std::string expanded(std::string folder, const std::string& origin_folder) const {
    const std::array<std::pair<std::string_view, std::string>, 4> tokens = {
        {{"${ORIGIN}", origin_folder},
         {"$ORIGIN", origin_folder},
         {"${LIB}", library_folder()},
         {"$LIB", library_folder()}}};
    for (const auto& [token, value] : tokens) {
      for (auto at = folder.find(token); at != std::string::npos && !value.empty();
           at = folder.find(token, at + value.size())) {
        if (folder.size() > kLongestPath) return "";
        folder.replace(at, token.size(), value);
      }
    }
    if (in_any(folder, "$")) return "";
    return absolute(folder.empty() ? "." : folder);
  }

  // As glibc was built: Debian's word for it, or that of all others.
  [[nodiscard]] std::string library_folder() const {
    for (const auto* name : {"lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"}) {
      if (files_.info("/usr/" + std::string(name) + "/libc.so.6")) return name;
    }
    return "lib64";
  }

  [[nodiscard]] std::string absolute(std::string_view path) const {
    if (path.starts_with('/')) return std::string(path);
    return view_.folder.empty() ? "" : view_.folder + "/" + std::string(path);
  }

  void in_folder(const std::string& folder, const std::string& origin) {
    if (!folder.empty()) add(folder + "/" + std::string(name_), origin);
  }

  void add(const std::string& path, const std::string& origin) {
    if (path.empty() || !fits(path)) return;
    auto real = tidy(real_path(files_, path));
    const bool seen = std::ranges::find(found_, real, &LibraryFile::path) != found_.end();
    if (!seen) found_.push_back({.path = std::move(real), .origin = origin, .opened = path});
  }

  // Where a folder on the way is a link, ".." leads elsewhere than it looks.
  [[nodiscard]] std::string tidy(const std::string& path) const {
    auto shorter = without_dots(path);
    const auto here = files_.info(path);
    const auto there = files_.info(shorter);
    return here && there && *here == *there ? shorter : path;
  }

  // The loader passes over what is not there, folders, and libraries of another kind of machine.
  [[nodiscard]] bool fits(const std::string& path) const {
    const auto info = files_.info(path);
    if (!info || info->directory) return false;
    const auto kind = elf_kind(files_.read_at(path, 0, kKindBytes).value_or(""));
    if (!kind) return true;
    return chain_.empty() ? kind->wide : *kind == chain_.front().elf.kind;
  }

  const machine::FileTree& files_;
  const LoaderView& view_;
  std::span<const Loaded> chain_;
  std::string_view name_;
  std::vector<LibraryFile> found_;
};

// What is loaded before the program's own libraries.
std::vector<Loaded> preloaded(const machine::FileTree& files,
                              const LoaderView& view,
                              std::span<const Loaded> program,
                              std::vector<std::string>& names) {
  auto entries = preload_entries(view.preload);
  const auto system = files.read("/etc/ld.so.preload");
  if (system) std::ranges::move(preload_entries(*system), std::back_inserter(entries));
  std::vector<Loaded> all;
  for (const auto& entry : entries) {
    const auto found = Search(files, view, program, entry).all();
    if (found.empty()) continue;
    auto object = loaded(files, found.front().opened);
    if (!object) continue;
    all.push_back(*std::move(object));
    names.push_back(entry);
  }
  return all;
}

void append(std::vector<LibraryFile> more, std::vector<LibraryFile>& all) {
  for (auto& file : more) {
    const bool seen = std::ranges::find(all, file.path, &LibraryFile::path) != all.end();
    if (!seen) all.push_back(std::move(file));
  }
}

}  // namespace

ReadPart parts_of(const machine::FileTree& files, const std::string& path) {
  return [&files, path](std::uint64_t offset, std::size_t limit) {
    return files.read_at(path, offset, limit).value_or("");
  };
}

std::optional<Loaded> loaded(const machine::FileTree& files, const std::string& path) {
  auto elf = read_elf(parts_of(files, path));
  if (!elf) return std::nullopt;
  return Loaded{.path = path, .elf = *std::move(elf)};
}

std::vector<std::string> preload_entries(std::string_view text) {
  std::vector<std::string> entries;
  for (const auto line : split_lines(text)) {
    for (const auto word : split_words(line.substr(0, line.find('#')))) {
      for (const auto entry : split(word, ':')) {
        if (!entry.empty()) entries.emplace_back(entry);
      }
    }
  }
  return entries;
}

std::vector<LibraryFile> loader_order(const machine::FileTree& files,
                                      const LoaderView& view,
                                      std::span<const Loaded> chain,
                                      std::string_view name) {
  const auto program = chain.empty() ? chain : chain.last(1);
  std::vector<std::string> entries;
  const auto first = preloaded(files, view, program, entries);
  std::vector<LibraryFile> all;
  const auto wants = [name](const Loaded& object) {
    return std::ranges::find(object.elf.needed, name) != object.elf.needed.end();
  };
  // By the name under which it was asked for, or by its own; only then is nothing looked for.
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (entries[i] != name && first[i].elf.soname != name) continue;
    append({{.path = real_path(files, first[i].path),
             .origin = "LD_PRELOAD",
             .opened = first[i].path}},
           all);
  }
  if (!program.empty() && wants(program.front()))
    append(Search(files, view, program, name).all(), all);
  for (const auto& object : first) {
    if (!wants(object)) continue;
    std::vector<Loaded> own = {object};
    own.insert(own.end(), program.begin(), program.end());
    append(Search(files, view, own, name).all(), all);
  }
  append(Search(files, view, chain, name).all(), all);
  return all;
}

}  // namespace distdoctor::collect
