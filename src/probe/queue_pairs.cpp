// One end of each RDMA connection is a process of our helper, kept open between the two requests.
#include "codec/read.h"
#include "codec/write.h"
#include "machine/open_child.h"
#include "probe/probe.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace distdoctor::probe {
namespace {

using machine::OpenChild;

constexpr std::size_t kMostAtOnce = 64;  // more than any plan has; each is a process
constexpr std::size_t kMostAnswer = std::size_t{64} << 10;

Result<RdmaAnswer> ask(OpenChild& helper, const RdmaRequest& request, Deadline deadline) {
  DD_TRY(const auto line, helper.ask(codec::write_json(request), deadline));
  RdmaAnswer answer;
  DD_TRY(codec::read_json(line, answer, "read what vendor rdma says", kMostAnswer));
  return answer;
}

}  // namespace

struct QueuePairs::State {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<OpenChild>> open;
};

QueuePairs::QueuePairs() : state_(std::make_unique<State>()) {}
QueuePairs::~QueuePairs() = default;

Result<RdmaAnswer> QueuePairs::act(const RdmaRequest& request, Deadline deadline) {
  return request.other ? finish(request, deadline) : open(request, deadline);
}

Result<RdmaAnswer> QueuePairs::open(const RdmaRequest& request, Deadline deadline) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->open.size() >= kMostAtOnce) return failure("open a queue pair", "too many are");
  }
  DD_TRY(auto helper,
         OpenChild::start({.argv = {"vendor", "rdma"}, .ours = true, .most_output = kMostAnswer}));
  DD_TRY(auto answer, ask(*helper, request, deadline));
  if (answer.error.empty()) {
    const std::scoped_lock lock(state_->mutex);
    state_->open.insert_or_assign(request.id, std::move(helper));
  }
  return answer;
}

Result<RdmaAnswer> QueuePairs::finish(const RdmaRequest& request, Deadline deadline) {
  std::unique_ptr<OpenChild> helper;
  {
    const std::scoped_lock lock(state_->mutex);
    auto found = state_->open.extract(request.id);
    if (found.empty()) return failure("use the queue pair " + request.id, "none is open");
    helper = std::move(found.mapped());
  }
  return ask(*helper, request, deadline);
}

}  // namespace distdoctor::probe
