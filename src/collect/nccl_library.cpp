#include "collect/nccl_library.h"

#include "base/text.h"
#include "collect/collectors.h"
#include "collect/libraries.h"
#include "collect/processes.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

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

// --- wheels ---

// "2.21.5" of "nvidia_nccl_cu12-2.21.5.dist-info" beside the package.
std::string version_of_wheel(const std::vector<std::string>& packages) {
  for (const auto& name : packages) {
    const auto info = before_suffix(name, ".dist-info");
    if (!info || !info->starts_with("nvidia_nccl_cu")) continue;
    return std::string(info->substr(info->rfind('-') + 1));
  }
  return "";
}

// PyTorch's wheels find the NCCL of its own wheel by DT_RPATH, before LD_LIBRARY_PATH counts.
std::optional<NcclLibrary> in_environment(const machine::FileTree& files,
                                          const std::string& prefix,
                                          std::string origin) {
  const auto lib = prefix + "/lib";
  for (const auto& name : files.names(lib)) {
    if (!name.starts_with("python3")) continue;
    const auto packages = lib + "/" + name + "/site-packages";
    const auto path = packages + "/nvidia/nccl/lib/" + std::string(kName);
    if (!files.info(path)) continue;
    auto version = version_of_wheel(files.names(packages));
    if (version.empty()) version = version_of(files, path);
    return NcclLibrary{path, std::move(version), std::move(origin)};
  }
  return std::nullopt;
}

std::string named(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto found = environment.find(name);
    if (found != environment.end() && found->second.starts_with('/')) return found->second;
  }
  return "";
}

// "/opt/venv" of "/opt/venv/bin/python3"; the system's own Python has no wheels in there.
std::string prefix_of(const machine::Process& process) {
  const std::string_view program = process.argv.empty() ? std::string_view() : process.argv[0];
  const auto bin = program.rfind("/bin/python");
  const bool own = program.starts_with('/') && bin != std::string_view::npos && bin > 0 &&
                   !program.starts_with("/usr/bin/");
  if (own) return std::string(program.substr(0, bin));
  return process.environment.known() ? named(*process.environment) : "";
}

std::optional<NcclLibrary> wheel(const machine::Machine& machine) {
  const auto& files = machine.files();
  for (const auto& found : find_training(machine)) {
    const auto& process = *found.process;
    const auto prefix = prefix_of(process);
    if (prefix.empty() || !sees_our_files(files, process.pid)) continue;
    auto origin = "wheel in " + prefix + ", of pid " + std::to_string(process.pid);
    if (auto library = in_environment(files, prefix, std::move(origin))) return library;
  }
  const auto own = named(machine.environment());
  return own.empty() ? std::nullopt : in_environment(files, own, "wheel in " + own);
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

// None found is an empty path. What a job would load is sure only once it has: then it is mapped.
void collect_nccl_library(machine::Machine& machine,
                          const CollectRequest& /*request*/,
                          NodeFacts& node) {
  auto found = mapped(machine);
  if (!found) found = wheel(machine);
  if (!found) found = installed(machine);
  node.nccl_library = found.value_or(NcclLibrary{});
}

}  // namespace distdoctor::collect
