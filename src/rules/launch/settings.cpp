#include "rules/launch/settings.h"

#include "base/text.h"
#include "rules/launch/live_job.h"

#include <algorithm>
#include <array>
#include <utility>

namespace distdoctor::rules {
namespace {

constexpr std::string_view kBackend = "DISTDOCTOR_BACKEND";

constexpr std::array<std::string_view, 27> kPerRank = {"RANK",
                                                       "LOCAL_RANK",
                                                       "LOCAL_WORLD_SIZE",
                                                       "NODE_RANK",
                                                       "GROUP_RANK",
                                                       "ROLE_RANK",
                                                       "PET_NODE_RANK",
                                                       "HOSTNAME",
                                                       "CUDA_VISIBLE_DEVICES",
                                                       "NVIDIA_VISIBLE_DEVICES",
                                                       "HIP_VISIBLE_DEVICES",
                                                       "ROCR_VISIBLE_DEVICES",
                                                       "SLURM_PROCID",
                                                       "SLURM_NODEID",
                                                       "SLURM_LOCALID",
                                                       "SLURMD_NODENAME",
                                                       "SLURM_TOPOLOGY_ADDR",
                                                       "SLURM_JOB_GPUS",
                                                       "SLURM_STEP_GPUS",
                                                       "OMPI_COMM_WORLD_RANK",
                                                       "OMPI_COMM_WORLD_LOCAL_RANK",
                                                       "OMPI_COMM_WORLD_NODE_RANK",
                                                       "MV2_COMM_WORLD_RANK",
                                                       "MV2_COMM_WORLD_LOCAL_RANK",
                                                       "PMI_RANK",
                                                       "PMIX_RANK",
                                                       "MPI_LOCALRANKID"};
constexpr std::array<std::string_view, 7> kSharedPrefixes = {"MASTER_", "NCCL_", "RCCL_", "GLOO_",
                                                             "TORCH_",  "UCX_",  "FI_"};
constexpr std::array<std::string_view, 5> kSharedNames = {
    "WORLD_SIZE", "NNODES", "TP_SOCKET_IFNAME", "USE_LIBUV", "CUDA_LAUNCH_BLOCKING"};

// Variables that a launcher makes for its workers. The plain names of torch count as such only
// beside something that no person sets by hand.
bool made_by_launcher(std::string_view name, const Settings& environment) {
  constexpr std::array<std::string_view, 6> kOwn = {"TORCHELASTIC_", "SLURM_", "OMPI_",
                                                    "PMI_",          "PMIX_",  "MV2_"};
  const auto begins_it = [&](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::ranges::any_of(kOwn, begins_it)) return true;
  const bool plain =
      name.starts_with("MASTER_") || name.ends_with("RANK") || name.ends_with("WORLD_SIZE");
  return plain && environment.contains("TORCHELASTIC_RUN_ID");
}

// Earlier layers win: a name that is there already stays as it is.
void lay(const Settings& layer, JobSpec& job) {
  for (const auto& [name, setting] : layer) {
    if (name == kBackend || per_rank(name) || job.unresolved.contains(name)) continue;
    job.settings.emplace(name, setting);
  }
}

void lay_environment(const Settings& environment, bool launcher, JobSpec& job) {
  Settings layer;
  for (const auto& [name, setting] : environment) {
    if (!shared_by_all(name) || made_by_launcher(name, environment) != launcher) continue;
    Setting& mine = layer[name] = setting;
    mine.origin.source = launcher ? Source::launcher : Source::environment;
  }
  lay(layer, job);
}

// Of the command line, else of the launcher that started us; never a mixture of both.
void lay_rank(const Said& said, JobSpec& job) {
  for (const auto& [name, setting] : said.command.settings) {
    if (per_rank(name)) job.rank_settings.emplace(name, setting);
  }
  if (!job.rank_settings.empty() || !said.command.launches.empty()) return;
  for (const auto& [name, setting] : said.environment) {
    if (!per_rank(name) || !made_by_launcher(name, said.environment)) continue;
    Setting& mine = job.rank_settings[name] = setting;
    mine.origin.source = Source::launcher;
  }
}

bool sets_nccl(const Settings& settings) {
  return std::ranges::any_of(settings, [](const auto& entry) {
    return entry.first.starts_with("NCCL_") && is_the_jobs_own(entry.second.origin.source);
  });
}

enum class Gpus : std::uint8_t { unseen, none, some };

// None only where every node was looked at.
Gpus gpus_of(const std::vector<NodeFacts>& nodes) {
  bool all_seen = !nodes.empty();
  for (const NodeFacts& node : nodes) {
    if (!node.devices.known()) {
      all_seen = false;
    } else if (!node.devices->gpus.empty()) {
      return Gpus::some;
    }
  }
  return all_seen ? Gpus::none : Gpus::unseen;
}

void set_use(Use nccl, Use gloo, JobSpec& job) {
  job.nccl = nccl;
  job.gloo = gloo;
}

// "nccl", "gloo", "cpu:gloo,cuda:nccl" (torch.distributed.init_process_group).
bool use_as_said(const Settings& options, JobSpec& job) {
  const auto said = options.find(std::string(kBackend));
  if (said == options.end()) return false;
  const bool nccl = said->second.value.contains("nccl");
  const bool gloo = said->second.value.contains("gloo");
  if (!nccl && !gloo) return false;
  set_use(nccl ? Use::yes : Use::no, gloo ? Use::yes : Use::no, job);
  return true;
}

// torch built for CUDA maps libnccl even in a Gloo job, so that on machines without any GPU a
// mapped library proves nothing.
void deduce_use(const Said& said, const std::vector<NodeFacts>& nodes, bool mapped, JobSpec& job) {
  if (use_as_said(said.options, job)) return;
  const Gpus gpus = gpus_of(nodes);
  if ((mapped && gpus != Gpus::none) || sets_nccl(job.settings) || gpus == Gpus::some) {
    set_use(Use::yes, Use::maybe, job);
  } else if (gpus == Gpus::none) {
    set_use(Use::maybe, Use::yes, job);
  } else {
    set_use(Use::maybe, Use::maybe, job);
  }
}

// What starts the ranks decides: torchrun below srun, else srun's or mpirun's own tasks.
std::optional<int> started_per_node(const std::vector<Launch>& launches) {
  for (auto launch = launches.rbegin(); launch != launches.rend(); ++launch) {
    switch (launch->kind) {
      case LauncherKind::torchrun:
      case LauncherKind::torch_launch:
      case LauncherKind::accelerate:
      case LauncherKind::deepspeed:
        return launch->processes_per_node;
      case LauncherKind::srun:
      case LauncherKind::mpirun:
        return launch->tasks_per_node;
      default:
        break;
    }
  }
  return std::nullopt;
}

std::optional<int> said_per_node(const Settings& settings) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    const auto found = settings.find(name);
    if (found == settings.end()) continue;
    if (const auto count = parse_int_within(found->second.value, 1, 4096)) return count;
  }
  return std::nullopt;
}

void set_ranks_per_node(const Said& said, const LiveJob& live, JobSpec& job) {
  job.ranks_per_node = started_per_node(said.command.launches);
  if (!job.ranks_per_node) job.ranks_per_node = said_per_node(said.command.settings);
  if (!job.ranks_per_node) job.ranks_per_node = said_per_node(said.options);
  if (!job.ranks_per_node) job.ranks_per_node = live.ranks_per_node;
  if (!job.ranks_per_node) job.ranks_per_node = said_per_node(said.environment);
  if (job.ranks_per_node && *job.ranks_per_node < 1) job.ranks_per_node = std::nullopt;
}

}  // namespace

bool per_rank(std::string_view name) {
  return std::ranges::find(kPerRank, name) != kPerRank.end();
}

bool shared_by_all(std::string_view name) {
  const auto begins_it = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::ranges::find(kSharedNames, name) != kSharedNames.end() ||
         std::ranges::any_of(kSharedPrefixes, begins_it);
}

JobSpec resolve_job(const Said& said,
                    const std::vector<std::string>& peers,
                    const std::vector<NodeFacts>& nodes) {
  JobSpec job{.peers = peers,
              .settings = {},
              .rank_settings = {},
              .unresolved = said.command.unresolved,
              .launches = said.command.launches};
  std::erase_if(job.unresolved, [](const auto& entry) { return per_rank(entry.first); });
  // --env and --master answer what the script left open.
  for (const auto& [name, setting] : said.options) job.unresolved.erase(name);
  lay(said.command.settings, job);
  lay(said.options, job);
  const LiveJob live = live_job(nodes, job.settings);
  for (const auto& [name, setting] : live.settings) job.unresolved.erase(name);
  lay(live.settings, job);
  if (job.launches.empty()) job.launches = live.launches;
  lay_environment(said.environment, true, job);
  // The script would take its environment's value before its own default.
  lay_environment(said.environment, false, job);
  lay(said.command.fallbacks, job);
  lay_rank(said, job);
  // Each rank has its own, though none is known.
  for (const auto& [name, setting] : said.command.each_task) {
    if (job.unresolved.contains(name)) job.rank_settings[name] = setting;
  }
  deduce_use(said, nodes, live.maps_nccl, job);
  set_ranks_per_node(said, live, job);
  return job;
}

}  // namespace distdoctor::rules
