#include "probe/listen_set.h"

#include "probe/ports.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

namespace distdoctor::probe {
namespace {

using std::chrono::milliseconds;

constexpr int kBacklog = 128;
constexpr std::size_t kMostClients = 256;
constexpr int kPortTries = 256;
constexpr std::size_t kMostArrivals = 16'384;
// A probe says hello in its first round trip; a worker that found our listener on its MASTER_PORT
// must not be kept.
constexpr milliseconds kHelloTime{300};
constexpr milliseconds kClientTime{2'000};
constexpr milliseconds kBulkTime{20'000};
constexpr milliseconds kMasterTime{2'000};
constexpr milliseconds kLongestPour{10'000};

bool has(const std::vector<std::uint16_t>& ports, std::uint16_t port) {
  return std::ranges::find(ports, port) != ports.end();
}

// Of the calling thread's network namespace.
PortRange local_port_range() {
  std::ifstream file("/proc/sys/net/ipv4/ip_local_port_range");
  std::string line;
  std::getline(file, line);
  return parse_port_range(line);
}

milliseconds hold_time(const ListenRequest& request) {
  const milliseconds hold{std::max(request.hold_ms, 0)};
  return request.port && !request.watch_only ? std::min(hold, kMasterTime) : hold;
}

// The listener closes its end with a reset, so that no TIME-WAIT of ours keeps a port of the job.
void reset_on_close(const Fd& fd) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now));
}

}  // namespace

ListenSet::ListenSet(const ListenRequest& request)
    : request_(request), until_(Deadline::after(hold_time(request))) {
  if (request_.watch_only) {
    if (request_.port) answer_.ports.push_back(*request_.port);
    return;
  }
  request_.port ? open_fixed() : open_spread();
  if (answer_.error.empty() && request_.udp) open_sinks();
  if (!answer_.error.empty()) close(answer_.error);
}

void ListenSet::open_spread() {
  const PortRange range = local_port_range();
  for (const std::uint16_t wanted : spread_ports(range, request_.spread)) {
    const auto port = nearest_free(wanted, range, kPortTries, [this](std::uint16_t candidate) {
      return !has(answer_.ports, candidate) && listen_on(candidate, false);
    });
    if (port != 0) answer_.ports.push_back(port);
  }
  if (request_.outside && !answer_.ports.empty()) open_outside();
  if (!answer_.ports.empty()) answer_.error.clear();
}

// In the middle, far from where services usually are.
void ListenSet::open_outside() {
  const auto range = outside_of(local_port_range());
  if (!range) return;
  const auto middle = static_cast<std::uint16_t>((range->first + range->second) / 2);
  answer_.outside_port = nearest_free(middle, *range, kPortTries, [this](std::uint16_t candidate) {
    return listen_on(candidate, false);
  });
}

void ListenSet::open_fixed() {
  const auto port = request_.port;
  if (port && listen_on(*port, false)) answer_.ports.push_back(*port);
}

void ListenSet::open_sinks() {
  auto sink = UdpSink::open(request_.address, request_.nonce);
  if (!sink) {
    answer_.error = sink.error().render();
    return;
  }
  sink_ = *std::move(sink);
  answer_.udp_port = sink_->port();
  if (listen_on(0, true)) answer_.bulk_port = listening_.back().port;
}

bool ListenSet::listen_on(std::uint16_t port, bool bulk) {
  auto fd = bound_socket(request_.address, port, SOCK_STREAM);
  if (fd && ::listen(fd->get(), kBacklog) != 0) {
    fd = std::unexpected(errno_error("listen", request_.address.text()));
  }
  if (!fd) {
    if (answer_.error.empty()) answer_.error = fd.error().render();
    return false;
  }
  const std::uint16_t bound = own_end(*fd).port();
  listening_.push_back({*std::move(fd), bound, bulk});
  return true;
}

void ListenSet::add_descriptors(std::vector<pollfd>& all) const {
  // A client that cannot be accepted now would keep poll(2) ready.
  const bool full = clients_.size() >= kMostClients;
  for (const Listening& listening : listening_) {
    if (!full) all.push_back({.fd = listening.fd.get(), .events = POLLIN, .revents = 0});
  }
  for (const Client& client : clients_) {
    all.push_back({.fd = client.fd.get(), .events = POLLIN, .revents = 0});
  }
}

Deadline ListenSet::next() const {
  Deadline soonest = report_.closed.empty() ? until_ : Deadline::after(std::chrono::hours(1));
  for (const Client& client : clients_) soonest = std::min(soonest, client.until);
  return soonest;
}

void ListenSet::tick() {
  if (report_.closed.empty() && until_.expired()) close("the hold time was over");
  for (Client& client : clients_) {
    if (!client.done && client.until.expired()) foreign(client);
  }
  std::erase_if(clients_, [](const Client& client) { return client.done; });
}

void ListenSet::ready(const pollfd& event) {
  const auto listening = std::ranges::find_if(
      listening_, [&](const Listening& row) { return row.fd.get() == event.fd; });
  if (listening != listening_.end()) return accept_all(*listening);
  const auto client =
      std::ranges::find_if(clients_, [&](const Client& row) { return row.fd.get() == event.fd; });
  if (client != clients_.end() && !client->done) read_from(*client);
}

void ListenSet::accept_all(const Listening& listening) {
  while (clients_.size() < kMostClients) {
    Endpoint from;
    Fd fd(
        ::accept4(listening.fd.get(), from.room(), from.size_room(), SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) return;
    const auto patience = listening.bulk ? kBulkTime : request_.port ? kHelloTime : kClientTime;
    clients_.push_back({.fd = std::move(fd),
                        .peer = from.address(),
                        .port = listening.port,
                        .bulk = listening.bulk,
                        .until = Deadline::after(patience)});
  }
}

void ListenSet::read_from(Client& client) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::recv(client.fd.get(), buffer.data(), buffer.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (client.bulk || client.taken > 0) {
      client.done = true;
    } else {
      foreign(client);
    }
    return;
  }
  client.in.append(buffer.data(), static_cast<std::size_t>(got));
  client.bulk ? serve_bulk(client) : greet(client);
}

void ListenSet::greet(Client& client) {
  const auto hello = decode<Hello>(client.in);
  if (!hello) {
    const bool may_become = client.in.size() < Hello::kBytes &&
                            Hello::kMark.starts_with(client.in.substr(0, Hello::kMark.size()));
    if (!may_become) foreign(client);
    return;
  }
  client.in.clear();
  client.taken = Hello::kBytes;
  client.until = Deadline::after(kClientTime);
  Address peer = client.peer;
  peer.zone.clear();
  if (report_.accepted.size() < kMostArrivals) {
    report_.accepted.push_back({peer, request_.address, client.port, {}});
  }
  // Another set's hello means that it came to the wrong place: the dialler learns it from our
  // nonce.
  reply(client, encode(Greeting{request_.nonce, peer}));
}

void ListenSet::serve_bulk(Client& client) {
  while (!client.done) {
    const auto eaten = std::min<std::uint64_t>(client.body, client.in.size());
    client.in.erase(0, eaten);
    client.body -= eaten;
    client.taken += eaten;
    if (client.body > 0) return;
    if (client.taken > 0) reply(client, encode(BulkReply{.value = std::exchange(client.taken, 0)}));
    if (client.in.size() < BulkRequest::kBytes) return;
    const auto request = decode<BulkRequest>(client.in);
    if (!request || request->nonce != request_.nonce) return foreign(client);
    client.in.erase(0, BulkRequest::kBytes);
    answer_bulk(client, *request);
  }
}

void ListenSet::answer_bulk(Client& client, const BulkRequest& request) {
  switch (request.kind) {
    case BulkKind::ping:
      return reply(client, encode(BulkReply{}));
    case BulkKind::data:
      client.body = request.number;
      return;
    case BulkKind::count: {
      const Counted counted = sink_->counted(request.number, request.round);
      return reply(client, encode(BulkReply{counted.received, counted.missed}));
    }
    case BulkKind::pour:
      return pour_out(client, request.number);
  }
  foreign(client);
}

// The connection goes to a thread of its own: this one would be the bottleneck.
void ListenSet::pour_out(Client& client, std::uint64_t most_ms) {
  reply(client, encode(BulkReply{}));
  if (client.done) return;
  client.done = true;
  const auto most = std::min<std::uint64_t>(most_ms, kLongestPour.count());
  drains_.take(std::move(client.fd), Deadline::after(milliseconds(most)));
}

void ListenSet::reply(Client& client, const std::string& bytes) {
  // Few bytes into an empty buffer: what does not fit at once goes to nobody who still listens.
  const ssize_t sent = ::send(client.fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (std::cmp_not_equal(sent, bytes.size())) client.done = true;
}

void ListenSet::foreign(Client& client) {
  client.done = true;
  if (request_.port && client.taken == 0) close("a foreign client");
}

void ListenSet::saw(const SeenSyn& syn) {
  // Also after the listeners are closed: whether a late packet arrived is worth knowing.
  if (syn.outgoing || report_.syns.size() >= kMostArrivals) return;
  Address wanted = request_.address;
  wanted.zone.clear();
  const bool mine =
      has(answer_.ports, syn.port) && (wanted.unspecified() || wanted == syn.destination);
  const Arrival arrival{syn.source, syn.destination, syn.port, syn.interface};
  const auto known = [&](const Arrival& row) {
    return row.source == arrival.source && row.port == arrival.port &&
           row.destination == arrival.destination;
  };
  if (mine && std::ranges::none_of(report_.syns, known)) report_.syns.push_back(arrival);
}

void ListenSet::close(const std::string& why) {
  if (report_.closed.empty()) report_.closed = why;
  // poll(2) in another thread holds a descriptor that we close: this ends the listening now.
  for (const Listening& row : listening_) ::shutdown(row.fd.get(), SHUT_RDWR);
  listening_.clear();
  for (Client& client : clients_) {
    if (request_.port) reset_on_close(client.fd);
    client.done = true;
  }
  sink_.reset();
  drains_.end();
}

}  // namespace distdoctor::probe
