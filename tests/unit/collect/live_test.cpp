#include "collect/collect.h"
#include "machine/machine.h"

#include <doctest/doctest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

struct LoopbackListener {
  Fd fd;
  std::uint16_t port = 0;
};

LoopbackListener listen_on_loopback() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  REQUIRE(::bind(fd.get(), address, length) == 0);
  REQUIRE(::listen(fd.get(), 7) == 0);
  REQUIRE(::getsockname(fd.get(), address, &length) == 0);
  return {std::move(fd), ntohs(name.sin_port)};
}

NodeFacts collected(const std::vector<std::string_view>& names, const CollectRequest& request) {
  NodeFacts node;
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  for (const auto& collector : collect::all_collectors()) {
    if (std::ranges::find(names, collector.name) != names.end()) {
      collector.run(**machine, request, node);
    }
  }
  return node;
}

}  // namespace

TEST_CASE("links of this machine: lo is among them with its address") {
  const auto node = collected({"links"}, {});
  REQUIRE(node.links.known());
  const auto lo = std::ranges::find(*node.links, "lo", &Link::name);
  REQUIRE(lo != node.links->end());
  CHECK(lo->kind == LinkKind::loopback);
  CHECK(lo->index == 1);
  CHECK(lo->mtu > 0);
  CHECK_FALSE(lo->speed_mbps.has_value());
  const bool has_address = std::ranges::any_of(lo->addresses, [](const LinkAddress& address) {
    return address.address.text() == "127.0.0.1" && address.prefix == 8 && address.label == "lo";
  });
  CHECK(has_address);
}

TEST_CASE("routes and rules of this machine: the local table and the three rules of every kernel") {
  const auto node = collected({"routes", "rules", "neighbours"}, {});
  REQUIRE(node.routes.known());
  const bool local = std::ranges::any_of(*node.routes, [](const Route& route) {
    return route.table == 255 && route.kind == RouteKind::local && route.interface == "lo" &&
           route.destination.text() == "127.0.0.0" && route.prefix == 8;
  });
  CHECK(local);
  REQUIRE(node.rules.known());
  const bool main_rule = std::ranges::any_of(*node.rules, [](const PolicyRule& rule) {
    return rule.priority == 32766 && rule.table == 254 && !rule.v6 &&
           rule.action == RuleAction::lookup;
  });
  CHECK(main_rule);
  CHECK(node.neighbours.known());
}

TEST_CASE("the route to this machine itself") {
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  const auto answer = (*machine)->route_to(*Address::parse("127.0.0.5"), std::nullopt);
  REQUIRE(answer.has_value());
  CHECK(answer->interface == "lo");
  CHECK(answer->error.empty());
  CHECK(answer->source == Address::parse("127.0.0.1"));
  const auto bad = (*machine)->route_to(*Address::parse("10.0.0.1"), Address::parse("192.0.2.77"));
  REQUIRE(bad.has_value());
  CHECK_FALSE(bad->error.empty());
}

TEST_CASE("sockets of this machine: our own listener, with us as its owner") {
  const auto listener = listen_on_loopback();
  const auto node = collected({"sockets"}, {});
  REQUIRE(node.sockets.known());
  const auto& listeners = node.sockets->listeners;
  const auto found = std::ranges::find_if(listeners, [&](const Listener& one) {
    return one.port == listener.port && one.address.text() == "127.0.0.1";
  });
  REQUIRE(found != listeners.end());
  CHECK(found->backlog == 7);
  CHECK(found->queued == 0);
  REQUIRE(found->owner.has_value());
  CHECK(found->owner->pid == ::getpid());
  CHECK(found->owner->uid == static_cast<int>(::getuid()));
  CHECK(found->owner->command.find("distdoctor_tests") != std::string::npos);
}

TEST_CASE("kernel settings of this machine") {
  const auto node = collected({"kernel"}, {});
  REQUIRE(node.kernel.known());
  CHECK(node.kernel->port_low > 0);
  CHECK(node.kernel->port_high > node.kernel->port_low);
  CHECK(node.kernel->somaxconn > 0);
  CHECK(node.kernel->conf.contains("all"));
  CHECK(node.kernel->conf.contains("lo"));
  CHECK(node.kernel->listen_overflows.has_value());
}

TEST_CASE("names of this machine: localhost is in its hosts file, a bad name is never asked") {
  const auto node = collected({"names"}, {.names = {"localhost", "-s", "10.1.2.3", "localhost"}});
  REQUIRE(node.names.known());
  REQUIRE(node.names->size() == 4);  // and our own hostname
  const auto& localhost = node.names->at(0);
  REQUIRE(localhost.files.known());
  CHECK_FALSE(localhost.files->empty());
  CHECK(localhost.files->front().loopback());
  CHECK(node.names->at(1).all.why().kind == Why::failed);
  CHECK(*node.names->at(2).all == std::vector{*Address::parse("10.1.2.3")});
}

TEST_CASE("all collectors of this machine, each in a thread of its own, know their facts") {
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  NodeFacts node;
  {
    std::vector<std::jthread> threads;
    for (const auto& collector : collect::all_collectors()) {
      threads.emplace_back([&] { collector.run(**machine, {}, node); });
    }
  }
  CHECK(node.identity.known());
  CHECK(node.links.known());
  CHECK(node.routes.known());
  CHECK(node.rules.known());
  CHECK(node.neighbours.known());
  CHECK(node.kernel.known());
  CHECK(node.sockets.known());
  CHECK(node.names.known());
  CHECK(node.shm.known());
  CHECK(node.limits.known());
  CHECK(node.devices.known());
  CHECK(node.processes.known());
  CHECK(node.settings.known());
  CHECK(node.nccl_config.known());
  CHECK(node.nccl_library.known());
  CHECK(node.rdma.known());
  CHECK(node.pci.known());
  CHECK(node.gpu.known());
  CHECK((node.kernel_log.known() || node.kernel_log.why().kind == Why::denied));
}

TEST_CASE("a collector that is given up leaves its reason, and nothing else") {
  for (const auto& collector : collect::all_collectors()) {
    CAPTURE(collector.name);
    NodeFacts node;
    NodeFacts untouched;
    collector.give_up(node, {Why::timed_out, "test"});
    CHECK(node != untouched);
  }
}
