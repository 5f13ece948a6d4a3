#include "fleet/thread.h"

#include <memory>
#include <system_error>
#include <utility>

namespace distdoctor::fleet {
namespace {

constexpr const char* kNoThread =
    "start a thread (the most processes of this user, `ulimit -u`, or of its control group, "
    "pids.max, may be reached)";

void* run(void* argument) {
  const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(argument));
  (*body)();
  return nullptr;
}

}  // namespace

void Thread::begin(std::size_t stack, std::function<void()> body) {
  auto argument = std::make_unique<std::function<void()>>(std::move(body));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack);
  const int error = ::pthread_create(&thread_, &attributes, run, argument.get());
  ::pthread_attr_destroy(&attributes);
  if (error != 0) throw std::system_error(error, std::system_category(), kNoThread);
  static_cast<void>(argument.release());  // the thread's own now
  running_ = true;
}

void Thread::join() {
  if (std::exchange(running_, false)) ::pthread_join(thread_, nullptr);
}

void Thread::detach() {
  if (std::exchange(running_, false)) ::pthread_detach(thread_);
}

}  // namespace distdoctor::fleet
