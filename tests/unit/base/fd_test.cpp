#include "base/fd.h"

#include <doctest/doctest.h>

#include <fcntl.h>

#include <cerrno>

using distdoctor::Fd;

namespace {

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}

bool is_open(int number) {
  return ::fcntl(number, F_GETFD) != -1;
}

}  // namespace

TEST_CASE("Fd closes what it owns, once") {
  const int number = open_null();
  REQUIRE(number >= 0);
  {
    Fd first(number);
    Fd second(std::move(first));
    CHECK_FALSE(first.valid());  // NOLINT(bugprone-use-after-move): what a moved-from one says
    CHECK(second.get() == number);
    Fd& itself = second;
    second = std::move(itself);
    CHECK(is_open(number));
  }
  CHECK_FALSE(is_open(number));
}

TEST_CASE("Fd: assigning closes the old one, release keeps it open") {
  Fd fd(open_null());
  const int old = fd.get();
  fd = Fd(open_null());
  CHECK(fd.valid());
  const int kept = fd.release();
  CHECK_FALSE(fd.valid());
  CHECK(is_open(kept));
  fd.reset(kept);
  fd.reset();
  CHECK_FALSE(is_open(kept));
  CHECK_FALSE(is_open(old));
}
