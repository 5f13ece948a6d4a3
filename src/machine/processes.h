// All processes that /proc shows (man 5 proc), and who holds which socket.
#pragma once

#include <distdoctor/observed.h>

#include "base/error.h"
#include "machine/file_tree.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::machine {

struct Process {
  int pid = 0;
  int parent = 0;
  int uid = 0;             // real
  std::string state = {};  // R, S, D, Z, T
  double age_s = 0;
  std::string name = {};               // at most 15 bytes; threads of the kernel have no more
  std::vector<std::string> argv = {};  // empty for a thread of the kernel and a zombie
  Observed<std::map<std::string, std::string>> environment = {};  // at exec; secrets are in it
  bool operator==(const Process&) const = default;
};

struct Processes {
  std::vector<Process> all = {};  // by pid
  // Nothing hides: we see the whole machine's processes, and may look into each.
  bool whole_machine = false;
  // We may look into each process of our pid namespace.
  bool whole_namespace = false;

  [[nodiscard]] const Process* find(int pid) const;
};

class SocketOwners {
 public:
  SocketOwners() = default;
  SocketOwners(std::vector<std::pair<std::uint64_t, int>> held, bool complete);

  // The lowest pid that holds the socket, which is the one that opened it.
  [[nodiscard]] std::optional<int> owner(std::uint64_t inode) const;
  [[nodiscard]] bool holds(int pid, std::uint64_t inode) const;
  // No process refused to show its descriptors.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  std::vector<std::pair<std::uint64_t, int>> held_;  // inode, pid; sorted
  bool complete_ = false;
};

struct ProcessStat {  // of /proc/PID/stat
  std::string name = {};
  std::string state = {};
  int parent = 0;
  std::uint64_t start_ticks = 0;  // since boot, in 1/100 s
  bool operator==(const ProcessStat&) const = default;
};
// The name may hold blanks, brackets and newlines.
std::optional<ProcessStat> parse_process_stat(std::string_view text);
std::optional<int> parse_real_uid(std::string_view status);          // of /proc/PID/status
std::vector<std::string> parse_command_line(std::string_view text);  // of /proc/PID/cmdline
// Of /proc/PID/environ. What has no "=" is passed over; of two entries the first counts, as for
// getenv(3).
std::map<std::string, std::string> parse_environment(std::string_view text);
std::optional<std::uint64_t> parse_socket_link(std::string_view target);  // "socket:[4711]"

std::vector<int> pids(const FileTree& files);
Processes read_processes(const std::shared_ptr<const FileTree>& files, double uptime_s);
SocketOwners read_socket_owners(const FileTree& files);

}  // namespace distdoctor::machine
