#include "collect/nccl_library.h"

#include "base/text.h"
#include "collect/collectors.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <utility>

namespace distdoctor::collect {
namespace {

using machine::FileTree;

constexpr std::string_view kName = "libnccl.so.2";
constexpr std::string_view kText = "NCCL version ";
constexpr std::size_t kLongestBuild = 32;  // "2.28.9+cuda13.0" and what ends it
constexpr std::size_t kMostCopies = 16;
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr std::uint64_t kMostConstants = std::uint64_t{64} << 20;  // libtorch_cuda.so has as many

// --- its version ---

// Among the constants of a library, block by block; the text may lie across two.
NcclBuild build_of_constants(const ReadPart& part, const ElfSection& constants) {
  const auto end = constants.offset + std::min(constants.size, kMostConstants);
  std::string rest;
  for (auto at = constants.offset; at < end;) {
    const auto block =
        part(at, static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, end - at)));
    if (block.empty()) break;
    rest += block;
    if (auto build = build_of_bytes(rest); !build.version.empty()) return build;
    rest = rest.substr(rest.size() - std::min(rest.size(), kText.size() + kLongestBuild));
    at += block.size();
  }
  return {};
}

NcclBuild build_of(const FileTree& files, const std::string& path) {
  if (auto named = version_of_file_name(path); !named.empty()) return {.version = named};
  const auto part = parts_of(files, path);
  if (const auto constants = find_section(part, ".rodata")) {
    return build_of_constants(part, *constants);
  }
  return build_of_bytes(files.read_head(path, 2 * kBlock).value_or(""));
}

NcclLibrary library(const FileTree& files, const std::string& path, std::string origin) {
  auto [version, cuda] = build_of(files, path);
  return {.path = path,
          .version = std::move(version),
          .origin = std::move(origin),
          .cuda = std::move(cuda)};
}

// --- where it lies ---

std::optional<NcclLibrary> mapped(const FileTree& files, const JobWorld& world) {
  const auto& path = world.nccl_library;
  if (path.empty()) return std::nullopt;
  auto origin = "mapped by pid " + std::to_string(world.nccl_pid);
  if (world.nccl_here) return library(files, real_path(files, path), std::move(origin));
  return NcclLibrary{
      .path = path, .version = version_of_file_name(path), .origin = std::move(origin)};
}

// "2.21.5" and "12" of "nvidia_nccl_cu12-2.21.5.dist-info" beside the package.
NcclBuild build_of_wheel(const std::vector<std::string>& packages) {
  for (const auto& name : packages) {
    const auto info = before_suffix(name, ".dist-info");
    const auto rest = info ? after_prefix(*info, "nvidia_nccl_cu") : std::nullopt;
    if (!rest) continue;
    return {.version = std::string(rest->substr(rest->rfind('-') + 1)),
            .cuda = std::string(rest->substr(0, rest->find('-')))};
  }
  return {};
}

std::vector<NcclLibrary> wheels(const FileTree& files, const JobWorld& world) {
  std::vector<NcclLibrary> all;
  for (const auto& packages : world.packages) {
    const auto path = packages + "/nvidia/nccl/lib/" + std::string(kName);
    if (!files.info(path)) continue;
    auto build = build_of_wheel(files.names(packages));
    if (build.version.empty()) build = build_of(files, path);
    all.push_back({.path = path,
                   .version = std::move(build.version),
                   .origin = world.origin("wheel in " + packages),
                   .cuda = std::move(build.cuda)});
  }
  return all;
}

// A torch whose CUDA library asks for no libnccl has it inside, or was built without.
std::optional<NcclLibrary> inside_torch(const FileTree& files,
                                        const JobWorld& world,
                                        const Torch& torch) {
  if (torch.library.empty() || !torch.asks.empty()) return std::nullopt;
  auto inside = library(files, torch.library, world.origin("inside libtorch_cuda.so"));
  return inside.version.empty() ? std::nullopt : std::optional(std::move(inside));
}

std::vector<NcclLibrary> by_loader(const FileTree& files,
                                   const JobWorld& world,
                                   const std::vector<Loaded>& asks) {
  std::vector<NcclLibrary> all;
  for (const auto& file :
       loader_order(files, world.loader, asks, kName) | std::views::take(kMostCopies)) {
    all.push_back(library(files, file.path, world.origin(file.origin)));
  }
  return all;
}

void append(std::vector<NcclLibrary> more, std::vector<NcclLibrary>& all) {
  for (auto& one : more) {
    const auto seen = std::ranges::find(all, one.path, &NcclLibrary::path);
    if (seen == all.end()) {
      all.push_back(std::move(one));
      continue;
    }
    if (seen->version.empty()) seen->version = std::move(one.version);
    if (seen->cuda.empty()) seen->cuda = std::move(one.cuda);
  }
}

}  // namespace

std::string version_of_file_name(std::string_view path) {
  const auto version = version_after(path, kName);
  return split(version, '.').size() == 3 ? version : "";
}

NcclBuild build_of_bytes(std::string_view bytes) {
  constexpr std::string_view kNumber = "0123456789.";
  const auto number_of = [&](std::string_view text) {
    return text.substr(0, text.find_first_not_of(kNumber));
  };
  for (auto at = bytes.find(kText); at != std::string_view::npos; at = bytes.find(kText, at + 1)) {
    const auto rest = bytes.substr(at + kText.size(), kLongestBuild);
    const auto version = number_of(rest);
    if (split(version, '.').size() != 3 || version.ends_with('.')) continue;
    const auto behind = after_prefix(rest.substr(version.size()), "+cuda").value_or("");
    return {.version = std::string(version), .cuda = std::string(number_of(behind))};
  }
  return {};
}

std::vector<NcclLibrary> nccl_copies(const machine::FileTree& files,
                                     const JobWorld& world,
                                     const Torch& torch) {
  std::vector<NcclLibrary> all;
  if (auto one = mapped(files, world)) all.push_back(*std::move(one));
  if (auto one = inside_torch(files, world, torch)) all.push_back(*std::move(one));
  auto asks = torch.asks;
  const bool by_torch = !asks.empty();
  if (!by_torch) {
    // Whatever else asks for it in Python (JAX, CuPy) brings its own way to the wheel.
    append(wheels(files, world), all);
    if (auto program = loaded(files, world.loader.program)) asks.push_back(*std::move(program));
  }
  append(by_loader(files, world, asks), all);
  if (by_torch) append(wheels(files, world), all);
  return all;
}

// None found is an empty path. What a job would load is sure only once it has: then it is mapped.
void collect_nccl_library(machine::Machine& machine,
                          const CollectRequest& request,
                          NodeFacts& node) {
  const auto world = job_world(machine, request.settings);
  const auto all = nccl_copies(machine.files(), world, find_torch(machine.files(), world));
  node.nccl_library = all.empty() ? NcclLibrary{} : all.front();
}

}  // namespace distdoctor::collect
