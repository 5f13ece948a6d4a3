// What we need of libibverbs' ABI, as rdma-core's infiniband/verbs.h lays it out (v44, and by its
// promise every version since IBVERBS_1.1, 2007): so that we build without its headers.
#pragma once

#include <pthread.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace distdoctor::vendor::ibv {

struct Context;
struct CompletionQueue;
struct QueuePair;

struct Device {  // struct ibv_device: begins with two pointers that nobody may call
  std::array<void*, 2> ops = {};
  std::int32_t node_type = {};
  std::int32_t transport_type = {};
  std::array<char, 64> name = {};      // "mlx5_0"
  std::array<char, 64> dev_name = {};  // "uverbs0"
};
struct ProtectionDomain {  // struct ibv_pd
  Context* context = {};
  std::uint32_t handle = {};
};
struct MemoryRegion {  // struct ibv_mr
  Context* context = {};
  ProtectionDomain* domain = {};
  void* address = {};
  std::size_t length = {};
  std::uint32_t handle = {};
  std::uint32_t local_key = {};
  std::uint32_t remote_key = {};
};

// struct ibv_port_attr without its last member, port_cap_flags2, which the exported function does
// not write (the inline one of the header asks the provider for it).
struct PortAttributes {
  std::int32_t state = {};
  std::int32_t max_mtu = {};
  std::int32_t active_mtu = {};
  std::int32_t gid_table_length = {};
  std::array<std::uint32_t, 4> capabilities_and_counters = {};
  std::uint16_t pkey_table_length = {};
  std::uint16_t lid = {};
  std::uint16_t sm_lid = {};
  std::array<std::uint8_t, 5> subnet = {};
  std::uint8_t active_width = {};
  std::uint8_t active_speed = {};
  std::uint8_t physical_state = {};
  std::uint8_t link_layer = {};
  std::uint8_t flags = {};
  std::array<std::uint8_t, 32> spare = {};  // should a library write more
};
inline constexpr int kPortActive = 4;
inline constexpr std::uint8_t kLinkLayerEthernet = 2;

struct alignas(8) Gid {  // union ibv_gid, as it stands on the wire
  std::array<std::uint8_t, 16> bytes = {};
};

// --- queues ---

struct Capabilities {  // struct ibv_qp_cap
  std::uint32_t send_requests = {};
  std::uint32_t receive_requests = {};
  std::uint32_t send_parts = {};
  std::uint32_t receive_parts = {};
  std::uint32_t inline_bytes = {};
};
inline constexpr std::int32_t kReliableConnection = 2;  // IBV_QPT_RC

struct QueuePairInit {  // struct ibv_qp_init_attr
  void* context = {};
  CompletionQueue* sends = {};
  CompletionQueue* receives = {};
  void* shared_receives = {};
  Capabilities capabilities = {};
  std::int32_t type = {};
  std::int32_t signal_all = {};
};

struct AddressHandle {  // struct ibv_ah_attr, its struct ibv_global_route first
  Gid gid = {};
  std::uint32_t flow_label = {};
  std::uint8_t gid_index = {};
  std::uint8_t hop_limit = {};
  std::uint8_t traffic_class = {};
  std::uint16_t lid = {};
  std::uint8_t service_level = {};
  std::uint8_t path_bits = {};
  std::uint8_t static_rate = {};
  std::uint8_t is_global = {};
  std::uint8_t port = {};
};

struct QueuePairAttributes {  // struct ibv_qp_attr
  std::int32_t state = {};
  std::int32_t current_state = {};
  std::int32_t path_mtu = {};
  std::int32_t migration = {};
  std::uint32_t queue_key = {};
  std::uint32_t receive_packet = {};  // the first packet sequence number from the other end
  std::uint32_t send_packet = {};
  std::uint32_t other_queue_pair = {};
  std::uint32_t access = {};
  Capabilities capabilities = {};
  AddressHandle address = {};
  AddressHandle alternate = {};
  std::uint16_t pkey_index = {};
  std::uint16_t alternate_pkey_index = {};
  std::uint8_t notify_drained = {};
  std::uint8_t draining = {};
  std::uint8_t reads = {};
  std::uint8_t reads_served = {};
  std::uint8_t receiver_not_ready_timer = {};
  std::uint8_t port = {};
  std::uint8_t timeout = {};  // 4.096 us * 2^timeout for a try
  std::uint8_t retries = {};
  std::uint8_t receiver_not_ready_retries = {};
  std::uint8_t alternate_port = {};
  std::uint8_t alternate_timeout = {};
  std::uint32_t rate_limit = {};
};
// enum ibv_qp_state, enum ibv_qp_attr_mask.
inline constexpr std::int32_t kReset = 0;
inline constexpr std::int32_t kInit = 1;
inline constexpr std::int32_t kReadyToReceive = 2;
inline constexpr std::int32_t kReadyToSend = 3;
inline constexpr std::int32_t kMaskState = 1 << 0;
inline constexpr std::int32_t kMaskAccess = 1 << 3;
inline constexpr std::int32_t kMaskPkeyIndex = 1 << 4;
inline constexpr std::int32_t kMaskPort = 1 << 5;
inline constexpr std::int32_t kMaskAddress = 1 << 7;
inline constexpr std::int32_t kMaskPathMtu = 1 << 8;
inline constexpr std::int32_t kMaskTimeout = 1 << 9;
inline constexpr std::int32_t kMaskRetries = 1 << 10;
inline constexpr std::int32_t kMaskNotReadyRetries = 1 << 11;
inline constexpr std::int32_t kMaskReceivePacket = 1 << 12;
inline constexpr std::int32_t kMaskReads = 1 << 13;
inline constexpr std::int32_t kMaskNotReadyTimer = 1 << 15;
inline constexpr std::int32_t kMaskSendPacket = 1 << 16;
inline constexpr std::int32_t kMaskReadsServed = 1 << 17;
inline constexpr std::int32_t kMaskOtherQueuePair = 1 << 20;

struct QueuePair {  // struct ibv_qp, its beginning
  Context* context = {};
  void* own = {};
  ProtectionDomain* domain = {};
  CompletionQueue* sends = {};
  CompletionQueue* receives = {};
  void* shared_receives = {};
  std::uint32_t handle = {};
  std::uint32_t number = {};
};
struct CompletionQueue {  // struct ibv_cq, its beginning
  Context* context = {};
};

// --- work ---

struct Part {  // struct ibv_sge
  std::uint64_t address = {};
  std::uint32_t length = {};
  std::uint32_t key = {};
};
struct SendRequest {  // struct ibv_send_wr
  std::uint64_t id = {};
  SendRequest* next = {};
  Part* parts = {};
  std::int32_t part_count = {};
  std::int32_t operation = {};
  std::uint32_t flags = {};
  std::uint32_t immediate = {};
  std::array<std::uint64_t, 4> remote = {};
  std::uint32_t shared_receives = {};
  std::array<std::uint64_t, 6> memory_window = {};
};
inline constexpr std::int32_t kSend = 2;  // IBV_WR_SEND
inline constexpr std::uint32_t kSignaled = 1U << 1;
struct ReceiveRequest {  // struct ibv_recv_wr
  std::uint64_t id = {};
  ReceiveRequest* next = {};
  Part* parts = {};
  std::int32_t part_count = {};
};
struct Completion {  // struct ibv_wc
  std::uint64_t id = {};
  std::int32_t status = {};
  std::int32_t operation = {};
  std::uint32_t vendor_error = {};
  std::uint32_t length = {};
  std::uint32_t immediate = {};
  std::uint32_t queue_pair = {};
  std::uint32_t source_queue_pair = {};
  std::uint32_t flags = {};
  std::uint16_t pkey_index = {};
  std::uint16_t source_lid = {};
  std::uint8_t service_level = {};
  std::uint8_t path_bits = {};
};
inline constexpr std::int32_t kSuccess = 0;

// The header's ibv_poll_cq, ibv_post_send and ibv_post_recv are inline calls of these.
struct ContextOperations {  // struct ibv_context_ops
  std::array<void*, 11> before_poll = {};
  int (*poll)(CompletionQueue* queue, int entries, Completion* completions) = nullptr;
  std::array<void*, 13> before_send = {};
  int (*post_send)(QueuePair* pair, SendRequest* request, SendRequest** bad) = nullptr;
  int (*post_receive)(QueuePair* pair, ReceiveRequest* request, ReceiveRequest** bad) = nullptr;
  std::array<void*, 5> rest = {};
};
struct Context {  // struct ibv_context
  Device* device = {};
  ContextOperations operations = {};
};

inline constexpr int kLocalWrite = 1;  // IBV_ACCESS_LOCAL_WRITE

static_assert(offsetof(ContextOperations, poll) == 11 * sizeof(void*));
static_assert(offsetof(ContextOperations, post_send) == 25 * sizeof(void*));
static_assert(sizeof(ContextOperations) == 32 * sizeof(void*));
static_assert(sizeof(AddressHandle) == 32 && sizeof(QueuePairAttributes) == 144);
static_assert(offsetof(QueuePair, number) == 52 && sizeof(QueuePairInit) == 64);
static_assert(sizeof(SendRequest) == 128 && sizeof(Completion) == 48);

}  // namespace distdoctor::vendor::ibv
