// Finds the processes of training jobs among all others.
#pragma once

#include <distdoctor/facts/process.h>

#include "machine/machine.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// What the command line and the environment say; none for everything that is no part of a job.
// A worker must do more than inherit RANK, WORLD_SIZE and MASTER_ADDR, as each shell and `tail`
// below an `export` does: it is Python, or it has a library of `has_library`'s kind mapped.
using HasLibrary = std::function<bool(const machine::Process&)>;
std::optional<ProcessRole> role_of(const machine::Process& process, const HasLibrary& has_library);

// Path of the first mapped file whose name begins with "libnccl.so" or its kind, or "". Of
// /proc/PID/maps.
std::string mapped_library(std::string_view maps, std::string_view name);
bool maps_training_library(std::string_view maps);  // NCCL, torch, Gloo, CUDA, JAX, MPI

// Whether what started the process must be gone: torchrun's worker without a torchrun above it, a
// Slurm task without slurmstepd, an MPI rank without its daemon, and else a child of init that was
// not meant to stay. Meant to stay are who ignores SIGHUP (nohup) and who leads a session of its
// own: what a systemd unit starts does (systemd.exec(5)), and so does setsid.
bool is_orphan(const machine::Process& process,
               ProcessRole role,
               const machine::Processes& processes,
               bool meant_to_stay);
bool parse_ignores_hangup(std::string_view status);       // SigIgn of /proc/PID/status
std::optional<int> parse_session(std::string_view stat);  // of /proc/PID/stat

struct Found {
  const machine::Process* process = nullptr;
  ProcessRole role = ProcessRole::worker;
  std::string nccl_library = {};   // mapped, or empty
  std::string torch_library = {};  // likewise: one of libtorch*.so
};
// Without ourselves and what started us. Of a worker and its children that share its rank (data
// loaders) only the first counts.
std::vector<Found> find_training(const machine::Machine& machine);

}  // namespace distdoctor::collect
