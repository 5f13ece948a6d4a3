#include "collect/nccl_library.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "collect/libraries.h"
#include "collect/processes.h"

#include <optional>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kName = "libnccl.so.2";
constexpr std::size_t kHead = std::size_t{8} << 20;  // the text stands near the second MiB

std::string version_of(const machine::FileTree& files, const std::string& path) {
  const auto named = version_of_file_name(path);
  return named.empty() ? version_of_bytes(files.read_head(path, kHead).value_or("")) : named;
}

NcclLibrary library(const machine::FileTree& files, const std::string& path, std::string origin) {
  return {.path = path, .version = version_of(files, path), .origin = std::move(origin)};
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
    if (sees_our_files(machine.files(), pid))
      return library(machine.files(), real_path(machine.files(), path), origin);
    return NcclLibrary{path, version_of_file_name(path), origin};
  }
  return std::nullopt;
}

std::optional<NcclLibrary> installed(const machine::Machine& machine) {
  const auto found = find_library(machine, kName);
  if (found.empty()) return std::nullopt;
  return library(machine.files(), found.front().path, found.front().origin);
}

}  // namespace

std::string version_of_file_name(std::string_view path) {
  const auto version = version_after(path, kName);
  return split(version, '.').size() == 3 ? version : "";
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

// None found is an empty path: a wheel brings its own copy, which only a live process shows.
void collect_nccl_library(machine::Machine& machine,
                          const CollectRequest& /*request*/,
                          NodeFacts& node) {
  auto found = mapped(machine);
  if (!found) found = installed(machine);
  node.nccl_library = found.value_or(NcclLibrary{});
}

}  // namespace distdoctor::collect
