// Other ends that do more than they should: nothing of ours may spin or grow for them.
#include "base/fd.h"
#include "probe/endpoint.h"
#include "probe/listen_set.h"
#include "probe/packets.h"
#include "probe/wire.h"
#include "support/probing.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using std::chrono::milliseconds;

std::vector<pollfd> descriptors_of(const probe::ListenSet& set) {
  std::vector<pollfd> all;
  set.add_descriptors(all);
  return all;
}

TEST_CASE("a full set does not wait for clients that it cannot take") {
  ListenRequest request = listen_request("127.0.0.1");
  request.spread = 1;
  request.udp = false;
  probe::ListenSet set(request);
  REQUIRE(set.answer().error.empty());
  const std::size_t listeners = descriptors_of(set).size();
  const probe::Endpoint end(addr("127.0.0.1"), set.answer().ports.at(0));
  std::vector<Fd> clients;
  for (int i = 0; i < 256; ++i) {
    Fd& client = clients.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(client.get(), end.get(), end.size()) == 0);
    std::vector<pollfd> all = descriptors_of(set);
    REQUIRE(::poll(all.data(), all.size(), 5'000) > 0);
    for (std::size_t k = 0; k < listeners; ++k) {
      if (all[k].revents != 0) set.ready(all[k]);
    }
  }
  CHECK(descriptors_of(set).size() == 256);  // the clients and no listener
}

// A sink that, once spoken to, repeats the smallest size for ever.
class FakeFlood {
 public:
  FakeFlood() : socket_(*probe::bound_socket(addr("127.0.0.1"), 0, SOCK_DGRAM)) {
    thread_ = std::jthread([this](const std::stop_token& stop) { talk(stop); });
  }
  [[nodiscard]] std::uint16_t port() const { return probe::own_end(socket_).port(); }
  std::atomic<bool> spoken = false;

 private:
  void talk(const std::stop_token& stop) {
    std::array<char, 65536> bytes{};
    probe::Endpoint from;
    std::string reply;
    while (!stop.stop_requested()) {
      const auto got = ::recvfrom(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT,
                                  from.room(), from.size_room());
      if (got > 0) {
        const auto packet =
            probe::decode<probe::Packet>({bytes.data(), static_cast<std::size_t>(got)});
        if (packet) reply = encode(probe::PacketReply{.stream = packet->stream, .number = 1});
      }
      if (!reply.empty()) {
        spoken = true;
        ::sendto(socket_.get(), reply.data(), reply.size(), MSG_DONTWAIT, from.get(), from.size());
      }
    }
  }

  Fd socket_;
  std::jthread thread_;
};

// Deaf by shutdown(2), a socket stays readable for ever: what the fastest flood does to poll(2).
TEST_CASE("a socket that never runs dry does not hold the search beyond its deadline") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) == 0);
  Fd deaf(ends[0]);
  const Fd far(ends[1]);
  REQUIRE(::shutdown(deaf.get(), SHUT_RD) == 0);
  probe::PacketSource source(std::move(deaf), {.destination = addr("127.0.0.1")}, 1);
  CHECK(source.largest(1500, milliseconds(1), Deadline::after(milliseconds(100))) < 1500);
}

TEST_CASE("a sink that floods replies does not hold the search beyond its deadline") {
  const FakeFlood flood;
  Address any;
  auto source = probe::PacketSource::open(
      {.source = any, .destination = addr("127.0.0.1"), .udp_port = flood.port(), .nonce = 1});
  REQUIRE(source.has_value());
  CHECK(source->largest(1500, milliseconds(1), Deadline::after(milliseconds(300))) < 1500);
  CHECK(flood.spoken);
}

}  // namespace
}  // namespace distdoctor::testing
