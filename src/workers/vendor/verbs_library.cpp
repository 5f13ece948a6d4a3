#include "workers/vendor/verbs_library.h"

#include "base/fd.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <fcntl.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>

namespace distdoctor::vendor {
namespace {

constexpr const char* kLibrary = "libibverbs.so.1";
constexpr const char* kVersion = "IBVERBS_1.1";

std::string path_of(void* symbol) {
  Dl_info info{};
  std::array<char, PATH_MAX> real{};
  if (::dladdr(symbol, &info) == 0 || info.dli_fname == nullptr) return kLibrary;
  return ::realpath(info.dli_fname, real.data()) != nullptr ? real.data() : info.dli_fname;
}

// Looks up one function after the other and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(const char* name, Function*& function) {
    void* symbol = ::dlvsym(library_, name, kVersion);
    if (symbol == nullptr) symbol = ::dlsym(library_, name);
    if (symbol == nullptr && missing_.empty()) missing_ = name;
    function = reinterpret_cast<Function*>(symbol);
  }
  [[nodiscard]] const std::string& missing() const { return missing_; }

 private:
  void* library_;
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
  void* library = ::dlopen(kLibrary, RTLD_NOW);
  if (library == nullptr) return failure("load libibverbs", ::dlerror());  // NOLINT: one thread
  VerbsLibrary verbs;
  Symbols symbols(library);
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
  verbs.path = path_of(reinterpret_cast<void*>(verbs.get_device_list));
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
