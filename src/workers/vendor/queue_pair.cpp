#include "workers/vendor/queue_pair.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>

namespace distdoctor::vendor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// 4.096 us * 2^16 = 268 ms a try, seven tries: what is late by two seconds still meets a receiver
// that listens. (NCCL waits eight times 4.3 s, net_ib.cc.) The hardware may take four times that.
constexpr std::uint8_t kTimeout = 16;
constexpr std::uint8_t kRetries = 6;          // rxe takes 7 for "for ever"
constexpr std::uint8_t kNotReadyRetries = 7;  // and so do all, of this one
constexpr std::uint8_t kNotReadyTimer = 12;   // 0.64 ms
constexpr std::uint8_t kHopLimit = 64;
constexpr std::uint32_t kPacketNumbers = 1U << 24;
constexpr std::int64_t kMostBytes = std::int64_t{4} << 20;  // of a message
constexpr std::size_t kMostMessages = 8;
constexpr auto kLook = 200us;
// The receiver is told to get ready at the same time.
constexpr auto kSettle = 200ms;

StepError step_error(std::string_view call, int code) {
  return {failed(call, code), code};
}

std::uint32_t random_packet() {
  std::uint32_t number = 0;
  static_cast<void>(!::getrandom(&number, sizeof number, 0));
  return number % kPacketNumbers;
}

// As sysfs writes it: "fe80:0000:0000:0000:0202:c9ff:fe00:0001".
std::string text_of(const ibv::Gid& gid) {
  std::string text;
  for (std::size_t i = 0; i < gid.bytes.size(); i += 2) {
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid.bytes.at(i), gid.bytes.at(i + 1));
  }
  return text;
}

ibv::Gid gid_of(const std::string& text) {
  ibv::Gid gid{};
  ::inet_pton(AF_INET6, text.c_str(), gid.bytes.data());
  return gid;
}

// IBV_MTU_256 is 1, IBV_MTU_4096 is 5.
int mtu_bytes(int code) {
  return 128 << std::clamp(code, 1, 5);
}
int mtu_code(int bytes) {
  int code = 1;
  while (code < 5 && mtu_bytes(code + 1) <= bytes) ++code;
  return code;
}

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

// --- opening ---

StepError QueuePair::open(const RdmaRequest& request) {
  request_ = request;
  std::erase_if(request_.sizes, [](std::int64_t size) { return size < 1 || size > kMostBytes; });
  if (request_.sizes.size() > kMostMessages) request_.sizes.resize(kMostMessages);
  ibv::Device* device = devices_.find(request.device);
  if (device == nullptr) return {"libibverbs does not list " + request.device, ENODEV};
  auto opened = open_device(verbs_, device);
  if (opened.context == nullptr) return step_error("ibv_open_device", opened.error_code);
  context_ = std::move(opened.context);
  for (const auto step : {&QueuePair::find_port, &QueuePair::make, &QueuePair::initialize}) {
    if (auto error = (this->*step)(); !error.text.empty()) return error;
  }
  return {};
}

StepError QueuePair::find_port() {
  const auto port = static_cast<std::uint8_t>(request_.port);
  ibv::PortAttributes attributes{};
  if (const int code = verbs_.query_port(context_.get(), port, &attributes); code != 0) {
    return step_error("ibv_query_port", code > 0 ? code : errno);
  }
  ethernet_ = attributes.link_layer == ibv::kLinkLayerEthernet;
  end_ = {.lid = attributes.lid, .mtu = mtu_bytes(attributes.active_mtu)};
  ibv::Gid gid{};
  const int index = std::max(request_.gid_index, 0);
  if (verbs_.query_gid(context_.get(), port, index, &gid) == 0) {
    end_.gid = text_of(gid);
  } else if (ethernet_) {
    return step_error("ibv_query_gid", errno);
  }
  return {};
}

StepError QueuePair::make() {
  for (const std::int64_t size : request_.sizes) {
    offsets_.push_back(memory_.size());
    memory_.resize(memory_.size() + static_cast<std::size_t>(size), 'd');
  }
  domain_ = {verbs_.alloc_pd(context_.get()), verbs_.dealloc_pd};
  if (domain_ == nullptr) return step_error("ibv_alloc_pd", errno);
  region_ = {verbs_.reg_mr(domain_.get(), memory_.data(), memory_.size(), ibv::kLocalWrite),
             verbs_.dereg_mr};
  if (region_ == nullptr) return step_error("ibv_reg_mr", errno);
  const auto entries = static_cast<std::uint32_t>(request_.sizes.size()) + 1;
  queue_ = {verbs_.create_cq(context_.get(), static_cast<int>(2 * entries), nullptr, nullptr, 0),
            verbs_.destroy_cq};
  if (queue_ == nullptr) return step_error("ibv_create_cq", errno);
  ibv::QueuePairInit init{.sends = queue_.get(),
                          .receives = queue_.get(),
                          .capabilities = {.send_requests = entries,
                                           .receive_requests = entries,
                                           .send_parts = 1,
                                           .receive_parts = 1},
                          .type = ibv::kReliableConnection};
  pair_ = {verbs_.create_qp(domain_.get(), &init), verbs_.destroy_qp};
  if (pair_ == nullptr) return step_error("ibv_create_qp", errno);
  end_.queue_pair = pair_->number;
  end_.first_packet = random_packet();
  return {};
}

StepError QueuePair::modify(ibv::QueuePairAttributes& attributes,
                            int mask,
                            std::string_view state) {
  errno = 0;
  const int code = verbs_.modify_qp(pair_.get(), &attributes, mask);
  if (code == 0) return {};
  return step_error(fmt::format("ibv_modify_qp to {}", state), code > 0 ? code : errno);
}

StepError QueuePair::initialize() {
  ibv::QueuePairAttributes attributes{.state = ibv::kInit,
                                      .port = static_cast<std::uint8_t>(request_.port)};
  return modify(attributes,
                ibv::kMaskState | ibv::kMaskPkeyIndex | ibv::kMaskPort | ibv::kMaskAccess, "INIT");
}

// --- connecting ---

ibv::AddressHandle QueuePair::way_to(const RdmaEnd& other) const {
  ibv::AddressHandle way{.lid = static_cast<std::uint16_t>(other.lid),
                         .port = static_cast<std::uint8_t>(request_.port)};
  if (!ethernet_) return way;
  way.is_global = 1;
  way.gid = gid_of(other.gid);
  way.gid_index = static_cast<std::uint8_t>(std::max(request_.gid_index, 0));
  way.hop_limit = kHopLimit;
  return way;
}

StepError QueuePair::connect(const RdmaEnd& other) {
  ibv::QueuePairAttributes receive{.state = ibv::kReadyToReceive,
                                   .path_mtu = mtu_code(std::min(end_.mtu, other.mtu)),
                                   .receive_packet = other.first_packet,
                                   .other_queue_pair = other.queue_pair,
                                   .address = way_to(other),
                                   .reads_served = 1,
                                   .receiver_not_ready_timer = kNotReadyTimer};
  if (auto error = modify(receive,
                          ibv::kMaskState | ibv::kMaskAddress | ibv::kMaskPathMtu |
                              ibv::kMaskOtherQueuePair | ibv::kMaskReceivePacket |
                              ibv::kMaskReadsServed | ibv::kMaskNotReadyTimer,
                          "RTR");
      !error.text.empty()) {
    return error;
  }
  ibv::QueuePairAttributes send{.state = ibv::kReadyToSend,
                                .send_packet = end_.first_packet,
                                .reads = 1,
                                .timeout = kTimeout,
                                .retries = kRetries,
                                .receiver_not_ready_retries = kNotReadyRetries};
  return modify(send,
                ibv::kMaskState | ibv::kMaskTimeout | ibv::kMaskRetries |
                    ibv::kMaskNotReadyRetries | ibv::kMaskSendPacket | ibv::kMaskReads,
                "RTS");
}

// --- messages ---

ibv::Part QueuePair::part(std::size_t message) const {
  return {.address = reinterpret_cast<std::uintptr_t>(memory_.data()) + offsets_.at(message),
          .length = static_cast<std::uint32_t>(request_.sizes.at(message)),
          .key = region_->local_key};
}

StepError QueuePair::post_receives() {
  for (std::size_t i = 0; i < request_.sizes.size(); ++i) {
    ibv::Part place = part(i);
    ibv::ReceiveRequest receive{.id = i, .parts = &place, .part_count = 1};
    ibv::ReceiveRequest* bad = nullptr;
    const int code = context_->operations.post_receive(pair_.get(), &receive, &bad);
    if (code != 0) return step_error("ibv_post_recv", code > 0 ? code : errno);
  }
  return {};
}

bool QueuePair::post_send(std::size_t message) {
  ibv::Part place = part(message);
  ibv::SendRequest send{.id = message,
                        .parts = &place,
                        .part_count = 1,
                        .operation = ibv::kSend,
                        .flags = ibv::kSignaled};
  ibv::SendRequest* bad = nullptr;
  return context_->operations.post_send(pair_.get(), &send, &bad) == 0;
}

RdmaMessage QueuePair::completed(std::size_t message, Deadline deadline) {
  RdmaMessage row{.bytes = request_.sizes.at(message)};
  const auto start = Clock::now();
  ibv::Completion completion{};
  int count = 0;
  while (count == 0 && !deadline.expired()) {
    count = context_->operations.poll(queue_.get(), 1, &completion);
    if (count == 0) std::this_thread::sleep_for(kLook);
  }
  row.ms = ms_since(start);
  if (count <= 0) return row;
  row.status_code = completion.status;
  if (completion.status != ibv::kSuccess) row.status = verbs_.wc_status_str(completion.status);
  row.arrived = completion.status == ibv::kSuccess;
  return row;
}

std::vector<RdmaMessage> QueuePair::send(Deadline deadline) {
  std::this_thread::sleep_for(kSettle);
  std::vector<RdmaMessage> messages;
  for (std::size_t i = 0; i < request_.sizes.size(); ++i) {
    if (!post_send(i)) break;
    messages.push_back(completed(i, deadline));
    if (!messages.back().arrived) break;
  }
  return messages;
}

std::vector<RdmaMessage> QueuePair::receive(Deadline deadline) {
  std::vector<RdmaMessage> messages;
  for (std::size_t i = 0; i < request_.sizes.size(); ++i) {
    messages.push_back(completed(i, deadline));
    if (!messages.back().arrived) break;
  }
  return messages;
}

}  // namespace distdoctor::vendor
