// libibverbs.so.1, loaded as NCCL loads it (ibvsymbols.cc): by dlopen, functions of IBVERBS_1.1.
#pragma once

#include "base/error.h"
#include "workers/vendor/verbs_abi.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace distdoctor::vendor {

// A plain table: each member has its function's name, without "ibv_".
struct VerbsLibrary {
  std::string path = {};
  ibv::Device** (*get_device_list)(int* count) = nullptr;
  void (*free_device_list)(ibv::Device** list) = nullptr;
  ibv::Context* (*open_device)(ibv::Device* device) = nullptr;
  int (*close_device)(ibv::Context* context) = nullptr;
  int (*query_port)(ibv::Context* context, std::uint8_t port, ibv::PortAttributes* to) = nullptr;
  int (*query_gid)(ibv::Context* context, std::uint8_t port, int index, ibv::Gid* to) = nullptr;
  ibv::ProtectionDomain* (*alloc_pd)(ibv::Context* context) = nullptr;
  int (*dealloc_pd)(ibv::ProtectionDomain* domain) = nullptr;
  ibv::CompletionQueue* (*create_cq)(ibv::Context*, int entries, void*, void*, int) = nullptr;
  int (*destroy_cq)(ibv::CompletionQueue* queue) = nullptr;
  ibv::MemoryRegion* (*reg_mr)(ibv::ProtectionDomain*, void*, std::size_t, int access) = nullptr;
  int (*dereg_mr)(ibv::MemoryRegion* region) = nullptr;
  ibv::QueuePair* (*create_qp)(ibv::ProtectionDomain*, ibv::QueuePairInit*) = nullptr;
  int (*modify_qp)(ibv::QueuePair*, ibv::QueuePairAttributes*, int mask) = nullptr;
  int (*destroy_qp)(ibv::QueuePair* pair) = nullptr;
  const char* (*wc_status_str)(int status) = nullptr;
};

// Errors: dlopen's or dlsym's own words.
Result<VerbsLibrary> load_verbs();

// What one of its functions made and another takes back.
template <class T>
using Held = std::unique_ptr<T, int (*)(T*)>;

// "ibv_alloc_pd: ENOMEM".
std::string failed(std::string_view call, int errno_value);

// The list, the devices in it, and an open one; they must outlive what is made with them.
class Devices {
 public:
  explicit Devices(const VerbsLibrary& verbs) : verbs_(verbs) {
    list_ = verbs.get_device_list(&count_);
  }
  ~Devices() {
    if (list_ != nullptr) verbs_.free_device_list(list_);
  }
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;
  Devices(Devices&&) = delete;
  Devices& operator=(Devices&&) = delete;
  [[nodiscard]] int count() const { return list_ == nullptr ? 0 : count_; }
  [[nodiscard]] ibv::Device* at(int place) const { return list_[place]; }
  [[nodiscard]] ibv::Device* find(std::string_view name) const;

 private:
  const VerbsLibrary& verbs_;
  ibv::Device** list_ = nullptr;
  int count_ = 0;
};

struct Opened {
  Held<ibv::Context> context;
  int error_code;  // errno, where there is no context
};
Opened open_device(const VerbsLibrary& verbs, ibv::Device* device);

}  // namespace distdoctor::vendor
