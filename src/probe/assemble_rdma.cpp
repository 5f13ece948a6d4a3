#include <distdoctor/rdma_tries.h>
#include <distdoctor/untested.h>

#include "probe/assemble.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace distdoctor::probe {
namespace {

// Both ends of the connection at `place`, in answers to rdma_open_requests().
struct Ends {
  const RdmaAnswer* sender;
  const RdmaAnswer* receiver;
  [[nodiscard]] bool open() const {
    return sender != nullptr && receiver != nullptr && sender->error.empty() &&
           receiver->error.empty();
  }
};
Ends ends_at(std::span<const Observed<Answer>> answers, std::size_t place) {
  return {answer_as<RdmaAnswer>(answers, 2 * place), answer_as<RdmaAnswer>(answers, 2 * place + 1)};
}

RdmaPath path_of(const PlannedRdma& plan) {
  return {.from = plan.from,
          .to = plan.to,
          .from_device = plan.sender.device,
          .to_device = plan.receiver.device,
          .from_port = plan.sender.port,
          .to_port = plan.receiver.port,
          .roce = plan.roce,
          .from_gid_index = plan.sender.gid_index,
          .to_gid_index = plan.receiver.gid_index};
}

void take_names(const Ends& opened, RdmaPath& path) {
  path.from_gid = opened.sender->end.gid;
  path.to_gid = opened.receiver->end.gid;
}

// The first end that failed; whether one did.
bool take_error(const Ends& ends, RdmaPath& path) {
  const bool at_sender = !ends.sender->error.empty();
  const RdmaAnswer& failed = at_sender ? *ends.sender : *ends.receiver;
  if (failed.error.empty()) return false;
  path.error = failed.error;
  path.error_code = failed.error_code;
  path.failed_at = at_sender ? path.from : path.to;
  return true;
}

// How the sender's completions ended, and what came to the receiver.
void take_messages(const Ends& ends, RdmaPath& path) {
  path.messages = ends.sender->messages;
  const auto& received = ends.receiver->messages;
  for (std::size_t i = 0; i < path.messages.size(); ++i) {
    path.messages[i].arrived = i < received.size() && received[i].arrived;
  }
}

class Assembler {
 public:
  Assembler(const ProbePlan& plan, std::vector<Untried>& untried)
      : plan_(plan), untried_(untried) {}

  std::vector<RdmaPath> paths(std::span<const Observed<Answer>> opened,
                              std::span<const Observed<Answer>> sent) {
    std::size_t asked = 0;
    for (std::size_t i = 0; i < plan_.rdma.size(); ++i) {
      const PlannedRdma& plan = plan_.rdma[i];
      const Ends ends = ends_at(opened, i);
      if (ends.sender == nullptr) miss(plan.from, why_none(opened, 2 * i, plan.from));
      if (ends.receiver == nullptr) miss(plan.to, why_none(opened, 2 * i + 1, plan.to));
      if (ends.sender == nullptr || ends.receiver == nullptr) continue;
      RdmaPath path = path_of(plan);
      take_names(ends, path);
      if (take_error(ends, path) || add_sent(sent, asked++, plan, path)) {
        paths_.push_back(std::move(path));
      }
    }
    return std::move(paths_);
  }

 private:
  bool add_sent(std::span<const Observed<Answer>> sent,
                std::size_t place,
                const PlannedRdma& plan,
                RdmaPath& path) {
    const Ends ends = ends_at(sent, place);
    if (ends.sender == nullptr) miss(plan.from, why_none(sent, 2 * place, plan.from));
    if (ends.receiver == nullptr) miss(plan.to, why_none(sent, 2 * place + 1, plan.to));
    if (ends.sender == nullptr || ends.receiver == nullptr) return false;
    if (!take_error(ends, path)) take_messages(ends, path);
    return true;
  }

  // Each reason once.
  void miss(const std::string& node, Unknown why) {
    Untried row{.node = node, .what = std::string(kRdmaTraffic), .why = std::move(why)};
    if (std::ranges::find(untried_, row) == untried_.end()) untried_.push_back(std::move(row));
  }

  const ProbePlan& plan_;
  std::vector<Untried>& untried_;
  std::vector<RdmaPath> paths_;
};

}  // namespace

std::vector<HostRequest> rdma_open_requests(const ProbePlan& plan) {
  std::vector<HostRequest> requests;
  for (const PlannedRdma& row : plan.rdma) {
    requests.push_back({row.from, row.sender});
    requests.push_back({row.to, row.receiver});
  }
  return requests;
}

std::vector<HostRequest> rdma_send_requests(const ProbePlan& plan,
                                            std::span<const Observed<Answer>> opened) {
  std::vector<HostRequest> requests;
  for (std::size_t i = 0; i < plan.rdma.size(); ++i) {
    const Ends ends = ends_at(opened, i);
    if (!ends.open()) continue;
    RdmaRequest sender = plan.rdma[i].sender;
    RdmaRequest receiver = plan.rdma[i].receiver;
    sender.other = ends.receiver->end;
    receiver.other = ends.sender->end;
    requests.push_back({plan.rdma[i].from, std::move(sender)});
    requests.push_back({plan.rdma[i].to, std::move(receiver)});
  }
  return requests;
}

std::vector<RdmaPath> assemble_rdma(const ProbePlan& plan,
                                    std::span<const Observed<Answer>> opened,
                                    std::span<const Observed<Answer>> sent,
                                    std::vector<Untried>& untried) {
  return Assembler(plan, untried).paths(opened, sent);
}

ProbePlan rdma_again(const ProbePlan& plan, const std::vector<RdmaPath>& paths) {
  ProbePlan again;
  for (const PlannedRdma& row : plan.rdma) {
    const RdmaPath ends{.from = row.from,
                        .to = row.to,
                        .from_device = row.sender.device,
                        .to_device = row.receiver.device,
                        .from_port = row.sender.port,
                        .to_port = row.receiver.port};
    const bool broke = std::ranges::any_of(
        paths, [&](const RdmaPath& path) { return is_broken(path) && same_ends(path, ends); });
    if (broke) again.rdma.push_back(row);
  }
  return again;
}

}  // namespace distdoctor::probe
