// What the user runs, as far as it was said or seen; each setting with its origin.
#pragma once

#include <distdoctor/enum_names.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

// In falling weight: the earlier one wins.
enum class Source : std::uint8_t {
  command_line,   // of the job: `-- torchrun ...`, or a script that it runs
  option,         // --master, --env
  process,        // a live training process, seen on a node
  launcher,       // a launcher's variables (torchrun, Slurm, MPI) in our own environment
  environment,    // our own environment, or a peer's login environment
  user_config,    // ~/.nccl.conf or NCCL_CONF_FILE
  system_config,  // /etc/nccl.conf
  library,        // the default of NCCL, Gloo or torchrun
};
template <>
struct EnumNames<Source> {
  static constexpr std::string_view values[] = {"command line",  "option",      "process",
                                                "launcher",      "environment", "user config",
                                                "system config", "default"};
};

// Only what came from a real launcher, process or command line is evidence that the *job* has a
// setting, or lacks one; a login shell's environment is not.
constexpr bool is_the_jobs_own(Source source) {
  return source <= Source::launcher;
}

struct Origin {
  Source source = Source::environment;
  std::string node = {};   // where it was seen; empty: at the coordinator
  std::string where = {};  // "pid 4711", "train.sh:12", "/etc/nccl.conf:3", "--env", "$MASTER_ADDR"
  bool operator==(const Origin&) const = default;
};

struct Setting {
  std::string value = {};
  Origin origin = {};
  bool operator==(const Setting&) const = default;
};

using Settings = std::map<std::string, Setting>;  // by variable name

enum class LauncherKind : std::uint8_t {
  none,
  torchrun,
  torch_launch,
  srun,
  mpirun,
  accelerate,
  deepspeed,
  python,
  script
};
template <>
struct EnumNames<LauncherKind> {
  static constexpr std::string_view values[] = {"none",      "torchrun", "torch.distributed.launch",
                                                "srun",      "mpirun",   "accelerate",
                                                "deepspeed", "python",   "script"};
};

// One launcher call, from a command line, a script or a live process. A command may hold several:
// `srun -N2 torchrun ...` is an srun whose `inner` index names the torchrun.
struct Launch {
  LauncherKind kind = LauncherKind::none;
  Origin origin = {};
  std::optional<int> nnodes_min = {};
  std::optional<int> nnodes_max = {};
  std::optional<int> processes_per_node = {};  // none also for "gpu", "auto", "cpu"
  std::optional<int> node_rank = {};
  std::string node_rank_text = {};  // as written: "$SLURM_NODEID", "${NODE_RANK}"
  std::string rdzv_backend = {};    // "static" and "c10d"; empty: the launcher's default
  std::string rdzv_endpoint = {};   // "node0:29400", as written
  std::string rdzv_id = {};
  std::optional<bool> rdzv_is_host = {};  // is_host= of --rdzv-conf
  std::string master_addr = {};  // as written: a '$' in it means that only the job's shell knows
  std::string master_port = {};
  bool standalone = false;
  std::optional<int> tasks = {};           // srun -n, mpirun -np
  std::optional<int> tasks_per_node = {};  // srun --ntasks-per-node
  std::string script = {};                 // train.py
  bool in_batch_script = false;  // an sbatch script runs it: without srun it runs on one node only
  bool under_srun = false;
  bool expanded_by_outer_shell = false;  // `srun bash -c "... $SLURM_NODEID"` in double quotes
  bool operator==(const Launch&) const = default;
};

enum class Use : std::uint8_t { no, maybe, yes };
template <>
struct EnumNames<Use> {
  static constexpr std::string_view values[] = {"no", "maybe", "yes"};
};

struct JobSpec {
  std::vector<std::string> peers = {};  // as given, in order; the identity of a node
  Settings settings = {};               // what the coordinator knows; shared with every peer
  // RANK, LOCAL_RANK, SLURM_PROCID, ... of the one rank that the command line or a launcher's
  // environment around us describes. They hold for no other rank, so they do not travel.
  Settings rank_settings = {};
  // Set by the job to what only its own shell knows, as written ("$(scontrol show ...)"). Neither a
  // value nor absent: whoever misses a setting looks here before saying so.
  Settings unresolved = {};
  std::vector<Launch> launches = {};
  Use nccl = Use::maybe;  // does the job's process group use it
  Use gloo = Use::maybe;
  std::optional<int> ranks_per_node = {};  // as far as known
  bool operator==(const JobSpec&) const = default;
};

template <class V, Is<Origin> T>
void fields(V& v, T& x) {
  v("source", x.source);
  v("node", x.node);
  v("where", x.where);
}
template <class V, Is<Setting> T>
void fields(V& v, T& x) {
  v("value", x.value);
  v("origin", x.origin);
}
template <class V, Is<Launch> T>
void fields(V& v, T& x) {
  v("kind", x.kind);
  v("origin", x.origin);
  v("nnodes_min", x.nnodes_min);
  v("nnodes_max", x.nnodes_max);
  v("processes_per_node", x.processes_per_node);
  v("node_rank", x.node_rank);
  v("node_rank_text", x.node_rank_text);
  v("rdzv_backend", x.rdzv_backend);
  v("rdzv_endpoint", x.rdzv_endpoint);
  v("rdzv_id", x.rdzv_id);
  v("rdzv_is_host", x.rdzv_is_host);
  v("master_addr", x.master_addr);
  v("master_port", x.master_port);
  v("standalone", x.standalone);
  v("tasks", x.tasks);
  v("tasks_per_node", x.tasks_per_node);
  v("script", x.script);
  v("in_batch_script", x.in_batch_script);
  v("under_srun", x.under_srun);
  v("expanded_by_outer_shell", x.expanded_by_outer_shell);
}
template <class V, Is<JobSpec> T>
void fields(V& v, T& x) {
  v("peers", x.peers);
  v("settings", x.settings);
  v("rank_settings", x.rank_settings);
  v("unresolved", x.unresolved);
  v("launches", x.launches);
  v("nccl", x.nccl);
  v("gloo", x.gloo);
  v("ranks_per_node", x.ranks_per_node);
}

}  // namespace distdoctor
