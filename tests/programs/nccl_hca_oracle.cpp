// nccl_hca_oracle: which RDMA ports, and which GIDs of them, the real NCCL takes with this
// environment and with the libibverbs that its LD_LIBRARY_PATH leads to (fake_ibverbs); no GPU.
//
//   hcas [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE         in NCCL's words; "hcas none": it goes on without
//   gid mlx5_1:1 3
// Both are answers of internal functions (ncclIbInit, ncclIbGetGidIndex), which are found in the
// library's symbol table with the signatures of 2.28. `--version` prints "2.28.9" instead.
// DD_LIBNCCL names the library. Exit 77: there is none, or it is another build.
#include "real_nccl.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

constexpr const char* kIbInit =
    "_Z10ncclIbInitPPvmP23ncclNetCommConfig_v11_tPFv17ncclDebugLogLevelmPKciS5_zE"
    "PF12ncclResult_tS0_iS_lS_E";
constexpr const char* kGidIndex = "_ZL17ncclIbGetGidIndexP11ibv_contexthP13ibv_port_attrPi";
using GidIndex = int (*)(void* context, std::uint8_t port, void* attributes, int* index);

// The very library that NCCL has opened.
struct Verbs {
  void* handle = dlopen("libibverbs.so", RTLD_NOW);

  template <class Function>
  [[nodiscard]] Function call(const char* name) const {
    void* found = handle == nullptr ? nullptr : dlsym(handle, name);
    if (found == nullptr) skip(std::string("libibverbs has no ") + name);
    return reinterpret_cast<Function>(found);
  }
  [[nodiscard]] void* open(const std::string& name) const {
    void** devices = call<void** (*)(int*)>("ibv_get_device_list")(nullptr);
    for (; *devices != nullptr; ++devices) {
      if (name == call<const char* (*)(void*)>("ibv_get_device_name")(*devices)) {
        return call<void* (*)(void*)>("ibv_open_device")(*devices);
      }
    }
    return nullptr;
  }
};

// "mlx5_1:1" of "[1]mlx5_1:1/RoCE".
void ask_gid(const Library& library, std::string_view word) {
  const Verbs verbs;
  const std::string port_name(word.substr(word.find(']') + 1, word.find('/') - word.find(']') - 1));
  const auto colon = port_name.rfind(':');
  void* context = verbs.open(port_name.substr(0, colon));
  const auto port = static_cast<std::uint8_t>(std::stoi(port_name.substr(colon + 1)));
  std::array<std::uint64_t, 32> attributes{};  // more than an ibv_port_attr takes
  using QueryPort = int (*)(void*, std::uint8_t, void*);
  verbs.call<QueryPort>("ibv_query_port")(context, port, attributes.data());
  int index = -1;
  const auto gid_index = library.internal<GidIndex>(kGidIndex);
  const int result = gid_index(context, port, attributes.data(), &index);
  std::cout << "gid " << port_name << ' '
            << (result == 0 ? std::to_string(index) : "error " + std::to_string(result)) << '\n';
}

// "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
void ask_hcas(const Library& library, const Log& log) {
  const auto init = library.internal<NetInit>(kIbInit);
  void* context = nullptr;
  CommConfig config;
  const int result = init(&context, 0, &config, library.internal<void*>(kDebugLog), nullptr);
  const std::string words = log.after("NET/IB : Using ");
  std::istringstream in(words.substr(0, words.find(';')));
  std::vector<std::string> ports;
  for (std::string word; in >> word;) {
    if (word.find('/') != std::string::npos) ports.push_back(word);
  }
  if (result != 0) ports.clear();
  std::cout << "hcas";
  for (const std::string& port : ports) std::cout << ' ' << port;
  std::cout << (ports.empty() ? " none\n" : "\n");
  for (const std::string& port : ports) {
    if (port.ends_with("/RoCE")) ask_gid(library, port);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Log log;
  const Library library = load();
  for (const char* name : {kIbInit, kGidIndex, kDebugLog}) {
    if (library.internal<void*>(name) == nullptr) skip("this libnccl is stripped or not of 2.28");
  }
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    print_version(library);
    return 0;
  }
  if (const auto init_env = library.internal<int (*)()>(kInitEnv); init_env != nullptr) init_env();
  ask_hcas(library, log);
  std::cout.flush();
  log.~Log();
  _exit(0);  // NCCL's threads wait for events of the devices
}
