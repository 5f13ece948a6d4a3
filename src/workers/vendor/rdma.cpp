// `vendor rdma`: one end of an RC connection. Reads an RdmaRequest, opens a queue pair and prints
// its name as an RdmaAnswer; reads the request again, now with the other end's name, connects,
// sends or receives, and prints what happened. Ends with its standard input.
#include "base/deadline.h"
#include "codec/read.h"
#include "codec/write.h"
#include "workers/vendor/queue_pair.h"
#include "workers/vendor/verb.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

namespace distdoctor::vendor {
namespace {

using std::chrono::milliseconds;

constexpr int kBadRequest = 2;
constexpr std::size_t kMostRequest = 1 << 16;
// The last acknowledgement is on its way, and would be sent again should it get lost.
constexpr milliseconds kLinger{100};

// None: the input has ended, or what came is no request.
std::optional<RdmaRequest> next_request() {
  std::string line(kMostRequest, '\0');
  if (std::fgets(line.data(), static_cast<int>(line.size()), stdin) == nullptr) return std::nullopt;
  line.resize(line.find('\0'));
  RdmaRequest request;
  const auto document = codec::Document::parse(line, kMostRequest);
  if (!document || !codec::read_value(document->root(), request, "read a request")) {
    return std::nullopt;
  }
  return request;
}

void print(const RdmaAnswer& answer) {
  std::puts(codec::write_json(answer).c_str());
  std::fflush(stdout);
}

RdmaAnswer answer_of(const QueuePair& pair, const StepError& error) {
  return {.end = pair.end(), .error = error.text, .error_code = error.code};
}

RdmaAnswer exchange(QueuePair& pair, const RdmaRequest& request, const RdmaEnd& other) {
  const auto deadline = Deadline::after(milliseconds(request.timeout_ms));
  if (!request.sends) {
    if (const auto error = pair.post_receives(); !error.text.empty()) return answer_of(pair, error);
  }
  const auto error = pair.connect(other);
  RdmaAnswer answer = answer_of(pair, error);
  if (!error.text.empty()) return answer;
  answer.messages = request.sends ? pair.send(deadline) : pair.receive(deadline);
  if (!request.sends) std::this_thread::sleep_for(kLinger);
  return answer;
}

}  // namespace

int rdma(Arguments /*arguments*/) {
  const auto first = next_request();
  if (!first) return kBadRequest;
  const auto library = load_verbs();
  if (!library) {
    print({.error = library.error().reason, .error_code = ENOENT});
    return 0;
  }
  QueuePair pair(*library);
  const auto error = pair.open(*first);
  print(answer_of(pair, error));
  if (!error.text.empty()) return 0;
  const auto second = next_request();
  if (second && second->other) print(exchange(pair, *second, *second->other));
  return 0;
}

}  // namespace distdoctor::vendor
