#include "machine/processes.h"

#include "base/text.h"
#include "machine/patient_files.h"

#include <algorithm>
#include <cerrno>

namespace distdoctor::machine {
namespace {

constexpr std::size_t kMostStrings = std::size_t{1} << 20;  // of argv, of an environment
constexpr std::size_t kMostDescriptors = 1'000'000;         // of all processes together
constexpr double kTicksPerSecond = 100;                     // USER_HZ, on every architecture
// PROC_PID_INIT_INO of include/linux/proc_ns.h: the pid namespace that sees every process.
constexpr std::string_view kFirstPidNamespace = "pid:[4026531836]";

std::string folder_of(int pid) {
  return "/proc/" + std::to_string(pid);
}

// A process may end at any moment: then there is none.
std::optional<Process> read_process(const FileTree& files,
                                    PatientFiles& patient,
                                    int pid,
                                    double uptime_s) {
  const auto folder = folder_of(pid);
  const auto stat_text = files.read(folder + "/stat");
  const auto stat = stat_text ? parse_process_stat(*stat_text) : std::nullopt;
  if (!stat) return std::nullopt;
  Process process{.pid = pid, .parent = stat->parent, .state = stat->state, .name = stat->name};
  process.age_s =
      std::max(0.0, uptime_s - static_cast<double>(stat->start_ticks) / kTicksPerSecond);
  const auto status = files.read(folder + "/status");
  process.uid = status ? parse_real_uid(*status).value_or(0) : 0;
  const auto arguments = patient.read_head(folder + "/cmdline", kMostStrings);
  if (!arguments) process.environment = unknown_because(arguments.error());
  if (arguments) process.argv = parse_command_line(*arguments);
  if (process.argv.empty()) return process;
  const auto environment = patient.read_head(folder + "/environ", kMostStrings);
  if (environment)
    process.environment = parse_environment(*environment);
  else
    process.environment = unknown_because(environment.error());
  return process;
}

bool hidden(const Process& process) {
  if (process.environment.known()) return false;
  const auto kind = process.environment.why().kind;
  return kind == Why::denied || kind == Why::timed_out;
}

}  // namespace

const Process* Processes::find(int pid) const {
  const auto found = std::ranges::lower_bound(all, pid, {}, &Process::pid);
  return found != all.end() && found->pid == pid ? &*found : nullptr;
}

SocketOwners::SocketOwners(std::vector<std::pair<std::uint64_t, int>> held, bool complete)
    : held_(std::move(held)), complete_(complete) {
  std::ranges::sort(held_);
}

std::optional<int> SocketOwners::owner(std::uint64_t inode) const {
  const auto found = std::ranges::lower_bound(held_, std::pair{inode, 0});
  if (inode == 0 || found == held_.end() || found->first != inode) return std::nullopt;
  return found->second;
}

bool SocketOwners::holds(int pid, std::uint64_t inode) const {
  return inode != 0 && std::ranges::binary_search(held_, std::pair{inode, pid});
}

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const auto words = split_words(text.substr(close + 1));
  if (words.size() < 20) return std::nullopt;
  const auto parent = parse_int<int>(words[1]);
  const auto start = parse_int<std::uint64_t>(words[19]);
  if (!parent || !start) return std::nullopt;
  return ProcessStat{.name = std::string(text.substr(open + 1, close - open - 1)),
                     .state = std::string(words[0]),
                     .parent = *parent,
                     .start_ticks = *start};
}

std::optional<int> parse_real_uid(std::string_view status) {
  for (const auto line : split_lines(status)) {
    const auto uids = after_prefix(line, "Uid:");
    if (!uids) continue;
    const auto words = split_words(*uids);
    return words.empty() ? std::nullopt : parse_int<int>(words[0]);
  }
  return std::nullopt;
}

std::vector<std::string> parse_command_line(std::string_view text) {
  if (text.ends_with('\0')) text.remove_suffix(1);
  std::vector<std::string> arguments;
  if (text.empty()) return arguments;
  for (const auto argument : split(text, '\0')) arguments.emplace_back(argument);
  return arguments;
}

std::map<std::string, std::string> parse_environment(std::string_view text) {
  std::map<std::string, std::string> environment;
  for (const auto entry : split(text, '\0')) {
    const auto equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return environment;
}

std::optional<std::uint64_t> parse_socket_link(std::string_view target) {
  const auto rest = after_prefix(target, "socket:[");
  const auto number = rest ? before_suffix(*rest, "]") : std::nullopt;
  return number ? parse_int<std::uint64_t>(*number) : std::nullopt;
}

std::vector<int> pids(const FileTree& files) {
  std::vector<int> numbers;
  for (const auto& name : files.list("/proc").value_or(std::vector<std::string>{})) {
    if (const auto pid = parse_int<int>(name)) numbers.push_back(*pid);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Processes read_processes(const std::shared_ptr<const FileTree>& files, double uptime_s) {
  Processes processes;
  PatientFiles patient(files);
  for (const int pid : pids(*files)) {
    if (auto process = read_process(*files, patient, pid, uptime_s)) {
      processes.all.push_back(*std::move(process));
    }
  }
  // hidepid= shows not even process 1.
  const auto* const first = processes.find(1);
  processes.whole_namespace =
      first != nullptr && first->environment.known() && std::ranges::none_of(processes.all, hidden);
  processes.whole_machine = processes.whole_namespace && files->read_link("/proc/self/ns/pid") ==
                                                             std::string(kFirstPidNamespace);
  return processes;
}

SocketOwners read_socket_owners(const FileTree& files) {
  std::vector<std::pair<std::uint64_t, int>> held;
  bool complete = true;
  std::size_t seen = 0;
  for (const int pid : pids(files)) {
    const auto links = files.links_in(folder_of(pid) + "/fd");
    if (!links) {
      complete = complete && links.error().errno_value != EACCES;
      continue;
    }
    seen += links->size();
    if (seen > kMostDescriptors) return {std::move(held), false};
    for (const auto& [name, target] : *links) {
      if (const auto inode = parse_socket_link(target)) held.emplace_back(*inode, pid);
    }
  }
  complete = complete && !held.empty();  // no /proc at all shows nobody's
  return {std::move(held), complete};
}

}  // namespace distdoctor::machine
