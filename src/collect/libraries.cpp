#include "collect/libraries.h"

#include "base/text.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::array<std::string_view, 5> kFolders = {"/usr/lib/x86_64-linux-gnu",
                                                      "/usr/lib/aarch64-linux-gnu", "/usr/lib64",
                                                      "/usr/lib", "/usr/lib/wsl/lib"};

std::uint32_t word_at(std::string_view bytes, std::size_t offset) {
  std::uint32_t word = 0;
  if (offset + sizeof word <= bytes.size()) std::memcpy(&word, &bytes[offset], sizeof word);
  return word;
}

std::string_view text_at(std::string_view bytes, std::uint32_t offset) {
  if (offset >= bytes.size()) return "";
  const auto rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

// Collects what is there, each file once.
class Found {
 public:
  explicit Found(const machine::FileTree& files) : files_(files) {}

  void add(const std::string& path, std::string_view origin) {
    if (path.empty() || !files_.info(path)) return;
    auto real = real_path(files_, path);
    for (const auto& file : all_) {
      if (file.path == real) return;
    }
    all_.push_back({.path = std::move(real), .origin = std::string(origin)});
  }
  std::vector<LibraryFile> all() && { return std::move(all_); }

 private:
  const machine::FileTree& files_;
  std::vector<LibraryFile> all_;
};

}  // namespace

std::vector<LibraryFile> find_library(const machine::Machine& machine, std::string_view name) {
  const auto& files = machine.files();
  Found found(files);
  const auto in_folder = [&](std::string_view folder, std::string_view origin) {
    if (folder.starts_with('/')) found.add(std::string(folder) + "/" + std::string(name), origin);
  };
  const auto variable = machine.environment().find("LD_LIBRARY_PATH");
  if (variable != machine.environment().end()) {
    for (const auto folder : split(variable->second, ':')) in_folder(folder, "LD_LIBRARY_PATH");
  }
  const auto cache = files.read("/etc/ld.so.cache");
  if (cache) found.add(find_in_ld_cache(*cache, name), "ld.so.cache");
  for (const auto folder : kFolders) in_folder(folder, folder);
  return std::move(found).all();
}

std::string real_path(const machine::FileTree& files, std::string path) {
  for (int step = 0; step < 8; ++step) {
    const auto target = files.read_link(path);
    if (!target) break;
    path = target->starts_with('/') ? *target : path.substr(0, path.rfind('/') + 1) + *target;
  }
  return path;
}

std::string version_after(std::string_view path, std::string_view name) {
  const auto stem = name.substr(0, name.find(".so") + 3);
  const auto rest = after_prefix(path.substr(path.rfind('/') + 1), stem);
  const auto version = rest ? after_prefix(*rest, ".") : std::nullopt;
  const bool numbers =
      version && version->find_first_not_of("0123456789.") == std::string_view::npos;
  return numbers ? std::string(*version) : "";
}

std::string find_in_ld_cache(std::string_view cache, std::string_view name) {
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr std::size_t kHeader = 48;  // struct cache_file_new
  constexpr std::size_t kEntry = 24;   // struct file_entry_new: flags, key, value, osversion, hwcap
  const auto start = cache.find(kMagic);
  if (start == std::string_view::npos) return "";
  cache.remove_prefix(start);
  const std::size_t count = word_at(cache, kMagic.size());
  for (std::size_t i = 0; i < count && kHeader + (i + 1) * kEntry <= cache.size(); ++i) {
    const auto entry = kHeader + i * kEntry;
    if (text_at(cache, word_at(cache, entry + 4)) == name) {
      return std::string(text_at(cache, word_at(cache, entry + 8)));
    }
  }
  return "";
}

}  // namespace distdoctor::collect
