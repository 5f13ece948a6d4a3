#include "fleet/namespaces.h"

#include "base/fd.h"
#include "machine/child.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::fleet {
namespace {

std::uint64_t inode(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

struct Entry {
  Fd fd;
  int kind = 0;
};

// The mount namespace last: after it /proc is another one.
constexpr std::pair<std::string_view, int> kNamespaces[] = {
    {"uts", CLONE_NEWUTS}, {"ipc", CLONE_NEWIPC}, {"net", CLONE_NEWNET},
    {"pid", CLONE_NEWPID}, {"mnt", CLONE_NEWNS},
};

Result<std::vector<Entry>> open_others(int pid) {
  std::vector<Entry> entries;
  for (const auto& [name, kind] : kNamespaces) {
    const std::string path = fmt::format("/proc/{}/ns/{}", pid, name);
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.valid()) return std::unexpected(errno_error("open", path));
    if (inode(path) == inode(fmt::format("/proc/self/ns/{}", name))) continue;
    entries.push_back({std::move(fd), kind});
  }
  return entries;
}

}  // namespace

Result<bool> enter_namespaces_of(int pid) {
  DD_TRY(const std::vector<Entry> entries, open_others(pid));
  ::prctl(PR_SET_DUMPABLE, 0);  // its processes will see us in /proc: they may not open our files
  const std::string root_path = fmt::format("/proc/{}/root", pid);
  const Fd root(::open(root_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  bool fork = false;
  bool moved = false;
  for (const Entry& entry : entries) {
    if (::setns(entry.fd.get(), entry.kind) != 0) {
      return std::unexpected(errno_error("enter the namespaces of", std::to_string(pid)));
    }
    fork = fork || entry.kind == CLONE_NEWPID;
    moved = moved || entry.kind == CLONE_NEWNS;
  }
  if (moved) machine::run_no_more_children();
  if (moved && root.valid() && (::fchdir(root.get()) != 0 || ::chroot(".") != 0)) {
    return std::unexpected(errno_error("change to", root_path));
  }
  return fork;
}

std::uint64_t net_namespace() {
  return inode("/proc/self/ns/net");
}

}  // namespace distdoctor::fleet
