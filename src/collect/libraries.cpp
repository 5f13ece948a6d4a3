#include "collect/libraries.h"

#include "base/text.h"
#include "collect/job_world.h"
#include "collect/loader.h"

#include <cstdint>
#include <cstring>

namespace distdoctor::collect {
namespace {

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

}  // namespace

std::vector<LibraryFile> find_library(const machine::Machine& machine,
                                      std::string_view name,
                                      const JobPlaces& said) {
  const auto environment = under(said, machine.environment());
  const auto value = [&environment](const char* variable) {
    const auto found = environment.find(variable);
    return found == environment.end() ? "" : found->second;
  };
  const LoaderView view{.preload = value("LD_PRELOAD"), .library_path = value("LD_LIBRARY_PATH")};
  return loader_order(machine.files(), view, {}, name);
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

std::vector<std::string> all_in_ld_cache(std::string_view cache, std::string_view name) {
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr std::size_t kHeader = 48;  // struct cache_file_new
  constexpr std::size_t kEntry = 24;   // struct file_entry_new: flags, key, value, osversion, hwcap
  const auto start = cache.find(kMagic);
  if (start == std::string_view::npos) return {};
  cache.remove_prefix(start);
  std::vector<std::string> paths;
  const std::size_t count = word_at(cache, kMagic.size());
  for (std::size_t i = 0; i < count && kHeader + (i + 1) * kEntry <= cache.size(); ++i) {
    const auto entry = kHeader + i * kEntry;
    const bool any_processor = word_at(cache, entry + 16) == 0 && word_at(cache, entry + 20) == 0;
    if (any_processor && text_at(cache, word_at(cache, entry + 4)) == name) {
      paths.emplace_back(text_at(cache, word_at(cache, entry + 8)));
    }
  }
  return paths;
}

}  // namespace distdoctor::collect
