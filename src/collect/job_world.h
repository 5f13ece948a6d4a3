// What a rank of this node loads its libraries by: the environment of one that is alive, or else
// our own, which need not be the job's, under what the job says (CollectRequest::settings).
#pragma once

#include "base/job_places.h"
#include "collect/loader.h"
#include "machine/machine.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

struct JobWorld {
  int pid = 0;  // 0: no rank is alive here, or none whose files and environment we see
  std::map<std::string, std::string> environment = {};  // secrets are in it
  std::set<std::string> said = {};  // variables in it that are the job's own, without a rank
  // The job sets them to what only its shell knows; of a list of folders the rest is in there.
  std::set<std::string> lost = {};
  LoaderView loader = {};
  // Python's folders of packages, those that it looks through first at the front.
  std::vector<std::string> packages = {};
  std::string torch_library = {};  // mapped by that rank

  int nccl_pid = 0;  // of the first rank that has NCCL mapped, also where its files are not ours
  std::string nccl_library = {};
  bool nccl_here = false;  // we see that file

  // "LD_LIBRARY_PATH, of pid 7", "LD_LIBRARY_PATH, of the job".
  [[nodiscard]] std::string origin(std::string_view what) const;
  [[nodiscard]] std::string variable(const std::string& name) const;  // empty: not set
};

JobWorld job_world(const machine::Machine& machine, const JobPlaces& said = {});
// Our own environment, under what the job says.
machine::Environment under(const JobPlaces& said, const machine::Environment& environment);

// In another mount namespace a path names another file, or none.
bool sees_our_files(const machine::FileTree& files, int pid);

}  // namespace distdoctor::collect
