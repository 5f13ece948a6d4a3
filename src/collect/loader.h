// In which order the dynamic loader looks for a shared library (man 8 ld.so; glibc's elf/dl-load.c
// _dl_map_object). Left out: the glibc-hwcaps folders, which hold no library that we ask for.
#pragma once

#include "collect/elf.h"
#include "collect/libraries.h"
#include "machine/file_tree.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::collect {

// What the loader goes by in one process.
struct LoaderView {
  std::string preload = {};       // LD_PRELOAD
  std::string library_path = {};  // LD_LIBRARY_PATH
  std::string folder = {};   // the working one; empty: unknown, then relative paths are left out
  std::string program = {};  // its path without links: $ORIGIN in LD_LIBRARY_PATH
};

struct Loaded {
  std::string path = {};  // as it was opened, links and all: $ORIGIN goes by that
  Elf elf = {};
};

ReadPart parts_of(const machine::FileTree& files, const std::string& path);
std::optional<Loaded> loaded(const machine::FileTree& files, const std::string& path);

// The entries of LD_PRELOAD, or of /etc/ld.so.preload without its comments.
std::vector<std::string> preload_entries(std::string_view text);

// All files that `name` would lead to, the one that the loader takes first. `chain` is who asks for
// it, then who loaded that, up to the program; what is not known may be missing.
std::vector<LibraryFile> loader_order(const machine::FileTree& files,
                                      const LoaderView& view,
                                      std::span<const Loaded> chain,
                                      std::string_view name);

}  // namespace distdoctor::collect
