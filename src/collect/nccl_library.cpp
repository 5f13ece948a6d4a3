#include "collect/nccl_library.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "collect/processes.h"

#include <cstdint>
#include <cstring>
#include <optional>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kName = "libnccl.so.2";
constexpr std::size_t kHead = std::size_t{8} << 20;  // the text stands near the second MiB

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

// Where a chain of symbolic links ends: libnccl.so.2 -> libnccl.so.2.28.9.
std::string real_path(const machine::FileTree& files, std::string path) {
  for (int step = 0; step < 8; ++step) {
    const auto target = files.read_link(path);
    if (!target) break;
    path = target->starts_with('/') ? *target : path.substr(0, path.rfind('/') + 1) + *target;
  }
  return path;
}

std::string version_of(const machine::FileTree& files, const std::string& path) {
  const auto named = version_of_file_name(path);
  return named.empty() ? version_of_bytes(files.read_head(path, kHead).value_or("")) : named;
}

NcclLibrary library(const machine::FileTree& files, const std::string& path, std::string origin) {
  const auto real = real_path(files, path);
  return {.path = real, .version = version_of(files, real), .origin = std::move(origin)};
}

// In another mount namespace the path names another file, or none.
bool sees_our_files(const machine::FileTree& files, int pid) {
  const auto theirs = files.read_link("/proc/" + std::to_string(pid) + "/ns/mnt");
  return theirs && theirs == files.read_link("/proc/self/ns/mnt");
}

std::optional<NcclLibrary> mapped(const machine::Machine& machine) {
  for (const auto& found : find_training(machine)) {
    if (found.nccl_library.empty()) continue;
    const int pid = found.process->pid;
    auto origin = "mapped by pid " + std::to_string(pid);
    const auto& path = found.nccl_library;
    if (sees_our_files(machine.files(), pid)) return library(machine.files(), path, origin);
    return NcclLibrary{path, version_of_file_name(path), origin};
  }
  return std::nullopt;
}

std::optional<NcclLibrary> on_library_path(const machine::Machine& machine) {
  const auto variable = machine.environment().find("LD_LIBRARY_PATH");
  if (variable == machine.environment().end()) return std::nullopt;
  for (const auto folder : split(variable->second, ':')) {
    const auto path = std::string(folder) + "/" + std::string(kName);
    if (folder.starts_with('/') && machine.files().info(path)) {
      return library(machine.files(), path, "LD_LIBRARY_PATH");
    }
  }
  return std::nullopt;
}

std::optional<NcclLibrary> cached(const machine::Machine& machine) {
  const auto cache = machine.files().read("/etc/ld.so.cache");
  const auto path = cache ? find_in_ld_cache(*cache, kName) : "";
  if (path.empty()) return std::nullopt;
  return library(machine.files(), path, "ld.so.cache");
}

}  // namespace

std::string version_of_file_name(std::string_view path) {
  const auto version = after_prefix(path.substr(path.rfind('/') + 1), "libnccl.so.");
  return version && split(*version, '.').size() == 3 ? std::string(*version) : "";
}

std::string version_of_bytes(std::string_view bytes) {
  constexpr std::string_view kText = "NCCL version ";
  for (auto at = bytes.find(kText); at != std::string_view::npos; at = bytes.find(kText, at + 1)) {
    const auto rest = bytes.substr(at + kText.size(), 32);
    const auto version = rest.substr(0, rest.find_first_not_of("0123456789."));
    if (split(version, '.').size() == 3 && !version.ends_with('.')) return std::string(version);
  }
  return "";
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

// None found is an empty path: a wheel brings its own copy, which only a live process shows.
void collect_nccl_library(machine::Machine& machine,
                          const CollectRequest& /*request*/,
                          NodeFacts& node) {
  auto found = mapped(machine);
  if (!found) found = on_library_path(machine);
  if (!found) found = cached(machine);
  node.nccl_library = found.value_or(NcclLibrary{});
}

}  // namespace distdoctor::collect
