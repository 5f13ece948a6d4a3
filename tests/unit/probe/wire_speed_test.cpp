// Real bytes: over loopback, and over a wire that a qdisc narrows.
#include "probe/wire_speed.h"

#include "support/netns.h"
#include "support/probing.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using probe::Listeners;

Path measure(std::string_view address,
             const ListenAnswer& sinks,
             std::vector<int> streams,
             int speed_ms = 300,
             std::uint64_t nonce = 4711) {
  PathRequest request{.timeout_ms = 10'000};
  request.targets = {{.destination = addr(address),
                      .bulk_port = sinks.bulk_port,
                      .nonce = nonce,
                      .streams = std::move(streams),
                      .speed_ms = speed_ms}};
  return probe::measure_paths(request, fake_lookups(), soon()).paths.at(0);
}

TEST_CASE("one figure for each number of streams, and nothing else is measured") {
  Listeners listeners;
  const ListenAnswer sinks = listeners.open(listen_request("127.0.0.1"));
  REQUIRE(sinks.error.empty());
  const Path path = measure("127.0.0.1", sinks, {1, 3});
  CHECK(path.rtt_ms.known());
  CHECK(path.mtu.why().text == "not asked for");
  CHECK(path.loss.why().text == "not asked for");
  REQUIRE(path.wire.known());
  REQUIRE(path.wire->size() == 2);
  CHECK(path.wire->at(0).streams == 1);
  CHECK(path.wire->at(1).streams == 3);
  for (const WireSpeed& speed : *path.wire) {
    CHECK(speed.gb_per_s > 0);
    CHECK(speed.seconds > 0);
  }
  // Twice, since what the first left behind must not be in the way.
  CHECK(measure("127.0.0.1", sinks, {2}).wire.known());
}

TEST_CASE("foolish numbers are brought within bounds") {
  Listeners listeners;
  const ListenAnswer sinks = listeners.open(listen_request("127.0.0.1"));
  CHECK(measure("127.0.0.1", sinks, {0}).wire->at(0).streams == 1);
  // Fewer on a machine so busy that its time is over first.
  CHECK(measure("127.0.0.1", sinks, std::vector<int>(20, 1), 100).wire->size() <= 8);
}

TEST_CASE("no figure where nobody listens, for strangers, or without time") {
  CHECK(measure("127.0.0.1", {.bulk_port = 9}, {1}).wire.why().text ==
        "measure path connect: Connection refused");
  Listeners listeners;
  const ListenAnswer sinks = listeners.open(listen_request("127.0.0.1"));
  CHECK_FALSE(measure("127.0.0.1", sinks, {1}, 60, 4712).wire.known());
  const PathTarget target{
      .destination = addr("127.0.0.1"), .bulk_port = sinks.bulk_port, .nonce = 4711};
  const auto late = probe::wire_speed(target, 1, std::chrono::milliseconds(5'000), 0,
                                      Deadline::after(std::chrono::milliseconds(2'000)));
  REQUIRE_FALSE(late.has_value());
  CHECK(late.error().render() == "measure bandwidth: too little time was left");
}

TEST_CASE("a narrowed wire is not called wider than it is") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  lab.a.sh("tc qdisc add dev eth0 root tbf rate 80mbit burst 32kb latency 50ms");
  const auto listeners = lab.b.in([] { return std::make_unique<Listeners>(); });
  const ListenAnswer sinks = lab.b.in([&] { return listeners->open(listen_request("10.99.0.2")); });
  REQUIRE(sinks.error.empty());
  const Path path = lab.a.in([&] { return measure("10.99.0.2", sinks, {1, 4}, 1'000); });
  REQUIRE(path.wire.known());
  REQUIRE(path.wire->size() == 2);
  for (const WireSpeed& speed : *path.wire) {
    CHECK(speed.gb_per_s > 0);
    CHECK(speed.gb_per_s < 0.0105);  // 80 Mb/s are 0.01 GB/s
  }
}

}  // namespace
}  // namespace distdoctor::testing
