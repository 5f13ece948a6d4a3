// A file descriptor with one owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace distdoctor {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int number) : number_(number) {}  // takes it; a negative number owns nothing
  Fd(Fd&& other) noexcept : number_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool valid() const { return number_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }
  // EINTR is not retried: on Linux the number is free whatever close(2) says.
  void reset(int number = -1) {
    const int old = std::exchange(number_, number);
    if (old >= 0 && old != number) ::close(old);
  }

 private:
  int number_ = -1;
};

}  // namespace distdoctor
