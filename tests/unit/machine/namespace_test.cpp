// What a real kernel says of links, routes, rules and neighbours that this test has made.
#include "machine/machine.h"
#include "support/netns.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)
using distdoctor::testing::Namespace;
using distdoctor::testing::why_no_namespaces;

namespace {

Address ip(std::string_view text) {
  return *Address::parse(text);
}

const Link& named(const std::vector<Link>& links, std::string_view name) {
  const auto found = std::ranges::find(links, name, &Link::name);
  REQUIRE(found != links.end());
  return *found;
}

// Another run of these tests may be at work beside us.
std::string ours(const std::string& name) {
  return name + "-" + std::to_string(::getpid());
}

std::unique_ptr<machine::Machine> live() {
  return machine::Machine::live().value();
}

// eth0 with two addresses and an alias, a veth in a bridge, a link that is down, rules, routes.
void furnish(const Namespace& host) {
  host.sh("ip link add eth0 type veth peer name far && ip link set far up");
  host.sh("ip addr add 10.3.0.2/24 dev eth0 && ip addr add 10.3.0.1/24 dev eth0 label eth0:1");
  host.sh("ip addr add fd03::1/64 dev eth0 nodad && ip link set eth0 mtu 9000 up");
  host.sh("ip link property add dev eth0 altname enp5s0 || true");
  host.sh("ip link add br0 type bridge && ip link add port0 type veth peer name port1");
  host.sh("ip link set port0 master br0 && ip link set br0 up");
  host.sh("ip route add 10.4.0.0/16 via 10.3.0.254 dev eth0 metric 7 mtu 1400");
  host.sh("ip route add unreachable 10.5.0.0/16 && ip route add 10.6.0.0/16 dev eth0 table 77");
  host.sh("ip route add unreachable fd05::/16");
  host.sh("ip rule add prio 100 from 10.3.0.1/32 to 10.6.0.0/16 lookup 77");
  host.sh("ip rule add prio 200 iif eth0 fwmark 0x7 prohibit");
  host.sh("ip rule add prio 300 ipproto tcp dport 22 lookup 77");
  host.sh("ip neigh add 10.3.0.9 lladdr 02:00:00:00:00:09 dev eth0 nud permanent");
}

}  // namespace

TEST_CASE("links of a network namespace, as the kernel has them") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Namespace host(ours("collect-links"));
  furnish(host);
  const auto links = host.in([] { return live()->links().value(); });
  const auto& eth0 = named(links, "eth0");
  CHECK(eth0.kind == LinkKind::veth);
  CHECK(eth0.mtu == 9000);
  CHECK(eth0.up);
  CHECK(eth0.running);
  CHECK(eth0.carrier);
  CHECK(eth0.operstate == "up");
  CHECK(eth0.mac.size() == 17);
  REQUIRE(eth0.addresses.size() >= 3);  // and a link-local one
  CHECK(eth0.addresses[0].address == ip("10.3.0.2"));
  CHECK(eth0.addresses[0].label == "eth0");
  CHECK_FALSE(eth0.addresses[0].secondary);
  CHECK(eth0.addresses[1].address == ip("10.3.0.1"));
  CHECK(eth0.addresses[1].label == "eth0:1");
  CHECK(eth0.addresses[1].secondary);
  CHECK(std::ranges::count(eth0.addresses, ip("fd03::1"), &LinkAddress::address) == 1);
  CHECK(std::ranges::count(eth0.altnames, "enp5s0") == 1);
  CHECK(named(links, "br0").kind == LinkKind::bridge);
  CHECK(named(links, "port0").master == "br0");
  CHECK_FALSE(named(links, "port1").up);
  CHECK_FALSE(named(links, "port1").running);
  CHECK(named(links, "lo").index == 1);
}

TEST_CASE("routes and neighbours of a network namespace, and where a packet would go") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Namespace host(ours("collect-routes"));
  furnish(host);
  const auto routes = host.in([] { return live()->routes().value(); });
  const auto has = [&](const Route& wanted) {
    return std::ranges::find(routes, wanted) != routes.end();
  };
  CHECK(has({.destination = ip("10.4.0.0"),
             .prefix = 16,
             .interface = "eth0",
             .gateway = ip("10.3.0.254"),
             .metric = 7,
             .mtu = 1400}));
  CHECK(has({.destination = ip("10.5.0.0"), .prefix = 16, .kind = RouteKind::unreachable}));
  CHECK(has({.destination = ip("10.6.0.0"), .prefix = 16, .interface = "eth0", .table = 77}));
  const auto neighbours = host.in([] { return live()->neighbours().value(); });
  const Neighbour fixed{ip("10.3.0.9"), "eth0", "02:00:00:00:00:09", "permanent"};
  CHECK(std::ranges::find(neighbours, fixed) != neighbours.end());
  const auto to = [&](std::string_view address, std::optional<Address> source = std::nullopt) {
    return host.in([&] { return live()->route_to(ip(address), source).value(); });
  };
  const auto far = to("10.4.1.1");
  CHECK(far.interface == "eth0");
  CHECK(far.gateway == ip("10.3.0.254"));
  CHECK(far.source == ip("10.3.0.2"));
  CHECK(far.mtu == 1400);
  CHECK(to("10.6.0.1").error == "Network is unreachable");
  CHECK(to("10.6.0.1", ip("10.3.0.1")).interface == "eth0");  // by the policy rule
  CHECK(to("10.5.0.1").error == "No route to host");
  CHECK(to("fd05::1").interface.empty());
  CHECK_FALSE(to("fd05::1").error.empty());
}

TEST_CASE("policy rules of a network namespace; what we do not understand is `other`") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Namespace host(ours("collect-rules"));
  furnish(host);
  const auto rules = host.in([] { return live()->rules().value(); });
  const auto at = [&](int priority) {
    const auto found = std::ranges::find(rules, priority, &PolicyRule::priority);
    REQUIRE(found != rules.end());
    return *found;
  };
  CHECK(at(100) == PolicyRule{.priority = 100,
                              .table = 77,
                              .from = ip("10.3.0.1"),
                              .from_prefix = 32,
                              .to = ip("10.6.0.0"),
                              .to_prefix = 16});
  CHECK(at(200).action == RuleAction::prohibit);
  CHECK(at(200).in_interface == "eth0");
  CHECK(at(200).mark == 7);
  CHECK(at(300).action == RuleAction::other);
}
