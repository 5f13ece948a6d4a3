#include "rules/launch/launchers.h"

#include "base/text.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace distdoctor::rules {

const FlagTable kTorchrunFlags = {
    .one =
        "nnodes nproc_per_node rdzv_backend rdzv_endpoint rdzv_id rdzv_conf max_restarts "
        "monitor_interval start_method role log_dir r redirects t tee local_ranks_filter "
        "node_rank master_addr master_port local_addr logs_specs event_log_handler "
        "numa_binding signals_to_handle shutdown_timeout",
    .glued = "rt"};
const FlagTable kSlurmFlags = {
    .one =
        "account A acctg_freq bb bbf begin b chdir D cluster_constraint clusters M comment "
        "constraint C container container_id core_spec S cores_per_socket cpu_bind cpu_freq "
        "cpus_per_gpu cpus_per_task c deadline delay_boot dependency d distribution m epilog "
        "error e exclude x export export_file extra extra_node_info B gid gpu_bind gpu_freq "
        "gpus G gpus_per_node gpus_per_socket gpus_per_task gres gres_flags hint input i "
        "job_name J jobid job_id licenses L mail_type mail_user mcs_label mem mem_bind "
        "mem_per_cpu mem_per_gpu mpi network nodefile F nodelist w nodes N ntasks n "
        "ntasks_per_core ntasks_per_gpu ntasks_per_node ntasks_per_socket open_mode output o "
        "partition p prefer priority profile prolog q qos relative r reservation signal "
        "slurmd_debug sockets_per_node switches task_epilog task_prolog thread_spec threads T "
        "threads_per_core time t time_min tmp tres_bind tres_per_task tree_width treewidth uid "
        "wait W wckey wrap array a container_image container_mounts container_workdir "
        "container_name container_env container_save",
    .glued = "AbcCdDeFGiJLmMnNopqrStTwWxa"};
const FlagTable kMpiFlags = {
    .one =
        "n np c H host hosts hostfile machinefile f npernode N ppn perhost map_by bind_to "
        "rank_by x prefix wdir wd path output_filename output timeout rf rankfile tune am "
        "cpus_per_proc cpus_per_rank report_uri genvlist envlist iface launcher bootstrap rmk "
        "launcher_exec bootstrap_exec configfile app personality host_list cpu_bind",
    .two = "mca gmca env genv pmixmca prtemca omca"};
const FlagTable kAccelerateFlags = {
    .one =
        "config_file num_processes num_machines machine_rank main_process_ip "
        "main_process_port main_training_function mixed_precision gpu_ids rdzv_backend "
        "rdzv_conf max_restarts monitor_interval tee role log_dir local_ranks_filter "
        "num_cpu_threads_per_process gradient_accumulation_steps gradient_clipping zero_stage "
        "env vm tpu_name tpu_zone fp8_format ipex",
    .prefixes =
        "deepspeed_ offload_ zero3_ fsdp_ megatron_lm_ dynamo_backend dynamo_mode fp8_ "
        "parallelism_config_"};
const FlagTable kDeepspeedFlags = {
    .one =
        "H hostfile i include e exclude num_nodes num_gpus master_port master_addr node_rank "
        "launcher launcher_args min_elastic_nodes max_elastic_nodes autotuning "
        "enable_each_rank_log bind_core_list venv_script ssh_port p log_level",
    .glued = "Hie"};

namespace {

std::string text_of(const std::string* flag) {
  return flag == nullptr ? std::string() : as_written(*flag);
}

// What only the task's own environment tells, so that a shell above srun gets it wrong.
bool names_a_task(std::string_view source) {
  constexpr std::array<std::string_view, 8> kOfATask = {
      "SLURM_NODEID",     "SLURM_PROCID", "SLURM_LOCALID", "SLURMD_NODENAME",
      "OMPI_COMM_WORLD_", "PMI_RANK",     "PMIX_RANK",     "MPI_LOCALRANKID"};
  return std::ranges::any_of(kOfATask,
                             [&](std::string_view name) { return source.contains(name); });
}

void set_node_rank(const std::string* text, Launch& launch) {
  launch.node_rank = count_of(text);
  launch.node_rank_text = text_of(text);
  if (text == nullptr) return;
  const auto sources = outer_sources(*text);
  launch.expanded_by_outer_shell = std::ranges::any_of(sources, names_a_task);
}

// "2" or "1:4" (run.py parse_min_max_nnodes); the default is "1:1".
void set_nnodes(const std::string* text, Launch& launch) {
  if (text == nullptr) {
    launch.nnodes_min = launch.nnodes_max = 1;
    return;
  }
  const auto ends = split(*text, ':', 2);
  const std::string low(ends.front());
  const std::string high(ends.back());
  launch.nnodes_min = count_of(&low);
  launch.nnodes_max = count_of(&high);
}

// run.py: is_host goes through _cast_to_optional_bool (rendezvous/api.py get_as_bool).
std::optional<bool> host_flag(std::string_view conf) {
  for (const std::string_view pair : split(conf, ',')) {
    const auto value = after_prefix(trim(pair), "is_host=");
    if (!value) continue;
    const std::string lower = to_lower(trim(*value));
    constexpr std::array<std::string_view, 5> kYes = {"1", "true", "t", "yes", "y"};
    constexpr std::array<std::string_view, 5> kNo = {"0", "false", "f", "no", "n"};
    if (std::ranges::find(kYes, lower) != kYes.end()) return true;
    if (std::ranges::find(kNo, lower) != kNo.end()) return false;
  }
  return std::nullopt;
}

// A flag of torchrun, or the PET_ variable that stands for it.
const std::string* torchrun_flag(const Flags& flags,
                                 const Scope& environment,
                                 std::string_view name) {
  if (const std::string* given = flags.find(name)) return given;
  std::string variable = "PET_";
  for (const char c : name) {
    variable += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  const auto found = environment.variables.find(variable);
  return found == environment.variables.end() ? nullptr : &found->second.value;
}

// "ppr:8:node" of Open MPI's --map-by.
std::optional<int> processes_per_node(const std::string* map_by) {
  if (map_by == nullptr) return std::nullopt;
  const auto parts = split(*map_by, ':');
  if (parts.size() < 3 || parts[0] != "ppr" || parts[2] != "node") return std::nullopt;
  const std::string count(parts[1]);
  return count_of(&count);
}

}  // namespace

std::optional<int> count_of(const std::string* text) {
  return text == nullptr ? std::nullopt : parse_int_within(trim(*text), 0, 1'000'000);
}

Launch torchrun_launch(const Flags& flags, const Scope& environment) {
  const auto flag = [&](std::string_view name) { return torchrun_flag(flags, environment, name); };
  Launch launch{.kind = LauncherKind::torchrun};
  set_nnodes(flag("nnodes"), launch);
  const std::string* processes = flag("nproc_per_node");
  launch.processes_per_node = processes == nullptr ? 1 : count_of(processes);
  set_node_rank(flag("node_rank"), launch);
  launch.rdzv_backend = text_of(flag("rdzv_backend"));
  launch.rdzv_endpoint = text_of(flag("rdzv_endpoint"));
  launch.rdzv_id = text_of(flag("rdzv_id"));
  if (const std::string* conf = flag("rdzv_conf")) launch.rdzv_is_host = host_flag(*conf);
  launch.master_addr = text_of(flag("master_addr"));
  launch.master_port = text_of(flag("master_port"));
  launch.standalone = flags.has("standalone");
  return launch;
}

Launch accelerate_launch(const Flags& flags) {
  Launch launch{.kind = LauncherKind::accelerate};
  // Without the flag its configuration file decides.
  launch.nnodes_min = launch.nnodes_max = count_of(flags.find("num_machines"));
  const auto processes = count_of(flags.find("num_processes"));
  if (processes && launch.nnodes_max && *launch.nnodes_max > 0 &&
      *processes % *launch.nnodes_max == 0) {
    launch.processes_per_node = *processes / *launch.nnodes_max;
  }
  set_node_rank(flags.find("machine_rank"), launch);
  launch.master_addr = text_of(flags.find("main_process_ip"));
  launch.master_port = text_of(flags.find("main_process_port"));
  launch.rdzv_backend = text_of(flags.find("rdzv_backend"));
  if (const std::string* conf = flags.find("rdzv_conf")) launch.rdzv_is_host = host_flag(*conf);
  return launch;
}

Launch deepspeed_launch(const Flags& flags) {
  Launch launch{.kind = LauncherKind::deepspeed};
  // Without the flag its hostfile decides.
  launch.nnodes_min = launch.nnodes_max = count_of(flags.find("num_nodes"));
  launch.processes_per_node = count_of(flags.find("num_gpus"));
  set_node_rank(flags.find("node_rank"), launch);
  launch.master_addr = text_of(flags.find("master_addr"));
  launch.master_port = text_of(flags.find("master_port"));
  return launch;
}

void read_allocation(const Flags& flags, Allocation& allocation) {
  if (const std::string* nodes = flags.find("nodes", "N")) {
    // "2-4" is a range: the number is not known.
    allocation.nodes = count_of(nodes);
  }
  if (const std::string* tasks = flags.find("ntasks", "n")) allocation.tasks = count_of(tasks);
  if (const std::string* tasks = flags.find("ntasks_per_node")) {
    allocation.tasks_per_node = count_of(tasks);
  }
}

Launch srun_launch(const Flags& flags, const Allocation& allocation) {
  Allocation step = allocation;
  // A step that asks for its own nodes or tasks does not inherit the other figure.
  const bool nodes = flags.find("nodes", "N") != nullptr;
  const bool tasks = flags.find("ntasks", "n") != nullptr;
  if (nodes || tasks) step = {.nodes = allocation.nodes};
  if (nodes && !tasks && allocation.tasks_per_node) {
    step.tasks_per_node = allocation.tasks_per_node;
  }
  read_allocation(flags, step);
  Launch launch{.kind = LauncherKind::srun};
  launch.nnodes_min = launch.nnodes_max = step.nodes;
  launch.tasks = step.tasks;
  launch.tasks_per_node = step.tasks_per_node;
  return launch;
}

Launch mpirun_launch(const Flags& flags) {
  Launch launch{.kind = LauncherKind::mpirun};
  launch.tasks = count_of(flags.find("np", "n"));
  launch.tasks_per_node = processes_per_node(flags.find("map_by"));
  for (const std::string_view name : {"npernode", "ppn", "perhost", "N"}) {
    if (!launch.tasks_per_node) launch.tasks_per_node = count_of(flags.find(name));
  }
  if (flags.has("pernode")) launch.tasks_per_node = 1;
  if (launch.tasks && launch.tasks_per_node && *launch.tasks_per_node > 0 &&
      *launch.tasks % *launch.tasks_per_node == 0) {
    launch.nnodes_min = launch.nnodes_max = *launch.tasks / *launch.tasks_per_node;
  }
  return launch;
}

}  // namespace distdoctor::rules
