#include "workers/vendor/shared_library.h"

#include <dlfcn.h>

namespace distdoctor::vendor {

Result<SharedLibrary> SharedLibrary::open(const std::string& name) {
  void* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle, name);
  const char* const words = ::dlerror();  // NOLINT(concurrency-mt-unsafe): one thread
  return failure("load " + name, words != nullptr ? words : "no reason was given");
}

void* SharedLibrary::find_symbol(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

}  // namespace distdoctor::vendor
