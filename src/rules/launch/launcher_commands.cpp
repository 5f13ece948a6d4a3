// What CommandReader does with each launcher: its Launch, its settings, and what it starts.
#include "base/text.h"
#include "rules/launch/command_reader.h"
#include "rules/launch/settings.h"

#include <algorithm>
#include <utility>

namespace distdoctor::rules {
namespace {

// Whether its workers get MASTER_ADDR as given, and not from a rendezvous.
bool is_static(const Launch& launch) {
  return launch.rdzv_backend.empty() || launch.rdzv_backend == "static";
}

// "node0:29400", "[fd00::1]:29400"; no port: nothing behind the host.
std::pair<std::string, std::string> host_and_port(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  const std::size_t bracket = endpoint.rfind(']');
  if (colon == std::string::npos || (bracket != std::string::npos && colon < bracket)) {
    return {endpoint, ""};
  }
  std::string host = endpoint.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return {host, endpoint.substr(colon + 1)};
}

std::string marked(const std::string& written) {
  return written.find_first_of("$`") == std::string::npos ? written
                                                          : kOuterMark + written + kEndMark;
}

void export_into(Scope& scope, std::string_view pair, const std::string& where) {
  const auto parts = split(pair, '=', 2);
  Variable& variable = scope.variables[std::string(parts[0])];
  if (parts.size() == 2) variable.value = parts[1];
  if (parts.size() == 2 || variable.where.empty()) variable.where = where;
  variable.exported = true;
}

// --export=ALL,X=1,Y: without ALL only what is named goes along.
void apply_export(const std::string& list, const std::string& where, Scope& scope) {
  const auto names = split(list, ',');
  if (std::ranges::find(names, "ALL") == names.end()) {
    for (auto& [name, variable] : scope.variables) variable.exported = false;
  }
  for (const std::string_view name : names) {
    if (name.empty() || name == "ALL" || name == "NONE" || name == "NIL") continue;
    if (!name.contains('=') && !scope.variables.contains(name)) continue;
    export_into(scope, name, where);
  }
}

}  // namespace

// torchrun hands MASTER_ADDR and MASTER_PORT to its workers, whatever the environment held: the
// flag, or its default of 127.0.0.1:29500 (run.py config_from_args, static rendezvous).
void CommandReader::master(const Launch& launch, const Place& place) {
  if (!is_static(launch) || launch.standalone) return;
  std::string host = launch.master_addr;
  std::string port = launch.master_port;
  Place said = place;
  if (!launch.rdzv_endpoint.empty()) {
    std::tie(host, port) = host_and_port(launch.rdzv_endpoint);
  }
  const bool torch =
      launch.kind == LauncherKind::torchrun || launch.kind == LauncherKind::torch_launch;
  const bool several = launch.nnodes_min && *launch.nnodes_min > 1;
  if (host.empty() && torch && several) {
    host = "127.0.0.1";
    said.where += " (torchrun's default: no --master_addr)";
  }
  if (!host.empty()) say("MASTER_ADDR", marked(host), said, false);
  if (port.empty() && !host.empty() && launch.kind != LauncherKind::python) {
    port = "29500";
    said.where = place.where + " (default)";
  }
  if (!port.empty()) say("MASTER_PORT", marked(port), said, false);
}

void CommandReader::torchrun(const Words& argv,
                             LauncherKind kind,
                             const Place& place,
                             Scope environment) {
  const Flags flags = read_flags(argv, kTorchrunFlags);
  Launch launch = torchrun_launch(flags, environment);
  launch.kind = kind;
  launch.expanded_by_outer_shell = launch.expanded_by_outer_shell && environment.per_task;
  if (flags.rest < argv.size()) launch.script = as_written(argv[flags.rest]);
  harvest(environment);
  master(launch, place);
  add(std::move(launch), place);
}

void CommandReader::accelerate(const Words& argv, const Place& place, Scope environment) {
  if (argv.size() < 2 || argv[1] != "launch") {
    if (argv.size() < 2 || !argv[1].starts_with('-')) return;  // `accelerate config` and its kind
  }
  const bool sub = argv[1] == "launch";
  const Words own(argv.begin() + (sub ? 1 : 0), argv.end());
  const Flags flags = read_flags(own, kAccelerateFlags);
  Launch launch = accelerate_launch(flags);
  launch.expanded_by_outer_shell = launch.expanded_by_outer_shell && environment.per_task;
  if (flags.rest < own.size()) launch.script = as_written(own[flags.rest]);
  if (const std::string* file = flags.find("config_file")) {
    note(as_written(*file) + ": configuration of accelerate, not read");
  }
  harvest(environment);
  master(launch, place);
  add(std::move(launch), place);
}

void CommandReader::deepspeed(const Words& argv, const Place& place, const Scope& environment) {
  const Flags flags = read_flags(argv, kDeepspeedFlags);
  Launch launch = deepspeed_launch(flags);
  launch.expanded_by_outer_shell = launch.expanded_by_outer_shell && environment.per_task;
  if (flags.rest < argv.size()) launch.script = as_written(argv[flags.rest]);
  if (const std::string* hosts = flags.find("hostfile", "H")) {
    note(as_written(*hosts) + ": hostfile of deepspeed, not read");
  }
  harvest(environment);
  master(launch, place);
  add(std::move(launch), place);
}

void CommandReader::srun(const Words& argv, Place place, Scope environment) {
  const Flags flags = read_flags(argv, kSlurmFlags);
  Launch launch = srun_launch(flags, place.allocation);
  if (flags.rest < argv.size()) launch.script = as_written(argv[flags.rest]);
  add(launch, place);
  if (const std::string* list = flags.find("export")) {
    apply_export(*list, place.where, environment);
  }
  environment.per_task = true;
  place.under_srun = true;
  place.allocation = {
      .nodes = launch.nnodes_max, .tasks = launch.tasks, .tasks_per_node = launch.tasks_per_node};
  const std::size_t before = reading_.launches.size();
  run_rest(argv, flags.rest, place, environment);
  if (reading_.launches.size() == before) harvest(environment);
}

void CommandReader::mpirun(const Words& argv, Place place, Scope environment) {
  const Flags flags = read_flags(argv, kMpiFlags);
  Launch launch = mpirun_launch(flags);
  if (flags.rest < argv.size()) launch.script = as_written(argv[flags.rest]);
  add(std::move(launch), place);
  for (const auto& [name, value] : flags.given) {
    if (name == "x" || name == "env" || name == "genv") {
      export_into(environment, value, place.where);
    }
  }
  environment.per_task = true;
  const std::size_t before = reading_.launches.size();
  run_rest(argv, flags.rest, place, environment);
  if (reading_.launches.size() == before) harvest(environment);
}

// salloc runs its command where it was typed: on one node, as a batch script does.
void CommandReader::sbatch(const Words& argv, Place place, Scope environment) {
  const Flags flags = read_flags(argv, kSlurmFlags);
  read_allocation(flags, place.allocation);
  place.in_batch = true;
  if (const std::string* list = flags.find("export")) {
    apply_export(*list, place.where, environment);
  }
  if (const std::string* text = flags.find("wrap")) {
    script(*text, "", std::move(place), std::move(environment));
  } else if (flags.rest < argv.size() && argv.front().ends_with("salloc")) {
    run_rest(argv, flags.rest, std::move(place), std::move(environment));
  } else if (flags.rest < argv.size()) {
    script_file(argv, flags.rest, std::move(place), std::move(environment));
  }
}

}  // namespace distdoctor::rules
