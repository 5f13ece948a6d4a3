#include "log.h"

#include "script.h"

#include <unistd.h>

#include <array>

namespace distdoctor::sim {

Log::Log() {
  if (variable("NCCL_DEBUG") != "INFO") return;
  const auto path = variable("NCCL_DEBUG_FILE");
  if (path.empty()) return;
  file_ = std::fopen(path.c_str(), "we");
  if (file_ != nullptr) std::setvbuf(file_, nullptr, _IOLBF, BUFSIZ);
}

Log::~Log() {
  if (file_ != nullptr) std::fclose(file_);
}

std::string Log::prefix() const {
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name(host.data());
  return name.substr(0, name.find('.')) + ":" + std::to_string(::getpid()) + ":" +
         std::to_string(::gettid()) + " [" + std::to_string(device) + "] ";
}

void Log::info(const std::string& text) {
  if (file_ != nullptr) std::fprintf(file_, "%sNCCL INFO %s\n", prefix().c_str(), text.c_str());
}

void Log::warn(const std::string& where, const std::string& text) {
  if (file_ == nullptr) return;
  std::fprintf(file_, "\n%s%s NCCL WARN %s\n", prefix().c_str(), where.c_str(), text.c_str());
}

}  // namespace distdoctor::sim
