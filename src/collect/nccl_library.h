// Which libnccl a program of this machine would load.
#pragma once

#include <distdoctor/facts/host.h>

#include "collect/job_world.h"
#include "collect/torch.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// "2.28.9" of "/usr/lib/libnccl.so.2.28.9"; "" without three numbers.
std::string version_of_file_name(std::string_view path);
struct NcclBuild {
  std::string version = {};
  std::string cuda = {};
  bool operator==(const NcclBuild&) const = default;
};
// Of the text "NCCL version 2.28.9+cuda13.0" that each build holds among its constants.
NcclBuild build_of_bytes(std::string_view bytes);

// Every copy, the one that a rank has or would load first: mapped by it, inside torch's own
// library, then as the loader looks for it (loader.h); last what lies in Python's packages.
std::vector<NcclLibrary> nccl_copies(const machine::FileTree& files,
                                     const JobWorld& world,
                                     const Torch& torch);

}  // namespace distdoctor::collect
