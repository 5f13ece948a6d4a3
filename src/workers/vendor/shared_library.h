// A shared library of somebody else, opened by name and never closed: many of them do not survive
// it.
#pragma once

#include "base/error.h"

#include <string>
#include <utility>

namespace distdoctor::vendor {

class SharedLibrary {
 public:
  // By its name as the loader searches for it, or by a path. The error holds dlopen's words.
  static Result<SharedLibrary> open(const std::string& name);

  // As the loader has it; the name where it does not say.
  [[nodiscard]] std::string path() const;

  // Null where it has no such symbol. `version`, where given, is tried first.
  template <class Function>
  [[nodiscard]] Function* find(const char* symbol, const char* version = nullptr) const {
    return reinterpret_cast<Function*>(find_symbol(symbol, version));
  }
  // The same, for one that cannot be done without.
  template <class Function>
  Result<void> need(const char* symbol, Function*& into) const {
    into = find<Function>(symbol);
    if (into != nullptr) return {};
    return failure("find " + std::string(symbol) + " in " + name_, "it is not there");
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  [[nodiscard]] void* find_symbol(const char* symbol, const char* version) const;

  void* handle_;
  std::string name_;
};

}  // namespace distdoctor::vendor
