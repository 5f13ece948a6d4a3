#include "collect/torch.h"

#include "base/text.h"

#include <algorithm>
#include <utility>

namespace distdoctor::collect {
namespace {

constexpr std::string_view kNccl = "libnccl.so.2";
constexpr std::size_t kMostText = std::size_t{64} << 10;

// 'text' or "text"; None is "".
std::string unquoted(std::string_view value) {
  value = trim(value);
  if (value.size() < 2 || (value.front() != '\'' && value.front() != '"')) return "";
  const auto end = value.find(value.front(), 1);
  return end == std::string_view::npos ? "" : std::string(value.substr(1, end - 1));
}

// "cuda: Optional[str] = '12.8'" is the value of "cuda".
std::string assigned(std::string_view text, std::string_view name) {
  for (const auto line : split_lines(text)) {
    const auto rest = after_prefix(line, name);
    if (!rest || rest->empty() || (rest->front() != ' ' && rest->front() != ':')) continue;
    const auto equals = rest->find('=');
    if (equals != std::string_view::npos) return unquoted(rest->substr(equals + 1));
  }
  return "";
}

// "/venv/.../torch" of "/venv/.../torch/lib/libtorch_cpu.so".
std::string folder_of_mapped(std::string_view library) {
  constexpr std::string_view kWithin = "/torch/lib/";
  const auto at = library.rfind(kWithin);
  return at == std::string_view::npos ? "" : std::string(library.substr(0, at)) + "/torch";
}

bool add_version(const machine::FileTree& files, const std::string& folder, Torch& torch) {
  const auto text = files.read(folder + "/version.py", kMostText);
  if (!text) return false;
  torch.folder = folder;
  torch.about = parse_torch_version(*text);
  return true;
}

bool asks_for_nccl(const Loaded& object) {
  return std::ranges::find(object.elf.needed, kNccl) != object.elf.needed.end();
}

// The one that is mapped, or else the first that Python finds.
bool find_folder(const machine::FileTree& files, const JobWorld& world, Torch& torch) {
  const auto mapped = folder_of_mapped(world.torch_library);
  if (!mapped.empty() && add_version(files, mapped, torch)) return true;
  return std::ranges::any_of(world.packages, [&](const std::string& packages) {
    return add_version(files, packages + "/torch", torch);
  });
}

// The first library of them that asks for NCCL is who loads it.
void look_at(const machine::FileTree& files, const std::string& name, Torch& torch) {
  const auto path = torch.folder + "/lib/" + name;
  auto object = loaded(files, path);
  if (!object) return;
  const bool cuda = name.find("cuda") != std::string::npos;
  if (cuda && torch.library.empty()) torch.library = path;
  if (torch.asks.empty() && asks_for_nccl(*object)) torch.asks.push_back(*std::move(object));
}

}  // namespace

TorchVersion parse_torch_version(std::string_view text) {
  return {.version = assigned(text, "__version__"),
          .cuda = assigned(text, "cuda"),
          .hip = assigned(text, "hip")};
}

Torch find_torch(const machine::FileTree& files, const JobWorld& world) {
  Torch torch;
  if (!find_folder(files, world, torch)) return torch;
  for (const auto* name : {"libtorch_cuda.so", "libtorch_cuda_cpp.so", "libtorch_python.so"}) {
    look_at(files, name, torch);
  }
  auto program = loaded(files, world.loader.program);
  if (!torch.asks.empty() && program) torch.asks.push_back(*std::move(program));
  return torch;
}

}  // namespace distdoctor::collect
