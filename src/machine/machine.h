// The only doors to a machine: files, the network namespace, our own process, children. A live and
// a captured machine answer alike, so whoever asks never knows which one it is.
#pragma once

#include <distdoctor/facts/host.h>
#include <distdoctor/facts/network.h>

#include "base/deadline.h"
#include "base/error.h"
#include "machine/captured.h"
#include "machine/child.h"
#include "machine/file_tree.h"
#include "machine/processes.h"
#include "machine/sockets.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::machine {

using Environment = std::map<std::string, std::string>;

inline constexpr std::size_t kMostRows = 4'096;  // of routes, of neighbours, of connections

// uname(2), getuid(2), and the clocks.
struct Self {
  std::string hostname = {};
  std::string release = {};
  int uid = 0;
  double now_s = 0;     // since the epoch
  double uptime_s = 0;  // CLOCK_BOOTTIME, which process start times count in
};

// How CapturedMachine::routes_to names a question: "10.0.0.1", "10.0.0.1 from 10.0.0.2".
std::string route_key(const Address& destination, const std::optional<Address>& source);

// All calls are thread-safe, and each may be made from a thread that is given up later.
class Machine {
 public:
  static Result<std::unique_ptr<Machine>> live();
  // `files` may be null: then the files are those of `captured`.
  static std::unique_ptr<Machine> captured(CapturedMachine captured,
                                           std::unique_ptr<FileTree> files = nullptr);
  virtual ~Machine() = default;

  [[nodiscard]] const FileTree& files() const { return *files_; }
  // For a thread that may outlive the machine.
  [[nodiscard]] const std::shared_ptr<const FileTree>& shared_files() const { return files_; }
  [[nodiscard]] virtual const Environment& environment() const = 0;
  [[nodiscard]] virtual Self self() const = 0;
  // getrlimit(2) of this process: memlock, nofile, nproc, stack, core.
  [[nodiscard]] virtual Result<std::map<std::string, Limit>> limits() const = 0;

  // In the kernel's order; of links all but what are files: speed, RDMA device, bond, priorities.
  [[nodiscard]] virtual Result<std::vector<Link>> links() const = 0;
  [[nodiscard]] virtual Result<std::vector<Route>> routes() const = 0;  // kMostRows at most
  [[nodiscard]] virtual Result<std::vector<PolicyRule>> rules() const = 0;
  [[nodiscard]] virtual Result<std::vector<Neighbour>> neighbours() const = 0;
  // Listeners first, TIME-WAIT last; kMostRows beside the listeners.
  [[nodiscard]] virtual Result<Sockets> sockets() const = 0;
  // What `dcb` shows of a link (man 8 dcb-pfc, dcb-app, dcb-apptrust), without ECN, which is files;
  // EOPNOTSUPP where its driver knows none of it.
  [[nodiscard]] virtual Result<LinkQos> qos(const std::string& interface) const = 0;
  // What `ip route get` answers; no route is an answer with `error`, not an Error.
  [[nodiscard]] virtual Result<RouteAnswer> route_to(
      const Address& destination, const std::optional<Address>& source) const = 0;

  // The kernel's ring buffer as it stands, "<6>[   12.345678] text" a line. Denied without
  // CAP_SYSLOG where kernel.dmesg_restrict is 1.
  [[nodiscard]] virtual Result<std::string> kernel_log() const = 0;

  [[nodiscard]] virtual Result<ChildOutput> run(const Child& child, Deadline deadline) const = 0;

  // Read at the first call and kept: for a fresh look make another Machine, which costs nothing.
  [[nodiscard]] const Processes& processes() const;
  [[nodiscard]] const SocketOwners& socket_owners() const;

 protected:
  explicit Machine(std::shared_ptr<const FileTree> files) : files_(std::move(files)) {}

 private:
  std::shared_ptr<const FileTree> files_;
  mutable std::once_flag processes_read_;
  mutable Processes processes_;
  mutable std::once_flag owners_read_;
  mutable SocketOwners owners_;
};

}  // namespace distdoctor::machine
