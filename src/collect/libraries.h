// Which file a program of this machine would load for the name of a shared library.
#pragma once

#include "base/job_places.h"
#include "machine/machine.h"

#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

struct LibraryFile {
  std::string path = {};    // without symbolic links
  std::string origin = {};  // "LD_LIBRARY_PATH", "DT_RPATH of libtorch_cuda.so", or the folder
  std::string opened = {};  // the path by which the loader comes to it
  bool operator==(const LibraryFile&) const = default;
};

// In the loader's order for a program with our own environment under what the job says
// (CollectRequest::settings; loader.h). Empty: there is none.
std::vector<LibraryFile> find_library(const machine::Machine& machine,
                                      std::string_view name,
                                      const JobPlaces& said = {});

// Where a chain of symbolic links ends: libnccl.so.2 -> libnccl.so.2.28.9.
std::string real_path(const machine::FileTree& files, std::string path);
// "550.54.15" of "/usr/lib/libcuda.so.550.54.15" for "libcuda.so.1"; "" of another name.
std::string version_after(std::string_view path, std::string_view name);
// Paths of a library in /etc/ld.so.cache (glibc-ld.so.cache1.1, elf/dl-cache.c), without those for
// certain processors only.
std::vector<std::string> all_in_ld_cache(std::string_view cache, std::string_view name);

}  // namespace distdoctor::collect
