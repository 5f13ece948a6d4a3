#include "workers/rank/lines.h"

#include "base/utf8.h"
#include "codec/read.h"
#include "codec/write.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace distdoctor::workers {
namespace {

constexpr std::size_t kLongestLine = std::size_t{4} << 20;  // the addresses of a thousand ranks

Result<std::string> read_line(std::string_view attempt) {
  std::string line;
  for (int letter = std::getchar(); letter != '\n'; letter = std::getchar()) {
    if (letter == EOF) return failure(attempt, "the other side has closed");
    if (line.size() == kLongestLine) return failure(attempt, "the line is too long");
    line += static_cast<char>(letter);
  }
  return line;
}

template <class T>
Result<T> read_object(std::string_view attempt) {
  DD_TRY(const std::string line, read_line(attempt));
  T object;
  DD_TRY(codec::read_json(line, object, attempt, kLongestLine));
  return object;
}

}  // namespace

Lines::Lines() : start_(std::chrono::steady_clock::now()) {
  const int own = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  out_ = own < 0 ? nullptr : ::fdopen(own, "w");
  if (out_ == nullptr) out_ = stdout;  // then the two share it
  if (own >= 0) ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

Result<WorkerJob> Lines::read_job() {
  return read_object<WorkerJob>("read the job");
}

Result<WorkerMeeting> Lines::read_meeting() {
  return read_object<WorkerMeeting>("read what the other ranks published");
}

void Lines::tell(WorkerLine line) {
  line.at_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto text = codec::write_json(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), out_);
  std::fflush(out_);
}

Result<std::vector<std::string>> LineMeeting::exchange(std::string_view part) {
  lines_.tell({.publish = to_hex(part)});
  DD_TRY(const WorkerMeeting meeting, lines_.read_meeting());
  std::vector<std::string> parts(static_cast<std::size_t>(size_));
  for (const WorkerBlob& blob : meeting.blobs) {
    if (blob.rank < 0 || blob.rank >= size_) continue;
    auto bytes = from_hex(blob.bytes);
    if (!bytes) return failure("read what a rank published", "no hex");
    parts[static_cast<std::size_t>(blob.rank)] = *std::move(bytes);
  }
  return parts;
}

}  // namespace distdoctor::workers
