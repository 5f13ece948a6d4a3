// No rank of a job that is over still holds memory of a GPU.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>

#include "devices.h"
#include "nvml.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace gpu;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Its launcher is gone and it talks to nobody: a rank that was left behind. A zombie holds nothing.
bool is_stale(const TrainingProcess& process) {
  return process.orphan && !process.has_established_peer && process.role == ProcessRole::worker &&
         process.state != "Z" && process.state != "X";
}

struct Held {
  const TrainingProcess* process;
  std::vector<const NvmlGpu*> gpus = {};
  std::int64_t bytes = 0;
};

std::vector<Held> held_by_stale(const NodeFacts& node, const Nvml& nvml) {
  std::vector<Held> all;
  for (const TrainingProcess& process : *node.processes) {
    if (!is_stale(process)) continue;
    Held held{.process = &process};
    for (const NvmlGpu& gpu : nvml.gpus) {
      const auto row = std::ranges::find(gpu.processes, process.pid, &NvmlProcess::pid);
      if (row == gpu.processes.end()) continue;
      held.gpus.push_back(&gpu);
      held.bytes += row->memory_bytes;
    }
    if (!held.gpus.empty()) all.push_back(std::move(held));
  }
  return all;
}

Fix end_it(const NodeFacts& node, const TrainingProcess& process) {
  const bool ours = node.identity.known() && node.identity->uid == process.uid;
  if (!ours) {
    return by_hand(node, fmt::format("ask {} whether pid {} may go", process.user, process.pid));
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command = fmt::format("kill {}", process.pid),
          .text = "it is yours, its launcher is gone, and it has no connection to another node"};
}

void judge_node(const Case& c, const NodeFacts& node, const Nvml& nvml, Judge& judge) {
  const auto all = held_by_stale(node, nvml);
  if (all.empty()) return;
  std::set<std::string> devices;
  Finding finding{.code = "gpu-held-by-leftover",
                  .severity = capped_by_nccl(c.cluster.job, Severity::degraded),
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = ""};
  for (const Held& held : all) {
    for (const NvmlGpu* gpu : held.gpus) devices.insert(device_name(node, handle_of(*gpu)));
    finding.evidence.push_back(
        {.node = node.host,
         .fact = fmt::format("pid {} of {}", held.process->pid, held.process->user),
         .observed = fmt::format("holds {} MiB on {}; its launcher is gone", held.bytes >> 20,
                                 plural(held.gpus.size(), "GPU")),
         .expected = "gone with its job",
         .command =
             fmt::format("ps -o pid,ppid,user,etime,args -p {}; nvidia-smi", held.process->pid)});
    finding.fix.push_back(end_it(node, *held.process));
  }
  finding.subjects.devices.assign(devices.begin(), devices.end());
  finding.summary =
      fmt::format("{} of a job that is over still hold memory of {} on {}",
                  plural(all.size(), "rank"), plural(devices.size(), "GPU"), node.host);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  bool looked = false;
  const bool told = each_told(c, judge, [&](const NodeFacts& node, const Nvml& nvml) {
    // The driver counts processes as the host does: inside of a container they are others.
    if (in_container(node)) return;
    looked = true;
    if (judge.see(node, "processes", node.processes) == nullptr) return;
    judge_node(c, node, nvml, judge);
  });
  if (told && !looked) judge.skip("the driver's process numbers mean nothing in a container");
}

// --- the catalogue ---

constexpr Page kPage{
    .meaning =
        "A rank outlived its launcher: it hangs in a collective or in the driver, talks to no "
        "other node any more, and still holds GPU memory. The next job on this node meets `CUDA "
        "out of memory` or `Cuda failure 'out of memory'` in NCCL.",
    .confirm =
        "`nvidia-smi` lists the process; `ps -o pid,ppid,stat,etime,args -p PID`: its parent is 1.",
    .fix =
        "`kill PID`, after some seconds `kill -9 PID`. One in state D waits for the driver: only a "
        "reset of the GPU or a reboot ends it.",
    .verify = "`nvidia-smi` lists no process before the job starts."};
constexpr Code kCodes[] = {{.id = "gpu-held-by-leftover",
                            .fault_class = FaultClass::gpu_oom,
                            .worst = Severity::degraded,
                            .title = "A rank of a job that is over holds GPU memory",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check gpu_leftovers{.title = "No rank of an old job holds GPU memory",
                                 .codes = kCodes,
                                 .run = run,
                                 .needs = Needs::gpus};

}  // namespace distdoctor::checks
