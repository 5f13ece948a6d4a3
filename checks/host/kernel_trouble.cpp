// What the kernel of a node wrote of late about programs: killed for memory, or stuck in it.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/views.h>
#include <distdoctor/workers.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::checks {
namespace {

constexpr double kRecentSeconds = 900;  // what began a job's trouble lies hardly further back
constexpr std::size_t kMostRows = 3;

// "Killed process 4711 (python3) total-vm:..." (mm/oom_kill.c); the name of a thread of torch is
// pt_main_thread or pt_data_worker.
bool kills_a_rank(const KernelLine& line) {
  constexpr std::array<std::string_view, 3> kNames = {"(python", "(pt_", "(torchrun"};
  return line.text.find("Killed process ") != std::string::npos &&
         std::ranges::any_of(kNames, [&](std::string_view name) {
           return line.text.find(name) != std::string::npos;
         });
}

// Of "Killed process 4711 (python3) ..., UID:5001 pgtables:..." (since Linux 5.3), or of the line
// before it, "oom-kill:constraint=CONSTRAINT_MEMCG,...,task=python3,pid=4711,uid=5001".
std::optional<int> number_after(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return std::nullopt;
  const auto rest = text.substr(at + word.size());
  return number(rest.substr(0, rest.find_first_not_of("0123456789")));
}

std::optional<int> uid_of(const KernelLog& log, const KernelLine& kill) {
  if (const auto uid = number_after(kill.text, " UID:")) return uid;
  const auto pid = number_after(kill.text, "Killed process ");
  if (!pid) return std::nullopt;
  for (const KernelLine& line : log.lines) {
    const bool same = line.text.starts_with("oom-kill:") && number_after(line.text, ",pid=") == pid;
    if (same && std::abs(line.uptime_s - kill.uptime_s) < 60) {
      return number_after(line.text, ",uid=");
    }
  }
  return std::nullopt;
}

// Whose it was that was killed.
enum class Owner : std::uint8_t { unknown, other, ours };

// Ours are the user's who asks, and the users' whose ranks have this job's MASTER_PORT.
bool is_ours(const Case& c, const NodeFacts& node, int uid) {
  if (node.identity.known() && node.identity->uid == uid) return true;
  const auto port = c.cluster.job.settings.find("MASTER_PORT");
  if (port == c.cluster.job.settings.end() || !node.processes.known()) return false;
  return std::ranges::any_of(*node.processes, [&](const TrainingProcess& process) {
    return process.uid == uid && variable(process, "MASTER_PORT") == port->second.value;
  });
}

Owner owner_of(const Case& c, const NodeFacts& node, const KernelLine& kill) {
  const auto uid = uid_of(*node.kernel_log, kill);
  if (!uid) return Owner::unknown;
  return is_ours(c, node, *uid) ? Owner::ours : Owner::other;
}

// The limit of a control group, which need not be the job's: the node itself has memory.
bool of_a_group(const KernelLine& line) {
  return line.text.starts_with("Memory cgroup");
}

// A rank or a data loader of this job, as far as the log tells: where it does not, the node that
// ran out of memory is in trouble even so.
bool concerns_the_job(const Case& c, const NodeFacts& node, const KernelLine& kill) {
  const Owner owner = owner_of(c, node, kill);
  return owner == Owner::ours || (owner == Owner::unknown && !of_a_group(kill));
}

// "INFO: task python3:4711 blocked for more than 120 seconds." (kernel/hung_task.c)
bool is_stuck(const KernelLine& line) {
  return line.text.starts_with("INFO: task ") &&
         line.text.find(" blocked for more than ") != std::string::npos;
}

std::vector<const KernelLine*> recent(const KernelLog& log, bool (*wanted)(const KernelLine&)) {
  std::vector<const KernelLine*> lines;
  for (const KernelLine& line : log.lines) {
    if (log.now_s - line.uptime_s <= kRecentSeconds && wanted(line)) lines.push_back(&line);
  }
  return lines;
}

Finding about(const NodeFacts& node,
              const char* code,
              const std::vector<const KernelLine*>& lines,
              std::string summary) {
  const KernelLog& log = *node.kernel_log;
  Finding finding{.code = code,
                  .severity = Severity::notice,
                  .certainty = Certainty::possible,
                  .symptom = Symptom::hang,
                  .subjects = {.nodes = {node.host}},
                  .summary = std::move(summary)};
  for (const KernelLine* line : lines) {
    if (finding.evidence.size() == kMostRows) break;
    finding.evidence.push_back(
        {.node = node.host,
         .fact = "kernel log",
         .observed = fmt::format("{:.0f} s ago: {}", log.now_s - line->uptime_s, line->text),
         .expected = "nothing of the kind",
         .command = "dmesg -T | tail -n 50"});
  }
  return finding;
}

std::string killed_text(const NodeFacts& node, std::size_t count, bool group) {
  return fmt::format(
      "{} ran out of memory: the kernel killed {} Python process{} within the last "
      "{:.0f} minutes",
      group ? "a control group of " + node.host : node.host, count, count == 1 ? "" : "es",
      kRecentSeconds / 60);
}

void judge_killed(const Case& c, const NodeFacts& node, Judge& judge) {
  const auto all = recent(*node.kernel_log, kills_a_rank);
  if (all.empty()) return;
  std::vector<const KernelLine*> ours;
  std::ranges::copy_if(all, std::back_inserter(ours),
                       [&](const KernelLine* line) { return concerns_the_job(c, node, *line); });
  const auto& lines = ours.empty() ? all : ours;
  const bool group = std::ranges::all_of(lines, [](const auto* line) { return of_a_group(*line); });
  Finding finding =
      about(node, "host-out-of-memory", lines, killed_text(node, lines.size(), group));
  finding.symptom = Symptom::crash;
  if (ours.empty()) {
    finding.summary += "; none of them is known to be this job's";
  } else {
    finding.severity = Severity::degraded;
    finding.certainty = Certainty::likely;
  }
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = "ask the scheduler for more memory, or use less: fewer data loader "
                          "workers, smaller prefetch, pinned memory only where it helps"}};
  judge.report(std::move(finding));
}

void judge_stuck(const NodeFacts& node, Judge& judge) {
  const auto lines = recent(*node.kernel_log, is_stuck);
  if (lines.empty()) return;
  Finding finding = about(
      node, "host-task-stuck", lines,
      fmt::format("on {} the kernel reported {} task{} stuck within the last {:.0f} minutes",
                  node.host, lines.size(), lines.size() == 1 ? "" : "s", kRecentSeconds / 60));
  finding.fix = {{.node = node.host,
                  .kind = Fix::Kind::manual,
                  .text = "see what they wait for (`dmesg -T`, the call trace below the line): a "
                          "file server that does not answer, a disk, or a GPU's driver"}};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    if (judge.see(node, "kernel_log", node.kernel_log) == nullptr) continue;
    judge_killed(c, node, judge);
    judge_stuck(node, judge);
  }
}

constexpr std::string_view kKilledCauses[] = {"env-rank-missing"};
constexpr Page kKilledPage{
    .meaning =
        "The kernel killed a Python process of this node for memory. If it was a rank, the "
        "others now wait for it, until their time-out; if it was a data loader, its rank "
        "waits. What is known to be another user's, or was killed at the limit of a control group "
        "that may be another job's, is told as a notice only.",
    .confirm = "`dmesg -T | grep -i 'killed process'`; torchrun prints exit code -9.",
    .fix = "Give the job more memory, or let it use less.",
    .verify = "`dmesg -T` has no new line while the job runs; `free -g` shows what is left."};
constexpr Page kStuckPage{
    .meaning =
        "A task has been waiting inside the kernel for minutes. What it waits for is in the "
        "call trace below the line: a file system that does not answer, a disk, a driver. A "
        "rank among such tasks cannot go on, nor be killed.",
    .confirm = "`dmesg -T`; `ps -eo pid,stat,wchan:20,args | grep ' D'`.",
    .fix = "Bring back what it waits for; a wedged driver needs a reboot.",
    .verify = "`ps` shows no process in state D for long."};
constexpr Code kCodes[] = {{.id = "host-out-of-memory",
                            .fault_class = FaultClass::rank_missing,
                            .worst = Severity::degraded,
                            .title = "The kernel killed a Python process for memory",
                            .causes = kKilledCauses,
                            .page = kKilledPage},
                           {.id = "host-task-stuck",
                            .fault_class = FaultClass::unknown_hang,
                            .worst = Severity::notice,
                            .title = "Tasks are stuck in the kernel",
                            .causes = {},
                            .page = kStuckPage}};

}  // namespace

extern const Check host_kernel_trouble{
    .title = "The kernel reports no killed and no stuck programs", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
