// How a test program asks the real libnccl, without a GPU: its log, its exported functions, and the
// internal ones that its symbol table still names.
#pragma once

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

namespace distdoctor::testing {

constexpr int kSkip = 77;  // this library cannot be asked
constexpr const char* kInitEnv =
    "_Z11ncclInitEnvv";  // reads the config files; before any ncclGetEnv
constexpr const char* kDebugLog = "_Z12ncclDebugLog17ncclDebugLogLevelmPKciS1_z";

// ncclNetSocketInit and ncclIbInit of 2.28.
struct CommConfig {
  int traffic_class = -1;
};
using NetInit = int (*)(void**, std::uint64_t, CommConfig*, void*, void*);

[[noreturn]] inline void skip(const std::string& why) {
  std::cerr << "skipped: " << why << '\n';
  std::exit(kSkip);
}

// A log of NCCL's own, for the life of the process.
class Log {
 public:
  Log() {
    const int fd = mkstemp(path_.data());
    if (fd < 0) skip("no file for the log");
    close(fd);
    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "INIT,BOOTSTRAP,NET,ENV", 1);
    setenv("NCCL_DEBUG_FILE", path_.data(), 1);
  }
  ~Log() { unlink(path_.data()); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // What follows `marker` in the last line that has it.
  [[nodiscard]] std::string after(std::string_view marker) const {
    std::ifstream in(path_.data());
    std::string found;
    for (std::string line; std::getline(in, line);) {
      const auto at = line.find(marker);
      if (at != std::string::npos) found = line.substr(at + marker.size());
    }
    return found;
  }

 private:
  std::array<char, 32> path_{"/tmp/nccl_oracle.XXXXXX"};
};

// The offset of a function in .symtab, which holds the internal ones too; 0 when there is none.
inline std::uint64_t function_offset(const char* path, std::string_view wanted) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return 0;
  void* at = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (at == MAP_FAILED) return 0;
  const char* image = static_cast<const char*>(at);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = image + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(image + sections[i].sh_offset);
    for (std::size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (wanted == names + symbols[k].st_name) return symbols[k].st_value;
    }
  }
  return 0;
}

struct Library {
  void* handle;
  Dl_info info;

  template <class Function>
  [[nodiscard]] Function exported(const char* name) const {
    void* found = dlsym(handle, name);
    if (found == nullptr) skip(std::string("libnccl has no ") + name);
    return reinterpret_cast<Function>(found);
  }
  // Null where the library is stripped.
  template <class Function>
  [[nodiscard]] Function internal(const char* name) const {
    const auto offset = function_offset(info.dli_fname, name);
    if (offset == 0) return nullptr;
    return reinterpret_cast<Function>(static_cast<char*>(info.dli_fbase) + offset);
  }
};

inline Library load() {
  const char* path = std::getenv("DD_LIBNCCL");
  if (path == nullptr) path = "/usr/local/cuda/lib64/libnccl.so.2";
  Library library{.handle = dlopen(path, RTLD_NOW), .info = {}};
  if (library.handle == nullptr) skip(dlerror());
  if (dladdr(library.exported<void*>("ncclGetVersion"), &library.info) == 0) skip("no dladdr");
  return library;
}

inline void print_version(const Library& library) {
  int code = 0;  // major * 10000 + minor * 100 + patch, as from 2.9 on
  library.exported<int (*)(int*)>("ncclGetVersion")(&code);
  std::cout << code / 10000 << '.' << code / 100 % 100 << '.' << code % 100 << '\n';
}

}  // namespace distdoctor::testing
