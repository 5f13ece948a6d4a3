#include "collect/processes.h"

#include "base/secrets.h"
#include "base/text.h"
#include "collect/accounts.h"
#include "collect/collectors.h"
#include "machine/patient_files.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <utility>

namespace distdoctor::collect {
namespace {

using machine::Process;
using machine::Processes;

constexpr std::size_t kMostMaps = std::size_t{16} << 20;
constexpr int kMostAncestors = 64;

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

bool one_of(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

const std::string* variable(const Process& process, const std::string& name) {
  if (!process.environment.known()) return nullptr;
  const auto found = process.environment->find(name);
  return found != process.environment->end() ? &found->second : nullptr;
}

bool is_python(std::string_view program) {
  return base_name(program).starts_with("python");
}

constexpr std::array<std::string_view, 2> kAgentModules = {"torch.distributed.run",
                                                           "torch.distributed.launch"};
constexpr std::array<std::string_view, 8> kLaunchers = {
    "srun", "mpirun", "mpiexec", "orterun", "prterun", "mpiexec.hydra", "deepspeed", "accelerate"};

std::optional<ProcessRole> role_by_module(std::string_view module) {
  if (one_of(module, kAgentModules)) return ProcessRole::agent;
  const bool launches = module.starts_with("accelerate.") || module.starts_with("deepspeed.");
  return launches ? std::optional(ProcessRole::launcher) : std::nullopt;
}

// "torchrun", "/usr/bin/python3 /usr/bin/torchrun ...", "python -m torch.distributed.run ...".
std::optional<ProcessRole> role_by_words(const std::vector<std::string>& argv) {
  std::size_t at = 0;
  if (is_python(argv[0])) {
    at = 1;
    while (at < argv.size() && argv[at].starts_with('-') && argv[at] != "-m") ++at;
    if (at + 1 < argv.size() && argv[at] == "-m") return role_by_module(argv[at + 1]);
  }
  if (at >= argv.size()) return std::nullopt;
  const auto name = base_name(argv[at]);
  if (name == "torchrun") return ProcessRole::agent;
  return one_of(name, kLaunchers) ? std::optional(ProcessRole::launcher) : std::nullopt;
}

bool has_rank(const Process& process) {
  return variable(process, "RANK") != nullptr && variable(process, "WORLD_SIZE") != nullptr &&
         variable(process, "MASTER_ADDR") != nullptr;
}

// A rank that its program makes into RANK itself.
bool has_foreign_rank(const Process& process) {
  constexpr std::array kNames = {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
  return std::ranges::any_of(kNames,
                             [&](const char* name) { return variable(process, name) != nullptr; });
}

std::string read_maps(machine::PatientFiles& files, int pid) {
  return files.read_head("/proc/" + std::to_string(pid) + "/maps", kMostMaps).value_or("");
}

std::string rank_text(const Process& process) {
  std::string text;
  for (const auto* name : {"RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
                           "MASTER_ADDR", "MASTER_PORT"}) {
    const auto* const value = variable(process, name);
    text += (value != nullptr ? *value : "") + std::string("\n");
  }
  return text;
}

std::vector<const Process*> ancestors(const Process& process, const Processes& processes) {
  std::vector<const Process*> chain;
  const auto* next = processes.find(process.parent);
  while (next != nullptr && chain.size() < kMostAncestors) {
    chain.push_back(next);
    next = processes.find(next->parent);
  }
  return chain;
}

std::set<int> ourselves(const machine::Machine& machine, const Processes& processes) {
  std::set<int> pids;
  const auto own = parse_int<int>(machine.files().read_link("/proc/self").value_or(""));
  const auto* const self = own ? processes.find(*own) : nullptr;
  if (self == nullptr) return pids;
  pids.insert(self->pid);
  for (const auto* process : ancestors(*self, processes)) pids.insert(process->pid);
  return pids;
}

bool repeats_an_ancestor(const Found& found,
                         const std::map<int, Found>& all,
                         const Processes& processes) {
  if (found.role != ProcessRole::worker) return false;
  const auto rank = rank_text(*found.process);
  return std::ranges::any_of(ancestors(*found.process, processes), [&](const Process* above) {
    const auto other = all.find(above->pid);
    return other != all.end() && other->second.role == ProcessRole::worker &&
           rank_text(*above) == rank;
  });
}

// Programs that start nothing themselves: their children came to them as orphans.
bool adopts(const Process& parent) {
  constexpr std::array<std::string_view, 5> kIdle = {"systemd", "init", "sleep", "pause", "tail"};
  return one_of(parent.name, kIdle) && (parent.pid == 1 || parent.name == "systemd");
}

enum class Above : std::uint8_t { present, gone, unseen };

// Whether one of the names is among the ancestors. A container hides what is above it.
Above above(const Process& process,
            const Processes& processes,
            const std::function<bool(const Process&)>& is) {
  const auto chain = ancestors(process, processes);
  if (std::ranges::any_of(chain, [&](const Process* one) { return is(*one); })) {
    return Above::present;
  }
  const bool whole = !chain.empty() && chain.back()->pid == 1;
  return whole && processes.whole_machine ? Above::gone : Above::unseen;
}

bool is_agent(const Process& process) {
  return !process.argv.empty() && role_by_words(process.argv) == ProcessRole::agent;
}
bool is_slurm_daemon(const Process& process) {
  return process.name.starts_with("slurmstepd") || process.name == "srun";
}
bool is_mpi_daemon(const Process& process) {
  constexpr std::array<std::string_view, 7> kDaemons = {
      "orted", "prted", "mpirun", "mpiexec", "prterun", "orterun", "hydra_pmi_proxy"};
  return one_of(process.name, kDaemons);
}

class Peers {
 public:
  explicit Peers(const machine::Machine& machine) : owners_(machine.socket_owners()) {
    const auto sockets = machine.sockets().value_or(machine::Sockets{});
    for (const auto& row : sockets.rows) {
      const bool away = !row.remote.loopback() && row.remote != row.local;
      if (row.state == TcpState::established && away) inodes_.push_back(row.inode);
    }
  }
  [[nodiscard]] bool has(int pid) const {
    return std::ranges::any_of(inodes_,
                               [&](std::uint64_t inode) { return owners_.holds(pid, inode); });
  }

 private:
  const machine::SocketOwners& owners_;
  std::vector<std::uint64_t> inodes_;
};

Observed<std::map<std::string, std::string>> allowed(
    const Observed<std::map<std::string, std::string>>& environment) {
  if (!environment.known()) return environment.why();
  std::map<std::string, std::string> kept;
  for (const auto& [name, value] : *environment) {
    if (may_leave_a_process(name)) kept.emplace(name, mask_value(value));
  }
  return kept;
}

TrainingProcess described(const Found& found, const machine::Machine& machine) {
  const auto& process = *found.process;
  const auto& files = machine.files();
  const auto folder = "/proc/" + std::to_string(process.pid);
  const auto network = files.read_link(folder + "/ns/net");
  const bool stays = parse_ignores_hangup(files.read(folder + "/status").value_or("")) ||
                     parse_session(files.read(folder + "/stat").value_or("")) == process.pid;
  return {.pid = process.pid,
          .parent = process.parent,
          .uid = process.uid,
          .role = found.role,
          .state = process.state,
          .age_s = process.age_s,
          .argv = mask_secrets(process.argv),
          .env = allowed(process.environment),
          .orphan = is_orphan(process, found.role, machine.processes(), stays),
          .our_network = !network || network == files.read_link("/proc/self/ns/net"),
          .nccl_library = found.nccl_library};
}

}  // namespace

std::optional<ProcessRole> role_of(const Process& process, const HasLibrary& has_library) {
  if (process.argv.empty() || process.argv[0].empty()) return std::nullopt;
  if (const auto role = role_by_words(process.argv)) return role;
  const bool ranked = has_rank(process);
  if (ranked && is_python(process.argv[0])) return ProcessRole::worker;
  if ((ranked || has_foreign_rank(process)) && has_library(process)) return ProcessRole::worker;
  return std::nullopt;
}

std::string mapped_library(std::string_view maps, std::string_view name) {
  for (const auto line : split_lines(maps)) {
    const auto at = line.find('/');
    if (at == std::string_view::npos) continue;
    const auto path = before_suffix(line, " (deleted)").value_or(line).substr(at);
    if (base_name(path).starts_with(name)) return std::string(path);
  }
  return "";
}

bool maps_training_library(std::string_view maps) {
  constexpr std::array<std::string_view, 7> kNames = {"/libnccl.so",   "/libtorch", "/libgloo",
                                                      "/libcudart.so", "/libjax",   "/librccl.so",
                                                      "/xla_extension"};
  return std::ranges::any_of(
      kNames, [maps](std::string_view name) { return maps.find(name) != std::string_view::npos; });
}

bool parse_ignores_hangup(std::string_view status) {
  for (const auto line : split_lines(status)) {
    const auto mask = after_prefix(line, "SigIgn:");
    if (!mask) continue;
    return (parse_int<std::uint64_t>(trim(*mask), 16).value_or(0) & 1U) != 0;  // SIGHUP is 1
  }
  return false;
}

std::optional<int> parse_session(std::string_view stat) {
  const auto close = stat.rfind(')');
  if (close == std::string_view::npos) return std::nullopt;
  const auto words = split_words(stat.substr(close + 1));  // state, parent, group, session
  return words.size() < 4 ? std::nullopt : parse_int<int>(words[3]);
}

bool is_orphan(const Process& process,
               ProcessRole role,
               const Processes& processes,
               bool meant_to_stay) {
  if (role != ProcessRole::worker) return false;
  const auto* const parent = processes.find(process.parent);
  const bool adopted = parent != nullptr && adopts(*parent);
  if (variable(process, "TORCHELASTIC_RUN_ID") != nullptr) {
    return adopted || above(process, processes, is_agent) == Above::gone;
  }
  if (variable(process, "SLURM_PROCID") != nullptr) {
    return above(process, processes, is_slurm_daemon) == Above::gone;
  }
  if (variable(process, "OMPI_COMM_WORLD_RANK") != nullptr) {
    return above(process, processes, is_mpi_daemon) == Above::gone;
  }
  return adopted && !meant_to_stay;
}

std::vector<Found> find_training(const machine::Machine& machine) {
  const auto& processes = machine.processes();
  const auto own = ourselves(machine, processes);
  machine::PatientFiles files(machine.shared_files());
  std::map<int, Found> all;
  for (const auto& process : processes.all) {
    if (own.contains(process.pid)) continue;
    std::optional<std::string> maps;
    const auto mapped = [&]() -> const std::string& {
      if (!maps) maps = read_maps(files, process.pid);
      return *maps;
    };
    const auto role =
        role_of(process, [&](const Process& /*same*/) { return maps_training_library(mapped()); });
    if (!role) continue;
    const auto library = [&](std::string_view name) {
      return *role == ProcessRole::worker ? mapped_library(mapped(), name) : "";
    };
    all.emplace(process.pid, Found{.process = &process,
                                   .role = *role,
                                   .nccl_library = library("libnccl.so"),
                                   .torch_library = library("libtorch")});
  }
  std::vector<Found> found;
  for (const auto& [pid, one] : all) {
    if (!repeats_an_ancestor(one, all, processes)) found.push_back(one);
  }
  return found;
}

void collect_processes(machine::Machine& machine,
                       const CollectRequest& /*request*/,
                       NodeFacts& node) {
  if (const auto proc = machine.files().list("/proc"); !proc) {
    node.processes = unknown_because(proc.error());
    return;
  }
  std::vector<TrainingProcess> processes;
  const auto found = find_training(machine);
  if (!found.empty()) {
    const Peers peers(machine);
    const auto accounts = read_accounts(machine.files());
    for (const auto& one : found) {
      auto& process = processes.emplace_back(described(one, machine));
      process.user = user_name(accounts, process.uid);
      process.has_established_peer = peers.has(process.pid);
    }
  }
  node.processes = std::move(processes);
}

}  // namespace distdoctor::collect
