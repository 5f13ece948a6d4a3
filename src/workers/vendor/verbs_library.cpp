#include "workers/vendor/verbs_library.h"

#include "base/fd.h"
#include "workers/vendor/shared_library.h"

#include <fmt/format.h>

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

namespace distdoctor::vendor {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";
constexpr const char* kVersion = "IBVERBS_1.1";

std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> real{};
  return ::realpath(path.c_str(), real.data()) != nullptr ? real.data() : path;
}

// Looks up one function after the other and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(const SharedLibrary& library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function*& function) {
    function = library_.find<Function>(name, kVersion);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  const SharedLibrary& library_;
  std::string missing_;
};

}  // namespace

std::string failed(std::string_view call, int errno_value) {
  const char* name = ::strerrorname_np(errno_value);
  return fmt::format("{}: {}", call,
                     name != nullptr ? name : "errno " + std::to_string(errno_value));
}

Result<VerbsLibrary> load_verbs() {
  // Else libibverbs does not say which device it has no driver for (init.c, match_driver).
  ::setenv("IBV_SHOW_WARNINGS", "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread
  const auto library = SharedLibrary::open(kLibrary);
  if (!library) return failure("load libibverbs", library.error().reason);
  VerbsLibrary verbs;
  Symbols symbols(*library);
  symbols.find("ibv_get_device_list", verbs.get_device_list);
  symbols.find("ibv_free_device_list", verbs.free_device_list);
  symbols.find("ibv_open_device", verbs.open_device);
  symbols.find("ibv_close_device", verbs.close_device);
  symbols.find("ibv_query_port", verbs.query_port);
  symbols.find("ibv_query_gid", verbs.query_gid);
  symbols.find("ibv_alloc_pd", verbs.alloc_pd);
  symbols.find("ibv_dealloc_pd", verbs.dealloc_pd);
  symbols.find("ibv_create_cq", verbs.create_cq);
  symbols.find("ibv_destroy_cq", verbs.destroy_cq);
  symbols.find("ibv_reg_mr", verbs.reg_mr);
  symbols.find("ibv_dereg_mr", verbs.dereg_mr);
  symbols.find("ibv_create_qp", verbs.create_qp);
  symbols.find("ibv_modify_qp", verbs.modify_qp);
  symbols.find("ibv_destroy_qp", verbs.destroy_qp);
  symbols.find("ibv_wc_status_str", verbs.wc_status_str);
  if (!symbols.missing().empty()) return failure("load libibverbs", "no " + symbols.missing());
  verbs.path = real_path(library->path());
  return verbs;
}

ibv::Device* Devices::find(std::string_view name) const {
  for (int i = 0; i < count(); ++i) {
    if (name == at(i)->name.data()) return at(i);
  }
  return nullptr;
}

// libibverbs tries a second path when the first is refused (open_cdev.c), and that one's ENOENT
// would hide the refusal: so the device node is asked again.
Opened open_device(const VerbsLibrary& verbs, ibv::Device* device) {
  errno = 0;
  Held<ibv::Context> context(verbs.open_device(device), verbs.close_device);
  int error = errno;
  if (context == nullptr) {
    const auto node = std::string("/dev/infiniband/") + device->dev_name.data();
    if (!Fd(::open(node.c_str(), O_RDWR | O_CLOEXEC)).valid()) error = errno;
  }
  return {std::move(context), error};
}

}  // namespace distdoctor::vendor
