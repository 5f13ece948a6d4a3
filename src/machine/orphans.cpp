#include "machine/orphans.h"

#include "base/fd.h"
#include "base/text.h"
#include "machine/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill() is not in <csignal>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::machine {
namespace {

constexpr std::chrono::milliseconds kLook{2};

std::atomic<bool> adopting = false;

std::string text_of(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> block{};
  while (fd.valid()) {
    const auto got = ::read(fd.get(), block.data(), block.size());
    if (got <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  return text;
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

std::vector<std::string> numbers_in(const char* path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, CloseFolder> folder(::opendir(path));
  if (!folder) return names;
  while (const dirent* entry = ::readdir(folder.get())) {  // NOLINT(concurrency-mt-unsafe)
    if (parse_int<pid_t>(std::string_view(entry->d_name))) names.emplace_back(entry->d_name);
  }
  return names;
}

// Field 4 of /proc/PID/stat, behind the name, which may hold anything.
pid_t parent_of(const std::string& pid) {
  const std::string text = text_of("/proc/" + pid + "/stat");
  const auto words =
      split_words(std::string_view(text).substr(std::min(text.rfind(')'), text.size())));
  return words.size() > 2 ? parse_int<pid_t>(words[2]).value_or(0) : 0;
}

// In a PID namespace whose /proc is another one's, the numbers there are not ours.
bool is_our_proc() {
  std::array<char, 16> self{};
  const auto length = ::readlink("/proc/self", self.data(), self.size());
  return length > 0 && std::string_view(self.data(), static_cast<std::size_t>(length)) ==
                           std::to_string(::getpid());
}

// By thread, as the kernel lists them (CONFIG_PROC_CHILDREN); else by a look at every process.
std::vector<pid_t> children() {
  std::vector<pid_t> pids;
  if (!is_our_proc()) return pids;
  const std::string main_list = "/proc/self/task/" + std::to_string(::getpid()) + "/children";
  if (::access(main_list.c_str(), F_OK) != 0) {
    for (const std::string& name : numbers_in("/proc")) {
      const auto pid = parse_int<pid_t>(name);
      if (pid && parent_of(name) == ::getpid()) pids.push_back(*pid);
    }
    return pids;
  }
  for (const std::string& thread : numbers_in("/proc/self/task")) {
    const std::string listed = text_of("/proc/self/task/" + thread + "/children");
    for (const auto word : split_words(listed)) {
      if (const auto pid = parse_int<pid_t>(word)) pids.push_back(*pid);
    }
  }
  return pids;
}

}  // namespace

void adopt_orphans() {
  if (!is_our_proc() || !children().empty()) return;
  adopting = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

void end_children(Deadline deadline) {
  if (!adopting) return;
  run_no_more_children();
  for (auto left = children(); !left.empty(); left = children()) {
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    if (deadline.expired()) return;
    ::poll(nullptr, 0, static_cast<int>(kLook.count()));
    for (const pid_t pid : left) ::waitpid(pid, nullptr, WNOHANG);
  }
}

}  // namespace distdoctor::machine
