// Many connection attempts at once: one poll loop over non-blocking sockets.
#include <distdoctor/reading.h>

#include "probe/endpoint.h"
#include "probe/icmp.h"
#include "probe/probe.h"
#include "probe/syn_watch.h"
#include "probe/wire.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace distdoctor::probe {
namespace {

using std::chrono::milliseconds;
using Moment = Deadline::Clock::time_point;

constexpr std::size_t kMostAtOnce = 512;
constexpr milliseconds kGreetingTime{1'000};  // at least, however late the handshake ended

double ms_since(Moment start) {
  return std::chrono::duration<double, std::milli>(Deadline::Clock::now() - start).count();
}

// Half of the descriptors that we may have: other requests are served meanwhile.
std::size_t window() {
  rlimit limit{};
  static_cast<void>(::getrlimit(RLIMIT_NOFILE, &limit));
  return std::clamp<std::size_t>(limit.rlim_cur / 2, 16, kMostAtOnce);
}

// The ICMP error that ended this attempt. The kernel keeps it for us since 5.8, root or not.
std::optional<IcmpError> icmp_of(const Fd& fd) {
  std::array<char, 256> control{};
  std::array<char, 256> data{};
  iovec part{.iov_base = data.data(), .iov_len = data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (::recvmsg(fd.get(), &message, MSG_ERRQUEUE) < 0) return std::nullopt;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    sock_extended_err error{};
    if (c->cmsg_len < CMSG_LEN(sizeof error)) continue;
    std::memcpy(&error, CMSG_DATA(c), sizeof error);
    if (error.ee_origin != SO_EE_ORIGIN_ICMP && error.ee_origin != SO_EE_ORIGIN_ICMP6) continue;
    Endpoint sender;
    const std::size_t room = c->cmsg_len - CMSG_LEN(sizeof error);
    std::memcpy(sender.room(), CMSG_DATA(c) + sizeof error,
                std::min<std::size_t>(room, *sender.size_room()));
    return IcmpError{.v6 = error.ee_origin == SO_EE_ORIGIN_ICMP6,
                     .type = error.ee_type,
                     .code = error.ee_code,
                     .sender = sender.address()};
  }
  return std::nullopt;
}

struct Attempt {
  const DialTarget* target;
  Dial* dial;
  Fd fd = {};
  Moment start = {};
  Deadline until = Deadline::after(milliseconds(0));
  bool connected = false;
  bool answered = false;  // a SYN with ACK was seen coming in
  std::uint16_t source_port = 0;
  std::string in = {};
  bool done = false;
};

void finish(Attempt& attempt, Outcome outcome, std::string error) {
  attempt.dial->outcome = outcome;
  attempt.dial->error = std::move(error);
  if (outcome != Outcome::ok) attempt.dial->ms = ms_since(attempt.start);
  attempt.done = true;
  attempt.fd.reset();
}

void refused_at_once(Attempt& attempt, const char* call, int number) {
  attempt.dial->syn_left = false;
  finish(attempt, outcome_of_errno(number, true),
         std::string(call) + ": " + errno_name(number) + ", at once");
}

void begin(Attempt& attempt, Deadline until) {
  const DialTarget& target = *attempt.target;
  attempt.start = Deadline::Clock::now();
  attempt.until = until;
  auto fd = target.source ? bound_socket(*target.source, 0, SOCK_STREAM)
                          : open_socket(target.address.v6, SOCK_STREAM);
  if (!fd)
    return refused_at_once(attempt, target.source ? "bind" : "socket", fd.error().errno_value);
  set_option(*fd, target.address.v6 ? IPPROTO_IPV6 : IPPROTO_IP,
             target.address.v6 ? IPV6_RECVERR : IP_RECVERR, 1);
  attempt.fd = *std::move(fd);
  const Endpoint end(target.address, target.port);
  if (::connect(attempt.fd.get(), end.get(), end.size()) != 0 && errno != EINPROGRESS) {
    return refused_at_once(attempt, "connect", errno);
  }
  const Endpoint own = own_end(attempt.fd);
  attempt.source_port = own.port();
  attempt.dial->source = own.address();
}

void refused_later(Attempt& attempt, int number) {
  const auto icmp = icmp_of(attempt.fd);
  const auto outcome = icmp ? outcome_of(*icmp) : std::nullopt;
  finish(attempt, outcome.value_or(outcome_of_errno(number, false)),
         icmp ? text_of(*icmp) : "connect: " + errno_name(number));
}

void handshake_ended(Attempt& attempt, Deadline deadline) {
  int number = 0;
  socklen_t size = sizeof number;
  static_cast<void>(::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &number, &size));
  if (number != 0) return refused_later(attempt, number);
  attempt.connected = true;
  attempt.dial->ms = ms_since(attempt.start);
  if (!attempt.target->nonce) return finish(attempt, Outcome::ok, {});
  const std::string hello = encode(Hello{*attempt.target->nonce});
  if (::send(attempt.fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) {
    return finish(attempt, Outcome::reset, "send: " + errno_name(errno));
  }
  attempt.until = std::max(attempt.until, deadline.capped(kGreetingTime));
}

void judge_greeting(Attempt& attempt) {
  const auto greeting = decode<Greeting>(attempt.in);
  if (!greeting) {
    const auto known = std::min(attempt.in.size(), Greeting::kMark.size());
    if (!Greeting::kMark.starts_with(attempt.in.substr(0, known))) {
      finish(attempt, Outcome::wrong_answer, "other bytes than a probe's came back");
    }
    return;
  }
  attempt.dial->seen_as = greeting->seen_as;
  if (greeting->nonce == *attempt.target->nonce) return finish(attempt, Outcome::ok, {});
  finish(attempt, Outcome::wrong_answer, "another listener of ours answered");
}

void read_greeting(Attempt& attempt) {
  std::array<char, 256> buffer{};
  const ssize_t got = ::recv(attempt.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return finish(attempt, Outcome::reset, "recv: " + errno_name(errno));
  if (got == 0) return finish(attempt, Outcome::reset, "closed before the nonce");
  attempt.in.append(buffer.data(), static_cast<std::size_t>(got));
  judge_greeting(attempt);
}

void expire(Attempt& attempt) {
  if (attempt.connected) {
    finish(attempt, Outcome::no_answer, "connected, no nonce came back");
  } else {
    finish(attempt, Outcome::timed_out, "connect: no answer");
  }
}

class Dialling {
 public:
  // Fills `dials[i]` for each target of `chosen`.
  Dialling(const DialRequest& request,
           const std::vector<std::uint32_t>& chosen,
           std::vector<Dial>& dials,
           Deadline deadline)
      : deadline_(deadline), timeout_(std::max(request.timeout_ms, 1)) {
    for (const std::uint32_t i : chosen) {
      waiting_.push_back({.target = &request.targets[i], .dial = &dials[i]});
    }
    std::ranges::reverse(waiting_);
    auto watch = SynWatch::open();
    unwatched_ = watch ? Unknown{.text = "packets were left out"} : unknown_because(watch.error());
    if (watch) watch_ = *std::move(watch);
  }

  void run() {
    while (!waiting_.empty() || !active_.empty()) {
      start_some();
      wait();
      for (Attempt& attempt : active_) {
        if (!attempt.done && attempt.until.expired()) expire(attempt);
      }
      note_syns();
      retire();
    }
  }

 private:
  void start_some() {
    while (!waiting_.empty() && active_.size() < window_) {
      active_.push_back(std::move(waiting_.back()));
      waiting_.pop_back();
      begin(active_.back(), deadline_.capped(timeout_));
    }
  }

  void wait() {
    std::vector<pollfd> events;
    Deadline soonest = deadline_;
    for (const Attempt& attempt : active_) {
      const short wanted = attempt.connected ? POLLIN : POLLOUT;
      events.push_back({.fd = attempt.fd.get(), .events = wanted, .revents = 0});
      soonest = std::min(soonest, attempt.done ? Deadline::after(milliseconds(0)) : attempt.until);
    }
    if (::poll(events.data(), events.size(), soonest.remaining_ms()) <= 0) return;
    for (std::size_t i = 0; i < events.size(); ++i) {
      Attempt& attempt = active_[i];
      if (attempt.done || events[i].revents == 0) continue;
      attempt.connected ? read_greeting(attempt) : handshake_ended(attempt, deadline_);
    }
  }

  // A SYN belongs to the attempt with its source port; attempts that ended are still looked at,
  // since this comes before retire().
  void note_syns() {
    if (!watch_) return;
    for (const SeenSyn& syn : watch_->take()) {
      for (Attempt& attempt : active_) note(syn, attempt);
    }
  }

  static void note(const SeenSyn& syn, Attempt& attempt) {
    const auto own = syn.answer ? syn.port : syn.source_port;
    const auto theirs = syn.answer ? syn.source_port : syn.port;
    if (own != attempt.source_port || theirs != attempt.target->port) return;
    if (syn.outgoing && !syn.answer) attempt.dial->syn_left = true;
    if (!syn.outgoing && syn.answer) attempt.answered = true;
  }

  void retire() {
    for (Attempt& attempt : active_) {
      const bool silent = attempt.done && attempt.dial->outcome == Outcome::timed_out;
      if (silent && attempt.answered) attempt.dial->error = kAnswerDropped;
      if (!attempt.done || attempt.dial->syn_left.known()) continue;
      const bool blind = !watch_ || watch_->lost_some();
      if (blind) attempt.dial->syn_left = unwatched_;
      if (!blind) attempt.dial->syn_left = false;
    }
    std::erase_if(active_, [](const Attempt& attempt) { return attempt.done; });
  }

  Deadline deadline_;
  milliseconds timeout_;
  std::size_t window_ = window();
  std::vector<Attempt> waiting_;  // the next one is last
  std::vector<Attempt> active_;
  std::optional<SynWatch> watch_;
  Unknown unwatched_;
};

void add_routes(std::vector<Dial>& dials, const Lookups& look_up) {
  std::map<Address, RouteAnswer> known;
  for (Dial& dial : dials) {
    if (!known.contains(dial.address)) {
      auto route = look_up.route_to(dial.address);
      known[dial.address] =
          route ? *std::move(route) : RouteAnswer{.error = route.error().render()};
    }
    dial.route = known[dial.address];
  }
}

// The kernel takes three seconds to call a neighbour dead; that it has not answered yet is known
// before, and tells a missing host from a filter.
void add_silent_neighbours(std::vector<Dial>& dials, const Lookups& look_up) {
  const auto neighbours = look_up.neighbours();
  if (!neighbours) return;
  for (Dial& dial : dials) {
    if (dial.outcome != Outcome::timed_out) continue;
    const Address next = dial.route.gateway.value_or(dial.address);
    const bool silent = std::ranges::any_of(*neighbours, [&](const Neighbour& row) {
      return row.address.v6 == next.v6 && row.address.bytes == next.bytes &&
             row.interface == dial.route.interface &&
             (row.state == "incomplete" || row.state == "failed");
    });
    if (!silent) continue;
    dial.outcome = Outcome::host_unreachable;
    dial.error =
        std::string("no ") + (next.v6 ? "neighbour" : "ARP") + " answer from " + next.text();
  }
}

bool timed_out(const Dial& dial) {
  return dial.outcome == Outcome::timed_out;
}

// Another port of the same address failed in a way that a filter may have caused.
bool wanted_after(const std::vector<Dial>& dials, const Address& address) {
  return std::ranges::any_of(dials, [&](const Dial& dial) {
    return dial.address == address && dial.port != 0 && dial.outcome != Outcome::ok &&
           dial.outcome != Outcome::local_error;
  });
}

}  // namespace

DialAnswer dial(const DialRequest& request, const Lookups& look_up, Deadline deadline) {
  DialAnswer answer;
  answer.dials.resize(request.targets.size());
  std::vector<std::uint32_t> first;
  std::vector<std::uint32_t> later;
  for (std::uint32_t i = 0; i < request.targets.size(); ++i) {
    const DialTarget& target = request.targets[i];
    answer.dials[i] = {.purpose = target.purpose,
                       .address = target.address,
                       .port = target.port,
                       .ours = target.nonce.has_value()};
    (target.only_after_failure ? later : first).push_back(i);
  }
  Dialling(request, first, answer.dials, deadline).run();
  std::vector<std::uint32_t> second;
  for (const std::uint32_t i : later) {
    const bool wanted = wanted_after(answer.dials, request.targets[i].address);
    (wanted ? second : answer.untried).push_back(i);
  }
  if (!second.empty()) Dialling(request, second, answer.dials, deadline).run();
  add_routes(answer.dials, look_up);
  if (std::ranges::any_of(answer.dials, timed_out)) add_silent_neighbours(answer.dials, look_up);
  return answer;
}

}  // namespace distdoctor::probe
