#include "fleet/collecting.h"

#include "codec/codec.h"
#include "codec/write.h"
#include "fleet/thread.h"
#include "machine/machine.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace distdoctor::fleet {
namespace {

CollectRequest in_time(CollectRequest request, Deadline deadline) {
  request.within_ms = deadline.remaining_ms();
  return request;
}

}  // namespace

Collecting::Collecting(std::uint64_t id,
                       CollectRequest request,
                       Deadline deadline,
                       std::unique_ptr<machine::Machine> machine,
                       Channel& channel)
    : id_(id),
      request_(in_time(std::move(request), deadline)),
      deadline_(deadline),
      machine_(std::move(machine)),
      channel_(channel) {}

Collecting::~Collecting() = default;

void Collecting::begin(std::span<const collect::Collector> collectors) {
  const auto wanted = [&](const collect::Collector& collector) {
    return request_.collectors.empty() ||
           std::ranges::find(request_.collectors, collector.name) != request_.collectors.end();
  };
  std::vector<const collect::Collector*> all;
  for (const auto& collector : collectors) {
    if (wanted(collector)) all.push_back(&collector);
  }
  {
    const std::scoped_lock lock(mutex_);
    missing_.insert(all.begin(), all.end());
  }
  if (all.empty()) return send_done();
  for (const collect::Collector* collector : all) {
    Thread thread;
    thread.begin(kCollectorStack,
                 [self = shared_from_this(), collector] { self->run(*collector); });
    thread.detach();
  }
}

void Collecting::run(const collect::Collector& collector) {
  NodeFacts part;
  try {
    collector.run(*machine_, request_, part);
  } catch (const std::exception& error) {
    part = {};
    collector.give_up(part, {Why::failed, error.what()});
  }
  const std::scoped_lock lock(mutex_);
  if (missing_.erase(&collector) == 0) return;  // too late: it was given up
  send(collector, part);
  if (missing_.empty()) send_done();
}

bool Collecting::over() {
  const std::scoped_lock lock(mutex_);
  return missing_.empty();
}

void Collecting::give_up_missing() {
  const std::scoped_lock lock(mutex_);
  if (missing_.empty()) return;
  for (const collect::Collector* collector : std::exchange(missing_, {})) {
    NodeFacts part;
    collector->give_up(part, {Why::timed_out, "it did not end in time"});
    send(*collector, part);
  }
  send_done();
}

void Collecting::send(const collect::Collector& collector, const NodeFacts& part) {
  codec::Writer writer;
  writer.begin('{');
  writer("collector", collector.name);
  writer.key("facts");
  writer.raw(codec::write_part(part));
  writer.end('}');
  channel_.post({.id = id_, .type = "part", .body = writer.take()});
}

void Collecting::send_done() {
  channel_.post({.id = id_, .type = "done"});
}

}  // namespace distdoctor::fleet
