// nccl_bootstrap: the real NCCL bootstrap (unique id, root, ring) between hosts, without a GPU.
//
//   nccl_bootstrap RANK NRANKS ID_FILE
//
// Rank 0 asks the real library for a unique id, which starts the real bootstrap root, and writes it
// to ID_FILE; the others wait for that file (it stands for the TCPStore through which torch hands
// the id out). Then every rank runs the library's own bootstrapInit and one bootstrap barrier. Both
// are internal functions, found in the library's symbol table, called with a zeroed communicator
// whose few needed fields lie at the offsets of NCCL 2.28.9 (from that build's debug information):
// any other version is refused with exit status 77, as is a machine without the library. DD_LIBNCCL
// names the library. Exit: 0 all ranks met, 1 not, 77 cannot run here.
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kSkip = 77;
constexpr int kKnownVersion = 22809;
constexpr std::size_t kCommBytes = 1082968;  // sizeof(ncclComm) of 2.28.9
constexpr std::size_t kSharedBytes = 2072;   // sizeof(ncclSharedResources)
constexpr std::size_t kOffSharedRes = 0x88;
constexpr std::size_t kOffBootstrap = 0x6708;
constexpr std::size_t kOffCommHash = 0x1044c8;
constexpr std::size_t kOffRank = 0x1044d0;
constexpr std::size_t kOffRanks = 0x1044d4;
constexpr std::size_t kOffCudaDev = 0x1044d8;
constexpr std::size_t kOffNvmlDev = 0x1044dc;
constexpr std::size_t kOffAbortFlag = 0x104ff8;
constexpr std::size_t kIdBytes = 128;

using Id = std::array<char, kIdBytes>;

[[noreturn]] void skip(const std::string& why) {
  std::cerr << "nccl_bootstrap: skipped: " << why << '\n';
  std::exit(kSkip);
}

/// A file mapped for reading, for the life of the process.
const char* map_file(const char* path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat info{};
  if (fd < 0 || fstat(fd, &info) != 0) return nullptr;
  void* at = mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<const char*>(at);
}

/// The offset of a function in .symtab (not only the exported ones), 0 when there is none.
std::uint64_t function_offset(const char* image, std::string_view wanted) {
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const char* names = image + sections[sections[i].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(image + sections[i].sh_offset);
    for (std::size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC && wanted == names + symbols[k].st_name) {
        return symbols[k].st_value;
      }
    }
  }
  return 0;
}

struct Library {
  int (*get_unique_id)(void*);
  int (*init_env)();
  int (*net_init)();
  int (*bootstrap_init)(int, void*, void*);
  int (*barrier)(void*, int, int, int);
};

template <class F>
void bind(F& function, const char* image, char* base, std::string_view name) {
  const std::uint64_t offset = function_offset(image, name);
  if (offset == 0) skip("libnccl has no symbol " + std::string(name) + " (stripped)");
  function = reinterpret_cast<F>(base + offset);
}

Library load() {
  const char* path = std::getenv("DD_LIBNCCL");
  if (path == nullptr) path = "/usr/local/cuda/lib64/libnccl.so.2";
  void* handle = dlopen(path, RTLD_NOW);
  if (handle == nullptr) skip(dlerror());
  int version = 0;
  void* get_version = dlsym(handle, "ncclGetVersion");
  reinterpret_cast<int (*)(int*)>(get_version)(&version);
  if (version != kKnownVersion) {
    skip("knows NCCL 2.28.9 only, this is " + std::to_string(version));
  }
  Dl_info info{};
  const char* image = dladdr(get_version, &info) != 0 ? map_file(info.dli_fname) : nullptr;
  if (image == nullptr) skip("cannot read " + std::string(path));
  Library nccl{};
  nccl.get_unique_id = reinterpret_cast<int (*)(void*)>(dlsym(handle, "ncclGetUniqueId"));
  auto* base = static_cast<char*>(info.dli_fbase);
  bind(nccl.init_env, image, base, "_Z11ncclInitEnvv");
  bind(nccl.net_init, image, base, "_Z16bootstrapNetInitv");
  bind(nccl.bootstrap_init, image, base, "_Z13bootstrapInitiPvP8ncclComm");
  bind(nccl.barrier, image, base, "_Z16bootstrapBarrierPviii");
  return nccl;
}

/// The id as rank 0 made it, or as it lies in the file once it is whole. False: the library
/// refused.
bool obtain_id(const Library& nccl, int rank, const std::string& path, Id& id) {
  if (rank == 0) {
    if (nccl.get_unique_id(id.data()) != 0) return false;
    std::ofstream(path + ".tmp", std::ios::binary).write(id.data(), kIdBytes);
    return std::rename((path + ".tmp").c_str(), path.c_str()) == 0;
  }
  if (nccl.net_init() != 0) return false;
  for (;; usleep(20000)) {
    std::ifstream in(path, std::ios::binary);
    if (in.read(id.data(), kIdBytes)) return true;
  }
}

template <class T>
void put(std::vector<char>& comm, std::size_t offset, T value) {
  std::memcpy(comm.data() + offset, &value, sizeof value);
}

bool meet(const Library& nccl, int rank, int ranks, Id& id) {
  static std::uint32_t abort_flag = 0;
  static std::vector<char> comm(kCommBytes);
  static std::vector<char> shared(kSharedBytes);
  put(comm, kOffRank, rank);
  put(comm, kOffRanks, ranks);
  put(comm, kOffCudaDev, rank);
  put(comm, kOffNvmlDev, rank);
  put(comm, kOffCommHash, std::uint64_t{0xd15d0c70a0000000U});
  put(comm, kOffAbortFlag, &abort_flag);
  put(comm, kOffSharedRes, shared.data());
  if (nccl.bootstrap_init(1, id.data(), comm.data()) != 0) return false;
  void* state = nullptr;
  std::memcpy(&state, comm.data() + kOffBootstrap, sizeof state);
  return nccl.barrier(state, rank, ranks, 7) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: nccl_bootstrap RANK NRANKS ID_FILE\n";
    return 2;
  }
  const int rank = std::atoi(argv[1]);
  const int ranks = std::atoi(argv[2]);
  const Library nccl = load();
  nccl.init_env();
  Id id{};
  const bool met = obtain_id(nccl, rank, argv[3], id) && meet(nccl, rank, ranks, id);
  std::cout << "rank " << rank << " of " << ranks << ": " << (met ? "OK" : "FAILED") << std::endl;
  _exit(met ? 0 : 1);  // NCCL's own threads must not outlive main's statics
}
