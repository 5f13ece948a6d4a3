#include "workers/vendor/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace distdoctor::vendor {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle, name);
  const char* const words = ::dlerror();  // NOLINT(concurrency-mt-unsafe): one thread
  return failure("load " + name, words != nullptr ? words : "no reason was given");
}

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  const bool told = ::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0;
  return told && map != nullptr ? map->l_name : name_;
}

void* SharedLibrary::find_symbol(const char* symbol, const char* version) const {
  void* const found = version == nullptr ? nullptr : ::dlvsym(handle_, symbol, version);
  return found != nullptr ? found : ::dlsym(handle_, symbol);
}

}  // namespace distdoctor::vendor
