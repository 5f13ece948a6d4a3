#include "rules/launch/command_reader.h"

#include "base/job_places.h"
#include "base/secrets.h"
#include "base/text.h"
#include "rules/launch/script_walk.h"
#include "rules/launch/settings.h"

#include <algorithm>
#include <array>
#include <span>

namespace distdoctor::rules {
namespace {

constexpr int kDeepest = 12;
constexpr int kMostFiles = 16;
constexpr int kMostCommands = 20'000;
constexpr std::size_t kMostNotes = 32;
constexpr std::size_t kLargestScript = std::size_t{1} << 20U;

constexpr FlagTable kPythonFlags = {.one = "W X m c check_hash_based_pycs", .glued = "WXmc"};
constexpr FlagTable kBashFlags = {.one = "O o rcfile init_file"};
constexpr FlagTable kEnvFlags = {.one = "u unset C chdir S split_string"};

// Programs that run another one; how many words of their own stand between, after their flags.
struct Wrapper {
  std::string_view name;
  FlagTable flags = {};
  std::size_t words = 0;
};
constexpr std::array<Wrapper, 16> kWrappers = {{
    {.name = "nohup"},
    {.name = "time", .flags = {.one = "f format o output"}},
    {.name = "timeout", .flags = {.one = "k kill_after s signal"}, .words = 1},
    {.name = "stdbuf", .flags = {.one = "i o e input output error", .glued = "ioe"}},
    {.name = "nice", .flags = {.one = "n adjustment", .glued = "n"}},
    {.name = "ionice", .flags = {.one = "c n class classdata", .glued = "cn"}},
    {.name = "numactl",
     .flags = {.one = "N m C i p cpunodebind membind physcpubind interleave preferred",
               .glued = "NmCip"}},
    {.name = "taskset", .words = 1},
    {.name = "sudo", .flags = {.one = "u user g group"}},
    {.name = "setsid"},
    {.name = "exec", .flags = {.one = "a"}},
    {.name = "command"},
    {.name = "unbuffer"},
    {.name = "catchsegv"},
    {.name = "ccrun"},
    {.name = "eatmydata"},
}};
// Containers and profilers: their own flags are many, so the launcher is looked for behind them.
constexpr std::array<std::string_view, 11> kSearched = {
    "apptainer", "singularity", "docker", "podman", "enroot", "nsys",
    "ncu",       "conda",       "uv",     "poetry", "pipenv"};
constexpr std::array<std::string_view, 6> kShells = {"bash", "sh", "dash", "zsh", "ksh", "ash"};

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

bool is_python(std::string_view program) {
  const auto version = after_prefix(program, "python");
  return version && version->find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_shell(std::string_view program) {
  return std::ranges::find(kShells, program) != kShells.end();
}

bool is_launcher(std::string_view program) {
  constexpr std::array<std::string_view, 9> kLaunchers = {"torchrun", "accelerate", "deepspeed",
                                                          "srun",     "mpirun",     "mpiexec",
                                                          "orterun",  "prterun",    "sbatch"};
  return std::ranges::find(kLaunchers, program) != kLaunchers.end() || is_python(program) ||
         is_shell(program) || program == "mpiexec.hydra" || program == "salloc";
}

bool is_script_name(std::string_view path) {
  constexpr std::array<std::string_view, 5> kEndings = {".sh", ".bash", ".sbatch", ".slurm",
                                                        ".job"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return path.ends_with(end); });
}

bool assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  return word.substr(0, equals).find_first_of("-./ $") == std::string_view::npos;
}

void set_exported(Scope& scope, std::string_view pair, const std::string& where) {
  const auto parts = split(pair, '=', 2);
  scope.variables[std::string(parts[0])] = {
      .value = std::string(parts.back()), .exported = true, .where = where};
}

// Which GPUs a command sees: that of another one in the script says nothing of the ranks.
constexpr std::array<std::string_view, 4> kDeviceLists = {
    "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES"};

bool is_device_list(std::string_view name) {
  return std::ranges::find(kDeviceLists, name) != kDeviceLists.end();
}

// `python eval.py` behind the torchrun of a script starts no ranks; below srun or mpirun it does.
bool stands_beside_ranks(const std::vector<Launch>& launches) {
  const auto count = launches.size();
  if (count < 2 || launches.back().kind != LauncherKind::python) return false;
  if (launches.back().under_srun || launches[count - 2].kind == LauncherKind::mpirun) return false;
  return std::ranges::any_of(launches, [](const Launch& launch) {
    return launch.kind != LauncherKind::python && launch.kind != LauncherKind::script;
  });
}

std::string first_script(const Words& argv, std::size_t from) {
  return from < argv.size() ? as_written(argv[from]) : std::string();
}

}  // namespace

void CommandReader::note(const std::string& text) {
  if (reading_.notes.size() < kMostNotes) reading_.notes.push_back(printable(mask_value(text)));
}

void CommandReader::branch(std::string_view program, const std::string& where) {
  const std::string name(base_name(as_written(program)));
  if (is_launcher(name)) note(where + ": " + name + " stands in a branch, not read");
}

std::optional<std::string> CommandReader::file(const std::string& path) {
  if (++files_ > kMostFiles) return std::nullopt;
  auto text = read_ ? read_(path) : std::nullopt;
  if (!text) {
    note(path + ": cannot be read");
    return std::nullopt;
  }
  if (text->size() > kLargestScript || text->contains('\0')) {
    note(path + ": is no shell script, or larger than 1 MiB");
    return std::nullopt;
  }
  return without_marks(*text);
}

void CommandReader::forget(const std::string& name) {
  for (Settings* map :
       {&reading_.settings, &reading_.fallbacks, &reading_.unresolved, &reading_.each_task}) {
    map->erase(name);
  }
}

void CommandReader::say(const std::string& name,
                        std::string_view value,
                        const Place& place,
                        bool fallback) {
  const auto known = resolved(value);
  forget(name);
  Settings& map = !known ? reading_.unresolved : fallback ? reading_.fallbacks : reading_.settings;
  // What may leave by its name may still hold a password: a proxy's, one in a command substitution.
  map[name] = {.value = mask_value(as_written(value)),
               .origin = {.source = Source::command_line, .where = place.where}};
  if (value.contains(kTaskMark) && !value.contains(kOuterMark)) {
    reading_.each_task[name] = map[name];
  }
}

void CommandReader::harvest(const Scope& environment) {
  harvested_ = true;
  const bool beside = stands_beside_ranks(reading_.launches);
  for (const std::string_view name : kDeviceLists) {
    if (!beside) forget(std::string(name));
  }
  for (const auto& [name, variable] : environment.variables) {
    if (!variable.exported || !(may_leave_a_process(name) || leads_to_files(name))) continue;
    if (beside && is_device_list(name)) continue;
    say(name, variable.value, {.where = variable.where}, variable.fallback);
  }
}

void CommandReader::add(Launch launch, const Place& place) {
  launch.origin = {.source = Source::command_line, .where = place.where};
  launch.in_batch_script = place.in_batch;
  launch.under_srun = place.under_srun;
  for (std::string* text : {&launch.node_rank_text, &launch.rdzv_endpoint, &launch.rdzv_id,
                            &launch.master_addr, &launch.master_port, &launch.script}) {
    *text = mask_value(*text);
  }
  reading_.launches.push_back(std::move(launch));
}

void CommandReader::script(std::string_view text,
                           const std::string& path,
                           Place place,
                           Scope scope) {
  if (place.depth++ > kDeepest) return;
  ScriptWalk(*this, path, std::move(place), std::move(scope)).run(text);
}

void CommandReader::command(const Words& argv, Place place, Scope environment) {
  if (argv.empty() || place.depth++ > kDeepest || ++commands_ > kMostCommands) return;
  const std::string program(base_name(argv.front()));
  if (assignment(argv.front())) {
    Words with_env = argv;
    with_env.insert(with_env.begin(), "env");
    env(with_env, place, environment);
  } else if (program == "env") {
    env(argv, place, environment);
  } else if (wrapper(program, argv, place, environment)) {
    return;
  } else if (is_shell(program)) {
    bash(argv, std::move(place), std::move(environment));
  } else if (is_python(program)) {
    python(argv, std::move(place), std::move(environment));
  } else if (!launcher(program, argv, place, environment)) {
    if (is_script_name(program)) script_file(argv, 0, std::move(place), std::move(environment));
  }
}

bool CommandReader::wrapper(std::string_view program,
                            const Words& argv,
                            Place& place,
                            Scope& environment) {
  const auto* const found = std::ranges::find(kWrappers, program, &Wrapper::name);
  if (found != kWrappers.end()) {
    run_rest(argv, read_flags(argv, found->flags).rest + found->words, place, environment);
    return true;
  }
  if (std::ranges::find(kSearched, program) == kSearched.end()) return false;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const bool gives_env = argv[i - 1] == "-e" || argv[i - 1] == "--env";
    if (gives_env && assignment(argv[i])) set_exported(environment, argv[i], place.where);
    if (!is_launcher(base_name(argv[i]))) continue;
    run_rest(argv, i, place, environment);
    break;
  }
  return true;
}

void CommandReader::run_rest(const Words& argv, std::size_t from, Place place, Scope environment) {
  if (from >= argv.size()) return;
  command({argv.begin() + static_cast<std::ptrdiff_t>(from), argv.end()}, std::move(place),
          std::move(environment));
}

void CommandReader::env(const Words& argv, Place& place, Scope& environment) {
  const Flags flags = read_flags(argv, kEnvFlags);
  if (flags.has("i") || flags.has("ignore_environment")) environment.variables.clear();
  for (const auto& [name, value] : flags.given) {
    if (name == "u" || name == "unset") environment.variables.erase(value);
  }
  std::size_t at = flags.rest;
  while (at < argv.size() && assignment(argv[at])) {
    set_exported(environment, argv[at++], place.where);
  }
  if (at >= argv.size()) {
    harvest(environment);
  } else {
    run_rest(argv, at, place, environment);
  }
}

void CommandReader::bash(const Words& argv, Place place, Scope environment) {
  const Flags flags = read_flags(argv, kBashFlags);
  // -c may stand in a bundle: -lc, -euc.
  const bool text = std::ranges::any_of(flags.given, [](const auto& flag) {
    return flag.first.ends_with('c') && flag.first.size() <= 4 && flag.second.empty();
  });
  if (flags.rest >= argv.size()) return;
  if (!text) {
    script_file(argv, flags.rest, std::move(place), std::move(environment));
    return;
  }
  environment.arguments.clear();
  if (flags.rest + 2 <= argv.size()) {
    const auto first = argv.begin() + static_cast<std::ptrdiff_t>(flags.rest) + 1;
    if (first != argv.end()) environment.arguments = {first + 1, argv.end()};
  }
  script(argv[flags.rest], "", std::move(place), std::move(environment));
}

void CommandReader::script_file(const Words& argv, std::size_t at, Place place, Scope environment) {
  const auto path = resolved(argv[at]);
  if (!path) return;
  const auto text = file(*path);
  if (!text) return;
  add({.kind = LauncherKind::script, .script = *path}, place);
  environment.arguments = {argv.begin() + static_cast<std::ptrdiff_t>(at) + 1, argv.end()};
  script(*text, *path, std::move(place), std::move(environment));
}

void CommandReader::python(const Words& argv, Place place, Scope environment) {
  // The words of a module begin right behind its name, whatever they look like.
  std::size_t end = 1;
  while (end < argv.size() && !argv[end].starts_with("-m") && argv[end] != "-c") ++end;
  const bool glued = end < argv.size() && argv[end].size() > 2;  // -mtorch.distributed.run
  const std::size_t words = std::min(end + (glued ? 1 : 2), argv.size());
  const std::span<const std::string> own = std::span(argv).first(words);
  const Flags flags = read_flags(own, kPythonFlags);
  const std::string* module = flags.find("m");
  if (flags.has("c")) return;
  const std::string name = module != nullptr ? *module : first_script(argv, flags.rest);
  const std::size_t from = module != nullptr ? flags.rest - 1 : flags.rest;
  Words rest;
  if (from < argv.size()) rest = {argv.begin() + static_cast<std::ptrdiff_t>(from), argv.end()};
  if (rest.empty()) return;
  rest.front() = name;
  if (name == "torch.distributed.launch") {
    torchrun(rest, LauncherKind::torch_launch, place, environment);
  } else if (name == "torch.distributed.run" || base_name(name) == "torchrun") {
    torchrun(rest, LauncherKind::torchrun, place, environment);
  } else if (name == "accelerate.commands.launch") {
    rest.insert(rest.begin(), "accelerate");
    accelerate(rest, place, environment);
  } else if (base_name(name) == "accelerate") {
    accelerate(rest, place, environment);
  } else if (name == "deepspeed.launcher.runner" || base_name(name) == "deepspeed") {
    deepspeed(rest, place, environment);
  } else {
    add({.kind = LauncherKind::python, .script = name}, place);
    harvest(environment);
  }
}

bool CommandReader::launcher(std::string_view program,
                             const Words& argv,
                             Place place,
                             Scope environment) {
  if (program == "torchrun") {
    torchrun(argv, LauncherKind::torchrun, place, std::move(environment));
  } else if (program == "accelerate") {
    accelerate(argv, place, std::move(environment));
  } else if (program == "deepspeed") {
    deepspeed(argv, place, environment);
  } else if (program == "srun") {
    srun(argv, std::move(place), std::move(environment));
  } else if (program == "sbatch" || program == "salloc") {
    sbatch(argv, std::move(place), std::move(environment));
  } else if (is_launcher(program)) {
    mpirun(argv, std::move(place), std::move(environment));
  } else {
    return false;
  }
  return true;
}

}  // namespace distdoctor::rules
