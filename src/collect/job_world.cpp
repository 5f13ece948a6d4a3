#include "collect/job_world.h"

#include "base/text.h"
#include "collect/processes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace distdoctor::collect {
namespace {

using machine::FileTree;

// --- Python ---

// The folder above "bin/python3"; none of a shim (pyenv), which finds out itself what it runs.
std::optional<std::string> prefix_above(std::string_view program) {
  const auto bin = program.rfind("/bin/");
  if (bin == std::string_view::npos) return std::nullopt;
  return std::string(program.substr(0, bin));
}

bool is_python(std::string_view program) {
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

std::string on_path(const FileTree& files, std::string_view path, std::string_view name) {
  for (const auto folder : split(path, ':')) {
    auto program = std::string(folder) + "/" + std::string(name);
    if (folder.starts_with('/') && files.info(program)) return program;
  }
  return "";
}

void add_packages(const FileTree& files, const std::string& prefix, std::vector<std::string>& all) {
  const auto lib = prefix + "/lib";
  for (const auto& name : files.names(lib)) {
    if (!name.starts_with("python3")) continue;
    for (const auto* kind : {"/site-packages", "/dist-packages"}) {
      auto folder = lib;
      folder.append("/").append(name).append(kind);
      const bool seen = std::ranges::find(all, folder) != all.end();
      if (!seen && files.info(folder)) all.push_back(std::move(folder));
    }
  }
}

// Value of "home = /usr/bin" in pyvenv.cfg.
std::string value_of(std::string_view text, std::string_view name) {
  for (const auto line : split_lines(text)) {
    const auto parts = split(line, '=', 2);
    if (parts.size() == 2 && trim(parts[0]) == name) return std::string(trim(parts[1]));
  }
  return "";
}

// Debian's Python looks through /usr/local first, and both through the user's own folder.
void add_system(const FileTree& files, const JobWorld& world, std::vector<std::string>& all) {
  const auto home = world.variable("HOME");
  if (home.starts_with('/')) add_packages(files, home + "/.local", all);
  add_packages(files, "/usr/local", all);
  add_packages(files, "/usr", all);
}

void add_prefix(const FileTree& files,
                const JobWorld& world,
                const std::string& prefix,
                std::vector<std::string>& all) {
  if (prefix.empty() || prefix == "/usr") return add_system(files, world, all);
  add_packages(files, prefix, all);
  const auto settings = files.read(prefix + "/pyvenv.cfg", 4096);
  if (!settings || value_of(*settings, "include-system-site-packages") != "true") return;
  const auto home = value_of(*settings, "home");
  if (home == "/usr/bin") return add_system(files, world, all);
  if (const auto base = prefix_above(home + "/")) add_packages(files, *base, all);
}

std::vector<std::string> packages_of(const FileTree& files,
                                     const JobWorld& world,
                                     const std::string& python) {
  std::vector<std::string> all;
  for (const auto folder : split(world.variable("PYTHONPATH"), ':')) {
    if (folder.starts_with('/')) all.emplace_back(folder);
  }
  if (const auto prefix = prefix_above(python)) add_prefix(files, world, *prefix, all);
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const auto prefix = world.variable(name);
    if (prefix.starts_with('/')) add_prefix(files, world, prefix, all);
  }
  if (python.empty()) add_system(files, world, all);
  return all;
}

// --- whose world ---

// Who has NCCL mapped tells most, then who has torch mapped.
int telling(const Found& found) {
  return (found.nccl_library.empty() ? 0 : 2) + (found.torch_library.empty() ? 0 : 1);
}

void note_nccl(const Found& found, bool here, JobWorld& world) {
  if (found.nccl_library.empty() || world.nccl_here || (world.nccl_pid != 0 && !here)) return;
  world.nccl_pid = found.process->pid;
  world.nccl_library = found.nccl_library;
  world.nccl_here = here;
}

std::optional<Found> rank_to_follow(const machine::Machine& machine, JobWorld& world) {
  std::optional<Found> best;
  for (const auto& found : find_training(machine)) {
    if (found.role != ProcessRole::worker) continue;
    const bool here = sees_our_files(machine.files(), found.process->pid);
    note_nccl(found, here, world);
    const bool ours = here && found.process->environment.known();
    if (ours && (!best || telling(found) > telling(*best))) best = found;
  }
  return best;
}

void follow(const FileTree& files, const Found& found, JobWorld& world, std::string& python) {
  const auto& process = *found.process;
  const auto folder = "/proc/" + std::to_string(process.pid);
  world.pid = process.pid;
  world.environment = *process.environment;
  world.loader.folder = files.read_link(folder + "/cwd").value_or("");
  world.loader.program = files.read_link(folder + "/exe").value_or("");
  world.torch_library = found.torch_library;
  // As it was started: a virtual environment's Python is a link to another one.
  const auto started = process.argv.empty() ? std::string() : process.argv[0];
  const bool bare = started.find('/') == std::string_view::npos;
  if (is_python(started) && !bare && started.starts_with('/')) python = started;
  if (is_python(started) && bare) python = on_path(files, world.variable("PATH"), started);
  if (python.empty() && is_python(world.loader.program)) python = world.loader.program;
}

void lay_over(const JobPlaces& said, const machine::Environment& own, JobWorld& world) {
  world.environment = own;
  for (const auto& [name, written] : said) {
    if (!leads_to_files(name)) continue;
    auto filled = fill_in(name, written, own);
    if (!filled.whole) world.lost.insert(name);
    world.said.insert(name);
    world.environment[name] = std::move(filled.text);
  }
}

}  // namespace

std::string JobWorld::origin(std::string_view what) const {
  if (pid != 0) return std::string(what) + ", of pid " + std::to_string(pid);
  return std::string(what) + (said.contains(std::string(what)) ? ", of the job" : "");
}

std::string JobWorld::variable(const std::string& name) const {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

machine::Environment under(const JobPlaces& said, const machine::Environment& environment) {
  JobWorld world;
  lay_over(said, environment, world);
  return std::move(world.environment);
}

JobWorld job_world(const machine::Machine& machine, const JobPlaces& said) {
  const auto& files = machine.files();
  JobWorld world;
  std::string python;
  if (const auto rank = rank_to_follow(machine, world)) {
    follow(files, *rank, world, python);
  } else {
    lay_over(said, machine.environment(), world);
  }
  world.loader.preload = world.variable("LD_PRELOAD");
  world.loader.library_path = world.variable("LD_LIBRARY_PATH");
  // A rank that is no Python program has no torch of Python's.
  const bool other = world.pid != 0 && python.empty();
  if (other) return world;
  if (python.empty()) python = on_path(files, world.variable("PATH"), "python3");
  if (world.loader.program.empty() && !python.empty()) {
    world.loader.program = real_path(files, python);
  }
  world.packages = packages_of(files, world, python);
  return world;
}

bool sees_our_files(const FileTree& files, int pid) {
  const auto theirs = files.read_link("/proc/" + std::to_string(pid) + "/ns/mnt");
  return theirs && theirs == files.read_link("/proc/self/ns/mnt");
}

}  // namespace distdoctor::collect
