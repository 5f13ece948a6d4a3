// Real packets between two namespaces: sizes, bulk data and loss.
#include "probe/probe.h"
#include "support/netns.h"
#include "support/probing.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>

namespace distdoctor::testing {
namespace {

using probe::Listeners;

// b listens on both families; a measures.
struct Measured {
  explicit Measured(const Wire& lab,
                    const char* address = "10.99.0.2",
                    int packets = 1000,
                    int timeout_ms = 10'000) {
    const auto listeners = lab.b.in([] { return std::make_unique<Listeners>(); });
    const ListenAnswer sinks = lab.b.in([&] { return listeners->open(listen_request(address)); });
    REQUIRE(sinks.error.empty());
    path = lab.a.in([&] { return measure_one(address, sinks, packets, timeout_ms); });
  }
  Path path;
};

// Without it veth carries frames of any size, which no cable does.
void no_offload(const Wire& lab) {
  for (const Namespace* host : {&lab.a, &lab.b}) {
    host->sh("ethtool -K eth0 tso off gso off gro off > /dev/null");
  }
}

TEST_CASE("a good path") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  for (const int mtu : {1500, 9000}) {
    const Wire lab(mtu);
    for (const char* address : {"10.99.0.2", "fd99::2"}) {
      CAPTURE(mtu);
      CAPTURE(address);
      const Path path = Measured(lab, address).path;
      CHECK(path.source == addr(std::string(address) == "fd99::2" ? "fd99::1" : "10.99.0.1"));
      CHECK(path.interface == "eth0");
      REQUIRE(path.rtt_ms.known());
      CHECK(*path.rtt_ms > 0);
      CHECK(path.mtu == Observed<PathMtu>(PathMtu{.link_mtu = mtu,
                                                  .largest = mtu,
                                                  .bulk_arrived = true,
                                                  .small_arrived = true,
                                                  .bulk_bytes = 256 * 1024}));
      CHECK(path.loss == Observed<Loss>(Loss{.sent = 1000, .received = 1000}));
    }
  }
}

TEST_CASE("a black hole passes what is small and loses what is large") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab(9000);
  no_offload(lab);
  lab.wire.sh("ip link set pb mtu 1500");
  for (const char* address : {"10.99.0.2", "fd99::2"}) {
    CAPTURE(address);
    const Path path = Measured(lab, address).path;
    REQUIRE(path.mtu.known());
    CHECK(path.mtu->link_mtu == 9000);
    CHECK(path.mtu->largest == 1500);
    CHECK(path.mtu->small_arrived);
    CHECK_FALSE(path.mtu->bulk_arrived);
    CHECK(path.mtu->bulk_bytes == 0);
    CHECK(path.mtu->error == "measure path: reply: no answer in time");
    CHECK(path.loss == Observed<Loss>(Loss{.sent = 1000, .received = 1000}));
  }
}

TEST_CASE("only long TCP packets are lost: believed when there was time to see it twice") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab(9000);
  lab.b.sh(
      "nft add table inet t && nft add chain inet t c \"{ type filter hook input priority 0; }\" "
      "&& nft add rule inet t c meta l4proto tcp meta length \">\" 2000 drop");
  const Path path = Measured(lab).path;
  REQUIRE(path.mtu.known());
  CHECK(path.mtu->largest == 9000);
  CHECK(path.mtu->small_arrived);
  CHECK_FALSE(path.mtu->bulk_arrived);
  CHECK(path.mtu->bulk_bytes == 0);
  const Path hurried = Measured(lab, "10.99.0.2", 0, 3'000).path;
  CHECK(hurried.mtu.why().text == "a transfer in full segments: too little time");
}

TEST_CASE("a lossy path is measured twice; a path without UDP is not called lossy") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  SUBCASE("one packet in twenty") {
    lab.b.sh(
        "nft add table inet t && nft add chain inet t c \"{ type filter hook input priority 0; }\" "
        "&& nft add rule inet t c meta l4proto udp numgen random mod 20 0 drop");
    const Path path = Measured(lab).path;
    REQUIRE(path.loss.known());
    CHECK(path.loss->sent == 1000);
    CHECK(path.loss->received < 990);
    CHECK(path.loss->received > 850);
    CHECK(path.loss->repeated_sent == 1000);
    CHECK(path.loss->repeated_received < 990);
    CHECK(path.loss->repeated_received > 850);
    CHECK(path.mtu->largest == 1500);
  }
  SUBCASE("UDP filtered") {
    lab.b.sh(
        "nft add table inet t && nft add chain inet t c \"{ type filter hook input priority 0; }\" "
        "&& nft add rule inet t c meta l4proto udp drop");
    const Path path = Measured(lab).path;
    CHECK(path.loss.why().text == "no UDP packet of ours came through");
    CHECK_FALSE(path.mtu->largest.has_value());
    CHECK(path.mtu->error == "no UDP packet of ours was answered");
    CHECK(path.mtu->bulk_arrived);
  }
  SUBCASE("nothing asked for") {
    CHECK(Measured(lab, "10.99.0.2", 0).path.loss.why().text == "not asked for");
  }
}

TEST_CASE("a path on which the sink does not listen") {
  const Path path = measure_one("127.0.0.1", {.udp_port = 9, .bulk_port = 9}, 10);
  CHECK(path.rtt_ms.why().text == "measure path connect: Connection refused");
  CHECK_FALSE(path.mtu.known());
  CHECK_FALSE(path.loss.known());
}

TEST_CASE("a burst that a small receive buffer could not hold is no loss of the path") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  CHECK(Measured(lab, "10.99.0.2", 20'000).path.loss ==
        Observed<Loss>(Loss{.sent = 20'000, .received = 20'000}));
}

}  // namespace
}  // namespace distdoctor::testing
