// A libibverbs that knows no hardware: its devices, ports and GIDs are those of the sysfs tree
// below the folder in FAKE_IBVERBS_ROOT, in the order of its uverbs numbers. A device whose device
// node is not there cannot be opened, as with the real one. Enough for NCCL to choose.
//
// Queues, memory and connections are those that these variables say; nothing is really sent:
//   FAKE_IBVERBS_FAILS    a function that fails with errno 12: "reg_mr 4194304" (only that size)
//   FAKE_IBVERBS_RTR      the errno of a connection to the other end (ibv_modify_qp to RTR)
//   FAKE_IBVERBS_STATUS   of each completion; -1: none ever comes
//
// The structures are those of rdma-core's ABI (infiniband/verbs.h, IBVERBS_1.1), laid out here
// since its headers need not be there.
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Device {  // struct ibv_device
  std::array<void*, 2> ops = {};
  int node_type = 1;  // IBV_NODE_CA
  int transport_type = 0;
  std::array<char, 64> name = {};
  std::array<char, 64> dev_name = {};
  std::array<char, 256> dev_path = {};
  std::array<char, 256> ibdev_path = {};
};
struct Context {  // struct ibv_context: NCCL reads `device` alone
  Device* device = nullptr;
  std::array<void*, 64> rest = {};
};
struct DeviceAttributes {  // struct ibv_device_attr
  std::array<char, 64> fw_ver;
  std::uint64_t node_guid;
  std::uint64_t sys_image_guid;
  std::uint64_t max_mr_size;
  std::uint64_t page_size_cap;
  std::uint32_t vendor_id;
  std::uint32_t vendor_part_id;
  std::uint32_t hw_ver;
  std::int32_t max_qp;
  std::array<std::int32_t, 28> limits;
  std::uint16_t max_pkeys;
  std::uint8_t local_ca_ack_delay;
  std::uint8_t phys_port_cnt;
};
struct PortAttributes {  // struct ibv_port_attr
  std::int32_t state;
  std::int32_t max_mtu;
  std::int32_t active_mtu;
  std::int32_t gid_tbl_len;
  std::array<std::uint32_t, 4> counters;
  std::uint16_t pkey_tbl_len;
  std::uint16_t lid;
  std::uint16_t sm_lid;
  std::array<std::uint8_t, 5> subnet;
  std::uint8_t active_width;
  std::uint8_t active_speed;
  std::uint8_t phys_state;
  std::uint8_t link_layer;
  std::uint8_t flags;
  std::uint16_t port_cap_flags2;
};
using RawGid = std::array<std::uint8_t, 16>;

struct Object {  // the beginning of struct ibv_pd and ibv_cq
  Context* context = nullptr;
  std::array<void*, 4> rest = {};
};
struct Memory {  // struct ibv_mr
  Context* context = nullptr;
  void* domain = nullptr;
  void* address = nullptr;
  std::size_t length = 0;
  std::array<std::uint32_t, 4> keys = {};
};
struct Pair {  // the beginning of struct ibv_qp
  Context* context = nullptr;
  std::array<void*, 5> rest = {};
  std::uint32_t handle = 0;
  std::uint32_t number = 17;
};
struct Completion {  // struct ibv_wc
  std::uint64_t id = 0;
  std::int32_t status = 0;
  std::array<std::uint32_t, 9> rest = {};
};

int number_in(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

bool fails(const std::string& function) {
  const char* text = std::getenv("FAKE_IBVERBS_FAILS");
  if (text == nullptr || function != text) return false;
  errno = ENOMEM;
  return true;
}

// What has been posted and is to complete, in one process with one queue.
int posted = 0;

int post(void*, void*, void**) {
  ++posted;
  return 0;
}
int poll_queue(void*, int, Completion* completion) {
  const int status = number_in("FAKE_IBVERBS_STATUS");
  if (posted == 0 || status < 0) return 0;
  --posted;
  *completion = {.status = status};
  return 1;
}

// The places of poll_cq, post_send and post_recv in struct ibv_context_ops.
void set_operations(Context& context) {
  context.rest[11] = reinterpret_cast<void*>(poll_queue);
  context.rest[25] = reinterpret_cast<void*>(post);
  context.rest[26] = reinterpret_cast<void*>(post);
}

fs::path root() {
  const char* folder = std::getenv("FAKE_IBVERBS_ROOT");
  return folder == nullptr ? "/nonexistent" : folder;
}

std::string word(const fs::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

fs::path port_folder(const Context& context, int port) {
  return root() / "sys/class/infiniband" / context.device->name.data() / "ports" /
         std::to_string(port);
}

int entries(const fs::path& folder) {
  std::error_code none;
  int count = 0;
  for (const auto& entry : fs::directory_iterator(folder, none)) count += entry.exists() ? 1 : 0;
  return count;
}

std::map<int, std::unique_ptr<Device>> read_devices() {
  std::map<int, std::unique_ptr<Device>> devices;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(root() / "sys/class/infiniband_verbs", none)) {
    const std::string node = entry.path().filename();
    auto device = std::make_unique<Device>();
    word(entry.path() / "ibdev").copy(device->name.data(), device->name.size() - 1);
    node.copy(device->dev_name.data(), device->dev_name.size() - 1);
    devices.emplace(std::stoi(node.substr(6)), std::move(device));
  }
  return devices;
}

std::map<int, std::unique_ptr<Device>>& devices() {
  static auto all = read_devices();
  return all;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): libibverbs's names
#pragma GCC diagnostic ignored "-Wmissing-declarations"  // its header would have them
extern "C" {

Device** ibv_get_device_list(int* count) {
  auto** list = static_cast<Device**>(std::calloc(devices().size() + 1, sizeof(Device*)));
  std::size_t used = 0;
  for (const auto& [number, device] : devices()) list[used++] = device.get();
  if (count != nullptr) *count = static_cast<int>(used);
  return list;
}
void ibv_free_device_list(Device** list) {
  std::free(list);
}
const char* ibv_get_device_name(Device* device) {
  return device->name.data();
}
Context* ibv_open_device(Device* device) {
  if (!fs::exists(root() / "dev/infiniband" / device->dev_name.data())) {
    errno = ENOENT;
    return nullptr;
  }
  auto* context = new Context{.device = device};
  set_operations(*context);
  return context;
}
int ibv_close_device(Context* context) {
  delete context;
  return 0;
}
int ibv_get_async_event(Context*, void*) {
  pause();
  return -1;
}
void ibv_ack_async_event(void*) {}
int ibv_query_device(Context* context, DeviceAttributes* attributes) {
  *attributes = {};
  attributes->phys_port_cnt =
      static_cast<std::uint8_t>(entries(port_folder(*context, 1).parent_path()));
  attributes->max_qp = 1 << 17;
  attributes->sys_image_guid = reinterpret_cast<std::uintptr_t>(context->device);
  return 0;
}
int ibv_query_port(Context* context, std::uint8_t port, PortAttributes* attributes) {
  const fs::path folder = port_folder(*context, port);
  if (!fs::exists(folder)) return EINVAL;
  *attributes = {};
  attributes->state = std::atoi(word(folder / "state").c_str());  // "4: ACTIVE": IBV_PORT_ACTIVE
  const std::string layer = word(folder / "link_layer");
  attributes->link_layer = layer == "InfiniBand" ? 1 : layer == "Ethernet" ? 2 : 0;
  attributes->gid_tbl_len = entries(folder / "gids");
  attributes->active_mtu = 5;    // IBV_MTU_4096
  attributes->active_width = 2;  // 4X
  attributes->active_speed = 32;
  return 0;
}
int ibv_query_gid(Context* context, std::uint8_t port, int index, RawGid* gid) {
  const std::string text = word(port_folder(*context, port) / "gids" / std::to_string(index));
  if (text.size() != 39) return -1;  // eight groups of four digits
  std::string digits;
  for (const char c : text) {
    if (c != ':') digits += c;
  }
  for (std::size_t i = 0; i < gid->size(); ++i) {
    (*gid)[i] = static_cast<std::uint8_t>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return 0;
}
int ibv_fork_init() {
  return 0;
}
const char* ibv_event_type_str(int) {
  return "event";
}

int ibv_query_qp(void*, void*, int, void*) {
  return ENOSYS;
}

// --- queues and memory ---

Object* ibv_alloc_pd(Context* context) {
  return fails("alloc_pd") ? nullptr : new Object{.context = context};
}
int ibv_dealloc_pd(Object* domain) {
  delete domain;
  return 0;
}
Memory* ibv_reg_mr(Object* domain, void* address, std::size_t length, int) {
  if (fails("reg_mr") || fails("reg_mr " + std::to_string(length))) return nullptr;
  return new Memory{.context = domain->context, .address = address, .length = length};
}
void* ibv_reg_mr_iova2(void*, void*, std::size_t, std::uint64_t, unsigned) {
  return nullptr;
}
int ibv_dereg_mr(Memory* memory) {
  delete memory;
  return 0;
}
Object* ibv_create_cq(Context* context, int, void*, void*, int) {
  return fails("create_cq") ? nullptr : new Object{.context = context};
}
int ibv_destroy_cq(Object* queue) {
  delete queue;
  return 0;
}
Pair* ibv_create_qp(Object* domain, void*) {
  return fails("create_qp") ? nullptr : new Pair{.context = domain->context};
}
int ibv_modify_qp(Pair*, const std::int32_t* state, int) {
  constexpr std::int32_t kReadyToReceive = 2;
  return *state == kReadyToReceive ? number_in("FAKE_IBVERBS_RTR") : 0;
}
int ibv_destroy_qp(Pair* pair) {
  delete pair;
  return 0;
}
const char* ibv_wc_status_str(int status) {
  return status == 12 ? "transport retry counter exceeded" : "some status";
}
}
// NOLINTEND(readability-identifier-naming)
