// A TCP connection to the bulk sink of a listening set: each call waits at most for its deadline.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "base/error.h"
#include "base/fd.h"
#include "probe/wire.h"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace distdoctor::probe {

class Stream {
 public:
  static Result<Stream> connect(const PathTarget& target, Deadline deadline);

  Result<BulkReply> ping(Deadline deadline);
  // `size` bytes; the reply's value is what the sink took.
  Result<BulkReply> send_data(std::uint64_t size, Deadline deadline);
  Result<BulkReply> count(std::uint64_t stream, std::uint8_t round, Deadline deadline);
  // After it whatever is sent is taken, and nothing else is understood.
  Result<BulkReply> pour(std::chrono::milliseconds most, Deadline deadline);

  [[nodiscard]] const Fd& fd() const { return fd_; }
  // Of all that was sent, what the other kernel has acknowledged, in bytes.
  [[nodiscard]] std::uint64_t acknowledged() const;

 private:
  Stream(Fd fd, std::uint64_t nonce) : fd_(std::move(fd)), nonce_(nonce) {}
  Result<bool> write(std::string_view bytes, Deadline deadline);
  Result<BulkReply> ask(const BulkRequest& request, Deadline deadline);
  Result<BulkReply> read_reply(Deadline deadline);

  Fd fd_;
  std::uint64_t nonce_ = 0;
};

}  // namespace distdoctor::probe
