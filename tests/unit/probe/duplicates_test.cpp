#include "probe/probe.h"
#include "support/netns.h"
#include "support/probing.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

std::vector<DuplicateAddress> found(const Namespace& host, const std::vector<Choice>& choices) {
  const DuplicateAnswer answer = host.in([&] { return probe::find_duplicates({choices}, soon()); });
  REQUIRE(answer.duplicates.known());
  return *answer.duplicates;
}

TEST_CASE("who else answers for an address") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  const Choice own{"eth0", addr("10.99.0.1")};
  const Choice labelled{"eth0:1", addr("10.99.0.1")};
  const Choice peer{"eth0", addr("10.99.0.2")};
  const Choice loopback{"lo", addr("127.0.0.1")};
  const Choice gone{"eth7", addr("10.99.0.1")};
  const Choice v6{"eth0", addr("fd99::1")};
  CHECK(found(lab.a, {own, peer, loopback, gone, v6}).empty());

  lab.b.sh("ip link set eth0 address 02:00:00:00:00:bb");
  lab.b.sh("ip addr add 10.99.0.1/24 dev eth0");
  CHECK(found(lab.a, {own}) ==
        std::vector<DuplicateAddress>{{"", "eth0", addr("10.99.0.1"), "02:00:00:00:00:bb"}});
  CHECK(found(lab.a, {labelled}).size() == 1);

  // A peer's address that two machines have: both are named.
  const Namespace third(lab.prefix + "-c");
  lab.wire.sh("ip link add pc type veth peer name eth0 netns " + third.name() +
              " && ip link set pc master br0 up");
  third.sh(
      "ip link set eth0 address 02:00:00:00:00:cc && ip link set eth0 up && "
      "ip addr add 10.99.0.2/24 dev eth0");
  const auto both = found(lab.a, {peer});
  REQUIRE(both.size() == 2);
  CHECK(both[0].other_mac == "02:00:00:00:00:bb");
  CHECK(both[1].other_mac == "02:00:00:00:00:cc");
}

TEST_CASE("two links of one node that answer for each other are no duplicate") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  lab.wire.sh("ip link add pa2 type veth peer name eth1 netns " + lab.a.name() +
              " && ip link set pa2 master br0 up");
  lab.a.sh("ip link set eth1 up && ip addr add 10.99.0.3/24 dev eth1");
  CHECK(found(lab.a, {{"eth0", addr("10.99.0.1")}, {"eth1", addr("10.99.0.3")}}).empty());
}

}  // namespace
}  // namespace distdoctor::testing
