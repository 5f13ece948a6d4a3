// One collect request inside an agent: a thread for each collector, parts sent as they finish,
// and a reason in the place of what is still missing at the deadline.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "collect/collect.h"
#include "fleet/channel.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string_view>

namespace distdoctor::machine {
class Machine;
}

namespace distdoctor::fleet {

class Collecting : public std::enable_shared_from_this<Collecting> {
 public:
  // The channel must live as long as the process: a thread may hang for ever.
  Collecting(std::uint64_t id,
             CollectRequest request,
             Deadline deadline,
             std::unique_ptr<machine::Machine> machine,
             Channel& channel);
  ~Collecting();
  Collecting(const Collecting&) = delete;
  Collecting& operator=(const Collecting&) = delete;

  void begin(std::span<const collect::Collector> collectors);
  [[nodiscard]] Deadline deadline() const { return deadline_; }
  [[nodiscard]] bool over();
  void give_up_missing();

 private:
  void run(const collect::Collector& collector);
  void send(const collect::Collector& collector, const NodeFacts& part);
  void send_done();

  const std::uint64_t id_;
  const CollectRequest request_;
  const Deadline deadline_;
  const std::unique_ptr<machine::Machine> machine_;
  Channel& channel_;
  std::mutex mutex_;
  std::set<const collect::Collector*> missing_;  // guarded by mutex_
};

}  // namespace distdoctor::fleet
