// nccl_hca_oracle: which RDMA ports, and which GIDs of them, the real NCCL takes with this
// environment and with the libibverbs that its LD_LIBRARY_PATH leads to (fake_ibverbs); no GPU.
//
//   hcas [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE         in NCCL's words; "hcas none": it goes on without
//   gid mlx5_1:1 3
//   merged mlx5_0:1 mlx5_1:1                     one device is made of them
// These are answers of internal functions (ncclIbInit, ncclIbGetGidIndex, ncclTopoProcessNet),
// which are found in the library's symbol table with the signatures and structs of 2.28.
// `--version` prints "2.28.9" instead.
// DD_LIBNCCL names the library. Exit 77: there is none, or it is another build.
#include "real_nccl.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
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

std::string_view port_name(std::string_view word) {  // "mlx5_1:1" of "[1]mlx5_1:1/RoCE"
  return word.substr(word.find(']') + 1, word.find('/') - word.find(']') - 1);
}

void ask_gid(const Library& library, std::string_view word) {
  const Verbs verbs;
  const std::string name(port_name(word));
  const auto colon = name.rfind(':');
  void* context = verbs.open(name.substr(0, colon));
  const auto port = static_cast<std::uint8_t>(std::stoi(name.substr(colon + 1)));
  std::array<std::uint64_t, 32> attributes{};  // more than an ibv_port_attr takes
  using QueryPort = int (*)(void*, std::uint8_t, void*);
  verbs.call<QueryPort>("ibv_query_port")(context, port, attributes.data());
  int index = -1;
  const auto gid_index = library.internal<GidIndex>(kGidIndex);
  const int result = gid_index(context, port, attributes.data(), &index);
  std::cout << "gid " << name << ' '
            << (result == 0 ? std::to_string(index) : "error " + std::to_string(result)) << '\n';
}

// --- what the topology merges ---

struct VirtualDevice {  // ncclNetVDeviceProps_v11_t
  int count;
  std::array<int, 4> devices;
};
struct Properties {  // ncclNetProperties_v11_t
  std::array<std::uint64_t, 8> rest;
  VirtualDevice made_of;
  std::array<std::uint64_t, 3> limits;
};
static_assert(sizeof(Properties) == 112);
struct TopoNet {  // ncclTopoNetInfo
  bool collective;
  int plugin;
  bool dma_buf;
  int merge_level;
  const char* force_merge;
  int (*count)(int plugin, int* physical, int* made);
  int (*set_made)(int plugin, int made);
  const char* name;
  int (*properties)(int device, Properties* properties);
  void* make_device;
  int (*devices)(int* count);
};
static_assert(sizeof(TopoNet) == 72);
struct Node {  // ncclXmlNode
  std::array<char, 256> name;
  struct {
    std::array<char, 256> key, value;
  } attributes[17];
  int attribute_count;
  int type;
  Node* parent;
  std::array<Node*, 128> below;
  int below_count;
};
static_assert(sizeof(Node) == 10008);
struct Xml {  // ncclXml
  int used;
  int most;
  std::array<Node, 512> nodes;
};

constexpr const char* kFusionEnv = "_Z20ncclTopoGetFusionEnvPiPPKc";
constexpr const char* kProcessNet = "_Z18ncclTopoProcessNetP7ncclXmlPKcP15ncclTopoNetInfo";
constexpr const char* kProperties = "_Z19ncclIbGetPropertiesiP23ncclNetProperties_v11_t";
constexpr const char* kMakeDevice = "_Z17ncclIbMakeVDevicePiP25ncclNetVDeviceProps_v11_t";
constexpr const char* kDevices = "_Z13ncclIbDevicesPi";

int physical = 0;
int made = -1;  // NCCL_UNDEF_DEV_COUNT

TopoNet net_ib(const Library& library) {
  TopoNet net{};
  library.internal<int (*)(int*, const char**)>(kFusionEnv)(&net.merge_level, &net.force_merge);
  net.count = [](int, int* physical_count, int* made_count) {
    *physical_count = physical;
    *made_count = made;
    return 0;
  };
  net.set_made = [](int, int count) {
    made = count;
    return 0;
  };
  net.name = "IB";
  net.properties = library.internal<decltype(net.properties)>(kProperties);
  net.make_device = library.internal<void*>(kMakeDevice);
  net.devices = library.internal<decltype(net.devices)>(kDevices);
  return net;
}

// A system with one CPU, as it is before NCCL looks for its cards.
std::unique_ptr<Xml> one_cpu() {
  auto xml = std::make_unique<Xml>();
  xml->most = static_cast<int>(xml->nodes.size());
  xml->used = 2;
  Node& system = xml->nodes[0];
  Node& cpu = xml->nodes[1];
  std::strcpy(system.name.data(), "system");
  system.below[0] = &cpu;
  system.below_count = 1;
  std::strcpy(cpu.name.data(), "cpu");
  std::strcpy(cpu.attributes[0].key.data(), "numaid");
  std::strcpy(cpu.attributes[0].value.data(), "-1");
  cpu.attribute_count = 1;
  cpu.parent = &system;
  return xml;
}

void ask_merged(const Library& library, const std::vector<std::string>& ports) {
  TopoNet net = net_ib(library);
  net.devices(&physical);
  const auto xml = one_cpu();
  const auto process = library.internal<int (*)(Xml*, const char*, TopoNet*)>(kProcessNet);
  const int result = process(xml.get(), nullptr, &net);
  if (result != 0) std::cout << "merged: error " << result << '\n';
  for (int device = physical; device < physical + made; ++device) {
    Properties properties{};
    net.properties(device, &properties);
    std::cout << "merged";
    for (int i = 0; i < properties.made_of.count; ++i) {
      const auto member =
          static_cast<std::size_t>(properties.made_of.devices.at(static_cast<std::size_t>(i)));
      std::cout << ' ' << port_name(ports.at(member));
    }
    std::cout << '\n';
  }
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
  if (!ports.empty()) ask_merged(library, ports);
}

}  // namespace

int main(int argc, char** argv) {
  const Log log;
  const Library library = load();
  for (const char* name : {kIbInit, kGidIndex, kDebugLog, kFusionEnv, kProcessNet, kProperties,
                           kMakeDevice, kDevices}) {
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
