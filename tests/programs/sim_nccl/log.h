// NCCL's log, to NCCL_DEBUG_FILE, in the words of 2.28.9.
#pragma once

#include <cstdio>
#include <string>

namespace distdoctor::sim {

class Log {
 public:
  Log();
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  void info(const std::string& text);
  void warn(const std::string& where, const std::string& text);
  int device = 0;

 private:
  [[nodiscard]] std::string prefix() const;
  std::FILE* file_ = nullptr;
};

}  // namespace distdoctor::sim
