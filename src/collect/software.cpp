#include "collect/software.h"

#include "base/secrets.h"
#include "base/text.h"
#include "collect/collectors.h"
#include "collect/job_world.h"
#include "collect/nccl_library.h"
#include "collect/settings.h"
#include "collect/torch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <ranges>
#include <utility>

namespace distdoctor::collect {
namespace {

using machine::FileTree;

constexpr std::size_t kMostText = std::size_t{256} << 10;
constexpr std::size_t kMostConstants = std::size_t{4} << 20;
constexpr std::size_t kBeginning = 80;
constexpr std::size_t kMostNames = 16;  // of plugins, as NCCL takes; of preloaded libraries
constexpr std::string_view kBlanks = " \t\r\n";

struct Kind {
  const char* name;
  const char* variable;
  const char* symbols;
};
constexpr std::array kKinds = {Kind{"net", "NCCL_NET_PLUGIN", "ncclNetPlugin_v"},
                               Kind{"tuner", "NCCL_TUNER_PLUGIN", "ncclTunerPlugin_v"},
                               Kind{"profiler", "NCCL_PROFILER_PLUGIN", "ncclProfiler_v"}};

// A rank's environment, or else ours under what the job says, before NCCL's files.
class Variables {
 public:
  Variables(const machine::Machine& machine, const JobPlaces& said, const JobWorld& world)
      : world_(world), settings_(read_settings(machine, said)) {}

  // The job sets it to what nobody but its shell knows.
  [[nodiscard]] bool lost(const std::string& name) const { return world_.lost.contains(name); }

  [[nodiscard]] std::string value(const std::string& name) const {
    const auto own = world_.environment.find(name);
    if (own != world_.environment.end()) return own->second;
    const auto found = settings_.find(name);
    const bool of_file =
        found != settings_.end() && found->second.origin.source >= Source::user_config;
    return of_file ? found->second.value : "";
  }

 private:
  const JobWorld& world_;
  Settings settings_;
};

// --- plugins ---

// Who opens a plugin: NCCL, which torch has loaded, which the program has loaded.
std::vector<Loaded> plugin_chain(const FileTree& files,
                                 const std::vector<NcclLibrary>& nccl,
                                 const Torch& torch,
                                 const JobWorld& world) {
  std::vector<Loaded> chain;
  if (!nccl.empty()) {
    if (auto object = loaded(files, nccl.front().path)) chain.push_back(*std::move(object));
  }
  chain.insert(chain.end(), torch.asks.begin(), torch.asks.end());
  if (torch.asks.empty()) {
    if (auto program = loaded(files, world.loader.program)) chain.push_back(*std::move(program));
  }
  return chain;
}

int version_number(std::string_view symbol) {
  return parse_int<int>(symbol.substr(symbol.rfind('v') + 1)).value_or(0);
}

NcclPlugin describe(const FileTree& files, const LibraryFile& file, const Kind& kind) {
  const auto part = parts_of(files, file.path);
  NcclPlugin plugin{.path = file.path, .kind = kind.name};
  plugin.exports = exported_symbols(part, kind.symbols);
  std::erase_if(plugin.exports,
                [](const std::string& symbol) { return version_number(symbol) == 0; });
  std::ranges::sort(plugin.exports, std::ranges::greater{}, version_number);
  if (const auto constants = find_section(part, ".rodata")) {
    const auto size = std::min<std::uint64_t>(constants->size, kMostConstants);
    plugin.version = parse_plugin_version(part(constants->offset, static_cast<std::size_t>(size)));
  }
  return plugin;
}

class Plugins {
 public:
  Plugins(const FileTree& files,
          const JobWorld& world,
          const Variables& variables,
          std::vector<Loaded> chain,
          Software& software)
      : files_(files),
        world_(world),
        variables_(variables),
        chain_(std::move(chain)),
        software_(software) {}

  void look_for(const Kind& kind) {
    if (variables_.lost(kind.variable)) return;
    const auto named = variables_.value(kind.variable);
    if (named.empty()) {
      add(kind, "", world_.origin(std::string("default of ") + kind.variable));
      return;
    }
    for (const auto word : split(named, ',') | std::views::take(kMostNames)) {
      if (!word.empty() && to_lower(word) != "none") add(kind, word, kind.variable);
    }
  }

 private:
  void add(const Kind& kind, std::string_view word, const std::string& because) {
    const bool relative = word.find('/') != std::string_view::npos && !word.starts_with('/');
    if (relative && world_.loader.folder.empty()) return;  // only the job knows its folder
    for (const auto& name : plugin_file_names(word, kind.name)) {
      const auto found = loader_order(files_, world_.loader, chain_, name);
      if (found.empty()) continue;
      auto plugin = describe(files_, found.front(), kind);
      plugin.origin = word.empty() ? world_.origin(found.front().origin)
                                   : because + ", " + world_.origin(found.front().origin);
      note(kind, word, plugin.path, 0);
      software_.plugins.push_back(std::move(plugin));
      return;
    }
    note(kind, word, mask_value(word), ENOENT);
  }
  void note(const Kind& kind, std::string_view word, std::string path, int error) {
    if (word.empty()) return;
    software_.named_files.push_back(
        {.variable = kind.variable, .path = std::move(path), .error = error});
  }

  const FileTree& files_;
  const JobWorld& world_;
  const Variables& variables_;
  std::vector<Loaded> chain_;
  Software& software_;
};

// --- files that variables name ---

NamedFile look_at(const FileTree& files, const std::string& variable, const std::string& path) {
  NamedFile file{.variable = variable, .path = path};
  const auto info = files.info(path);
  // fopen(3) opens a folder, too; then NCCL reads nothing.
  if (info && info->directory) return file;
  const auto head = files.read_head(path, kBeginning);
  if (!head) {
    file.error = head.error().errno_value != 0 ? head.error().errno_value : EINVAL;
    return file;
  }
  file.bytes = info ? info->size : static_cast<std::int64_t>(head->size());
  file.begins = beginning(*head);
  return file;
}

void add_named_files(const FileTree& files,
                     const JobWorld& world,
                     const Variables& variables,
                     Software& software) {
  for (const auto* name : {"NCCL_TOPO_FILE", "NCCL_GRAPH_FILE", "NCCL_CONF_FILE"}) {
    auto path = variables.value(name);
    if (path.empty()) continue;
    // A relative path is one of the rank's own folder.
    const bool relative = !path.starts_with('/');
    if (relative && world.loader.folder.empty()) continue;
    auto file = look_at(files, name, relative ? world.loader.folder + "/" + path : path);
    file.path = mask_value(path);
    software.named_files.push_back(std::move(file));
  }
  for (const auto& entry : preload_entries(world.loader.preload) | std::views::take(kMostNames)) {
    const auto found = loader_order(files, {.library_path = world.loader.library_path}, {}, entry);
    software.named_files.push_back(
        {.variable = "LD_PRELOAD", .path = mask_value(entry), .error = found.empty() ? ENOENT : 0});
  }
}

// --- packages ---

std::string ofed_of(const FileTree& files) {
  const auto script = files.read_head("/usr/bin/ofed_info", kMostText);
  if (script) return parse_ofed_info(*script);
  // A container has none; a driver from outside the kernel's own tree says its version.
  const auto driver = files.word("/sys/module/mlx5_core/version");
  return driver.empty() ? "" : "mlx5_core " + driver;
}

std::string libfabric_of(const FileTree& files, const JobWorld& world, const Software& software) {
  std::vector<Loaded> asks;
  for (const auto& plugin : software.plugins) {
    if (plugin.kind != "net") continue;
    if (auto object = loaded(files, plugin.path)) asks.push_back(*std::move(object));
    break;
  }
  const auto found = loader_order(files, world.loader, asks, "libfabric.so.1");
  if (!found.empty()) return found.front().path;
  for (const auto* folder : {"/opt/amazon/efa/lib64", "/opt/amazon/efa/lib"}) {
    auto path = std::string(folder) + "/libfabric.so.1";
    if (files.info(path)) return path;
  }
  return "";
}

std::string cuda_of(const FileTree& files, const JobWorld& world) {
  for (const auto& folder :
       {world.variable("CUDA_HOME"), world.variable("CUDA_PATH"), std::string("/usr/local/cuda")}) {
    if (!folder.starts_with('/')) continue;
    const auto text = files.read(folder + "/version.json", kMostText);
    if (text) return parse_cuda_toolkit(*text);
  }
  return "";
}

// The word from `prefix` on, up to a blank, a quote or a colon.
std::string word_from(std::string_view text, std::string_view prefix) {
  const auto at = text.find(prefix);
  if (at == std::string_view::npos) return "";
  const auto rest = text.substr(at);
  return std::string(rest.substr(0, rest.find_first_of(" \t\r\n\"':;)(")));
}

}  // namespace

std::vector<std::string> plugin_file_names(std::string_view word, std::string_view kind) {
  const auto prefix = "libnccl-" + std::string(kind);
  if (word.empty()) return {prefix + ".so"};
  const bool whole = word.starts_with("lib") && word.ends_with(".so");
  if (whole || word.find('/') != std::string_view::npos) return {std::string(word)};
  return {std::string(word), prefix + "-" + std::string(word) + ".so"};
}

std::string parse_plugin_version(std::string_view constants) {
  constexpr std::string_view kName = "aws-ofi-nccl ";
  for (auto at = constants.find(kName); at != std::string_view::npos;
       at = constants.find(kName, at + 1)) {
    const auto rest = constants.substr(at + kName.size(), 32);
    const auto version =
        rest.substr(0, rest.find_first_not_of("0123456789.abcdefghijklmnopqrstuvwxyz-"));
    if (!version.empty() && version[0] >= '0' && version[0] <= '9') {
      return std::string(kName) + std::string(version);
    }
  }
  return "";
}

std::string parse_ofed_info(std::string_view script) {
  for (const auto* name : {"MLNX_OFED_LINUX-", "OFED-internal-", "DOCA-OFED-"}) {
    auto word = word_from(script, name);
    if (word.size() > std::string_view(name).size()) return word;
  }
  return "";
}

std::string parse_efa_installer(std::string_view text) {
  for (const auto line : split_lines(text)) {
    const auto at = line.find("EFA installer version:");
    if (at != std::string_view::npos) return std::string(trim(line.substr(line.rfind(':') + 1)));
  }
  return "";
}

std::string parse_cuda_toolkit(std::string_view json) {
  const auto part = json.find("\"cuda\"");
  if (part == std::string_view::npos) return "";
  const auto at = json.find("\"version\"", part);
  if (at == std::string_view::npos) return "";
  const auto parts = split(json.substr(at), '"', 5);  // |version| : |12.4.1|...
  return parts.size() < 5 ? "" : std::string(parts[3]);
}

std::string beginning(std::string_view head) {
  constexpr std::string_view kLibrary =
      "\x7f"
      "ELF";
  head = head.substr(0, kBeginning);
  if (head.starts_with(kLibrary)) return std::string(kLibrary);
  const auto first = head.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  constexpr std::string_view kMark = "\xef\xbb\xbf<";  // UTF-8's byte order mark
  const bool xml = head[first] == '<' || head.substr(first).starts_with(kMark);
  std::string text(head.substr(first, xml ? kBeginning : 1));
  std::ranges::replace_if(
      text, [](char c) { return kBlanks.find(c) != std::string_view::npos; }, ' ');
  return printable(text);
}

void collect_software(machine::Machine& machine, const CollectRequest& request, NodeFacts& node) {
  const auto& files = machine.files();
  const auto world = job_world(machine, request.settings);
  if (world.pid == 0 && world.nccl_pid != 0) {
    node.software = Unknown{.kind = Why::unsupported,
                            .text = "pid " + std::to_string(world.nccl_pid) +
                                    " lives among other files (a container): --pid looks there"};
    return;
  }
  const auto torch = find_torch(files, world);
  const Variables variables(machine, request.settings, world);
  Software software{.nccl = nccl_copies(files, world, torch),
                    .torch = torch.about.version,
                    .torch_path = torch.folder,
                    .torch_cuda = torch.about.cuda,
                    .torch_hip = torch.about.hip,
                    .ofed = ofed_of(files),
                    .cuda = cuda_of(files, world)};
  Plugins plugins(files, world, variables, plugin_chain(files, software.nccl, torch, world),
                  software);
  for (const auto& kind : kKinds) plugins.look_for(kind);
  add_named_files(files, world, variables, software);
  software.libfabric = libfabric_of(files, world, software);
  software.efa =
      parse_efa_installer(files.read_head("/opt/amazon/efa_installed_packages", 4096).value_or(""));
  node.software = std::move(software);
}

}  // namespace distdoctor::collect
