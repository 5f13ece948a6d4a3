// Processes of training jobs that are alive on a node, as their own /proc entries tell.
#pragma once

#include <distdoctor/enum_names.h>
#include <distdoctor/observed.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor {

enum class ProcessRole : std::uint8_t { launcher, agent, worker };
template <>
struct EnumNames<ProcessRole> {
  // launcher: srun, mpirun, a batch script; agent: torchrun; worker: has a rank
  static constexpr std::string_view values[] = {"launcher", "agent", "worker"};
};

struct TrainingProcess {
  int pid = 0;
  int parent = 0;
  int uid = 0;
  std::string user = {};
  ProcessRole role = ProcessRole::worker;
  std::string state = {};  // R, S, D, Z, T
  double age_s = 0;
  std::vector<std::string> argv = {};  // secrets masked
  // Allow-listed names only. It is the environment at exec: absence here proves nothing, since
  // a program may have set the variable itself.
  Observed<std::map<std::string, std::string>> env = {};
  bool orphan = false;                // its launcher is gone: the parent is init or a reaper
  bool our_network = true;            // lives in the network namespace that the agent sees
  bool has_established_peer = false;  // a TCP connection to another host
  std::string nccl_library = {};      // mapped libnccl.so*, or empty
  bool operator==(const TrainingProcess&) const = default;
};

template <class V, Is<TrainingProcess> T>
void fields(V& v, T& x) {
  v("pid", x.pid);
  v("parent", x.parent);
  v("uid", x.uid);
  v("user", x.user);
  v("role", x.role);
  v("state", x.state);
  v("age_s", x.age_s);
  v("argv", x.argv);
  v("env", x.env);
  v("orphan", x.orphan);
  v("our_network", x.our_network);
  v("has_established_peer", x.has_established_peer);
  v("nccl_library", x.nccl_library);
}

}  // namespace distdoctor
