// hung_fuse FOLDER: mounts a file system there that answers INIT and nothing else, as a dead NFS
// home does: whoever looks below FOLDER waits. Needs root. Prints "ready" when mounted, then serves
// until killed or its stdin ends; then it unmounts, which wakes the waiters with an error.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

int fail(const char* what) {
  std::fprintf(stderr, "hung_fuse: %s: %s\n", what, std::strerror(errno));
  return 1;
}

// The kernel's first request; without an answer even mount points of it would be unusable.
bool answer_init(int device, const fuse_in_header& request) {
  struct {
    fuse_out_header header;
    fuse_init_out body;
  } answer{};
  answer.header.len = sizeof answer;
  answer.header.unique = request.unique;
  answer.body.major = FUSE_KERNEL_VERSION;
  answer.body.minor = FUSE_KERNEL_MINOR_VERSION;
  answer.body.max_readahead = 65536;
  answer.body.max_background = 12;
  answer.body.congestion_threshold = 9;
  answer.body.max_write = 65536;
  return ::write(device, &answer, sizeof answer) == static_cast<ssize_t>(sizeof answer);
}

// Reads requests and forgets them, until stdin ends or the mount is gone.
void serve(int device) {
  std::array<char, 1U << 18U> buffer{};
  while (true) {
    std::array<pollfd, 2> polls = {{{device, POLLIN, 0}, {0, POLLIN, 0}}};
    if (::poll(polls.data(), polls.size(), -1) < 0 && errno != EINTR) return;
    std::array<char, 16> ignored{};
    if (polls[1].revents != 0 && ::read(0, ignored.data(), ignored.size()) <= 0) return;
    if (polls[0].revents == 0) continue;
    const auto got = ::read(device, buffer.data(), buffer.size());
    if (got < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT) return;
    fuse_in_header request{};
    if (got < static_cast<ssize_t>(sizeof request)) continue;
    std::memcpy(&request, buffer.data(), sizeof request);
    if (request.opcode == FUSE_INIT && !answer_init(device, request)) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: hung_fuse FOLDER\n", stderr);
    return 2;
  }
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (device < 0) return fail("open /dev/fuse");
  const auto options =
      "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0,allow_other";
  if (::mount("hung_fuse", argv[1], "fuse", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return fail("mount");
  }
  std::puts("ready");
  std::fflush(stdout);
  serve(device);
  ::umount2(argv[1], MNT_DETACH);
  return 0;
}
