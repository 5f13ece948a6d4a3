// The control group that we are in has memory and room for processes left.
#include "seen.h"

#include <algorithm>

namespace distdoctor::checks {
namespace {

using namespace host;  // NOLINT(google-build-using-namespace): what these checks share

constexpr double kNearlyAll = 0.95;       // of the memory; files in its cache are not counted
constexpr std::int64_t kFewThreads = 16;  // a rank starts more, in NCCL and torch alone

std::string whose(const NodeFacts& node) {
  const std::string container = container_of(node);
  return container.empty() ? "the control group" : "the " + container + " container";
}

Finding about(const NodeFacts& node, const char* code, Severity severity, std::string summary) {
  return {.code = code,
          .severity = capped_by_context(severity, node.context),
          .certainty = Certainty::possible,
          .symptom = Symptom::crash,
          .subjects = {.nodes = {node.host}},
          .summary = std::move(summary)};
}

// --- memory ---

// The kernel's log names the process and the time: host-out-of-memory says more.
bool told_by_the_log(const NodeFacts& node) {
  return node.kernel_log.known() &&
         std::ranges::any_of(node.kernel_log->lines, [](const KernelLine& line) {
           return line.text.find("Killed process ") != std::string::npos;
         });
}

std::string memory_text(const World& world) {
  std::string text = fmt::format("{} in use, of {}", size_text(world.memory_now.value_or(0)),
                                 size_text(world.memory_max.value_or(0)));
  const auto kills = world.memory_kills.value_or(0);
  return kills > 0 ? text + fmt::format("; {} killed since it began", kills) : text;
}

void judge_memory(const NodeFacts& node, const World& world, Judge& judge) {
  if (!world.memory_max || !world.memory_now || *world.memory_max <= 0) return;
  const bool full =
      static_cast<double>(*world.memory_now) >= kNearlyAll * static_cast<double>(*world.memory_max);
  const bool killed = world.memory_kills.value_or(0) > 0 && !told_by_the_log(node);
  if (!full && !killed) return;
  Finding finding = about(
      node, "host-memory-limit", full && killed ? Severity::degraded : Severity::notice,
      full ? fmt::format("{} of {} has {} of the {} that it may have in use: the kernel kills what "
                         "goes beyond",
                         whose(node), node.host, size_text(*world.memory_now),
                         size_text(*world.memory_max))
           : fmt::format("in {} of {} the kernel has killed for memory since it began", whose(node),
                         node.host));
  if (full && killed) finding.certainty = Certainty::likely;
  finding.evidence = {seen(node, "memory.current, memory.max", memory_text(world),
                           "some room, and nothing killed",
                           "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current "
                           "/sys/fs/cgroup/memory.events")};
  finding.fix = {by_hand(
      node,
      "give it more memory (docker --memory, the pod's limits, sbatch --mem), or let the job use "
      "less: fewer data loader workers, smaller prefetch; /dev/shm counts, too")};
  judge.report(std::move(finding));
}

// --- processes and threads ---

void judge_pids(const NodeFacts& node, const World& world, Judge& judge) {
  if (!world.pids_max || !world.pids_now) return;
  const std::int64_t room = *world.pids_max - *world.pids_now;
  if (room >= kFewThreads) return;
  Finding finding =
      about(node, "host-pids-limit", Severity::degraded,
            fmt::format("{} of {} runs {} threads and may run {}: a rank starts dozens",
                        whose(node), node.host, *world.pids_now, *world.pids_max));
  finding.certainty = Certainty::likely;
  finding.evidence = {seen(node, "pids.current, pids.max",
                           fmt::format("{} of {}", *world.pids_now, *world.pids_max),
                           fmt::format("room for {} or more", kFewThreads),
                           "cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.current")};
  finding.fix = {by_hand(node,
                         "raise it (docker --pids-limit, the kubelet's podPidsLimit, TasksMax of "
                         "the systemd unit or slice), or end what fills it: `ps -eLf | wc -l`")};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const World* world = judge.see(node, "world", node.world);
    if (world == nullptr) continue;
    judge_memory(node, *world, judge);
    judge_pids(node, *world, judge);
  }
}

constexpr std::string_view kMemoryCauses[] = {"host-out-of-memory"};
constexpr Page kMemoryPage{
    .meaning =
        "A container, a pod or a Slurm step may use so much memory and no more, whatever the host "
        "has left. What goes beyond is killed, often a data loader or a rank, and the others wait "
        "for it. What lies in /dev/shm counts; files in the page cache do not.",
    .confirm =
        "`cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory.current /sys/fs/cgroup/"
        "memory.events` in the job's own world (version 1: /sys/fs/cgroup/memory/"
        "memory.limit_in_bytes); `dmesg -T | grep -i 'memory cgroup out of memory'`.",
    .fix = "A larger limit (`docker run --memory`, the pod's limits, `sbatch --mem`), or less use.",
    .verify = "oom_kill in memory.events does not grow while the job runs."};
constexpr Page kPidsPage{
    .meaning =
        "The control group may have so many threads and no more. NCCL, torch and data loaders "
        "start dozens for each rank; then `fork: Resource temporarily unavailable`, "
        "`pthread_create "
        "failed`.",
    .confirm = "`cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids.current` in the job's own world.",
    .fix = "`docker run --pids-limit -1`; podPidsLimit of the kubelet; TasksMax of the unit.",
    .verify = "pids.current stays well below pids.max while the job runs."};
constexpr Code kCodes[] = {{.id = "host-memory-limit",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::degraded,
                            .title = "The memory that the container or step may use is used up",
                            .causes = kMemoryCauses,
                            .page = kMemoryPage},
                           {.id = "host-pids-limit",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::degraded,
                            .title = "No more threads may be started",
                            .causes = {},
                            .page = kPidsPage}};

}  // namespace

extern const Check host_group_limits{
    .title = "The control group leaves room for the job", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
