// nccl_interface_oracle: which interfaces the real NCCL takes here and with this environment; no
// GPU.
//
// Two lines, "ok" or "error" and NCCL's own words:
//   bootstrap  ok     eth0:10.0.0.1<0>
//   net_socket ok     [0]eth0:10.0.0.1<0> [1]eth1:10.1.0.1<0>
//   net_socket error  NET/Socket : no interface found
// The first comes from the public ncclGetUniqueId. The second needs ncclNetSocketInit, an internal
// function that is found in the library's symbol table: "net_socket unknown" where it is stripped,
// or its signature is not that of 2.28. `--version` prints "2.28.9" instead. DD_LIBNCCL names the
// library. Exit 77: there is none.
#include "real_nccl.h"

#include <unistd.h>

#include <array>
#include <cstddef>
#include <iostream>
#include <string>
#include <string_view>

namespace {

using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kIdBytes = 128;
constexpr const char* kNetSocketInit =
    "_Z17ncclNetSocketInitPPvmP23ncclNetCommConfig_v11_tPFv17ncclDebugLogLevelmPKciS5_zE"
    "PF12ncclResult_tS0_iS_lS_E";

void report(std::string_view what, int result, const std::string& words, const Library& library) {
  const auto last_error = library.exported<const char* (*)(void*)>("ncclGetLastError");
  std::cout << what << (result == 0 ? " ok " : " error ")
            << (result == 0 ? words : std::string(last_error(nullptr))) << '\n';
}

void ask_bootstrap(const Library& library, const Log& log) {
  const auto get_unique_id = library.exported<int (*)(void*)>("ncclGetUniqueId");
  std::array<char, kIdBytes> id{};
  const int result = get_unique_id(id.data());
  std::string words = log.after("Bootstrap: Using ");
  if (words.empty()) words = log.after("Bootstrap : Using ");  // up to 2.23
  report("bootstrap", result, words, library);
}

void ask_net_socket(const Library& library, const Log& log) {
  const auto init = library.internal<NetInit>(kNetSocketInit);
  void* debug_log = library.internal<void*>(kDebugLog);
  if (init == nullptr || debug_log == nullptr) {
    std::cout << "net_socket unknown\n";
    return;
  }
  void* context = nullptr;
  CommConfig config;
  const int result = init(&context, 0, &config, debug_log, nullptr);
  report("net_socket", result, log.after("NET/Socket : Using "), library);
}

}  // namespace

int main(int argc, char** argv) {
  const Log log;
  const Library library = load();
  if (argc > 1 && std::string_view(argv[1]) == "--version") {
    print_version(library);
    return 0;
  }
  if (const auto init_env = library.internal<int (*)()>(kInitEnv); init_env != nullptr) init_env();
  ask_bootstrap(library, log);
  ask_net_socket(library, log);
  std::cout.flush();
  log.~Log();
  _exit(0);  // the bootstrap's root thread still listens
}
