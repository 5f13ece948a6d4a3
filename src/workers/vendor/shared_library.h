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

  // Null where it has no such symbol.
  template <class Function>
  [[nodiscard]] Function* find(const char* symbol) const {
    return reinterpret_cast<Function*>(find_symbol(symbol));
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
  [[nodiscard]] void* find_symbol(const char* symbol) const;

  void* handle_;
  std::string name_;
};

}  // namespace distdoctor::vendor
