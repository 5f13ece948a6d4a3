// One RC queue pair with memory for its messages, from INIT to ready-to-send.
#pragma once

#include <distdoctor/plan.h>

#include "base/deadline.h"
#include "workers/vendor/verbs_library.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::vendor {

// Each step returns what failed, in RdmaAnswer's words; an empty text: nothing did.
struct StepError {
  std::string text = {};  // "ibv_modify_qp to RTR: ETIMEDOUT"
  int code = 0;           // errno
};

class QueuePair {
 public:
  explicit QueuePair(const VerbsLibrary& verbs) : verbs_(verbs), devices_(verbs) {}

  StepError open(const RdmaRequest& request);
  StepError post_receives();
  StepError connect(const RdmaEnd& other);
  // One message after the other; ends at the first that does not go through.
  std::vector<RdmaMessage> send(Deadline deadline);
  std::vector<RdmaMessage> receive(Deadline deadline);
  [[nodiscard]] const RdmaEnd& end() const { return end_; }

 private:
  StepError find_port();
  StepError make();
  StepError initialize();
  StepError modify(ibv::QueuePairAttributes& attributes, int mask, std::string_view state);
  [[nodiscard]] ibv::AddressHandle way_to(const RdmaEnd& other) const;
  ibv::Part part(std::size_t message) const;
  bool post_send(std::size_t message);
  RdmaMessage completed(std::size_t message, Deadline deadline);

  const VerbsLibrary& verbs_;
  Devices devices_;
  RdmaRequest request_ = {};
  bool ethernet_ = false;
  RdmaEnd end_ = {};
  std::vector<char> memory_ = {};
  std::vector<std::size_t> offsets_ = {};
  // In the order in which they are made; given back in the other.
  Held<ibv::Context> context_{nullptr, nullptr};
  Held<ibv::ProtectionDomain> domain_{nullptr, nullptr};
  Held<ibv::MemoryRegion> region_{nullptr, nullptr};
  Held<ibv::CompletionQueue> queue_{nullptr, nullptr};
  Held<ibv::QueuePair> pair_{nullptr, nullptr};
};

}  // namespace distdoctor::vendor
