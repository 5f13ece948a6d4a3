// Real connections: on loopback, and between two namespaces with real filters and routes.
#include "base/fd.h"
#include "probe/endpoint.h"
#include "probe/probe.h"
#include "support/netns.h"
#include "support/probing.h"

#include <doctest/doctest.h>

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <string>
#include <thread>

namespace distdoctor::testing {
namespace {

using probe::Listeners;

TEST_CASE("a set listens on both ends of the range and answers with its nonce") {
  for (const char* address : {"127.0.0.1", "::1"}) {
    CAPTURE(address);
    Listeners listeners;
    const ListenAnswer answer = listeners.open(listen_request(address));
    if (!answer.error.empty()) {
      MESSAGE("skipped: ", answer.error);
      continue;
    }
    REQUIRE(answer.ports.size() == 3);
    DialRequest request{.timeout_ms = 2000};
    for (const auto port : answer.ports) {
      request.targets.push_back({.address = addr(address), .port = port, .nonce = 4711});
    }
    for (const Dial& dial : probe::dial(request, fake_lookups(), soon()).dials) {
      CHECK(dial.outcome == Outcome::ok);
      CHECK(dial.error.empty());
      CHECK(dial.ours);
      CHECK(dial.source == addr(address));
      CHECK(dial.seen_as == addr(address));
      CHECK(dial.route.interface == "lo");
    }
    const ReportAnswer report = listeners.report({"set"});
    CHECK(report.accepted.size() == 3);
    CHECK(report.closed.empty());
    CHECK(dial_one(address, answer.ports[0], 4711).outcome == Outcome::refused);
  }
}

TEST_CASE("a port outside the range is dialled only when one inside has failed") {
  Listeners listeners;
  ListenRequest asked = listen_request("127.0.0.1");
  asked.outside = true;
  const ListenAnswer answer = listeners.open(asked);
  REQUIRE(answer.outside_port != 0);
  DialRequest request{.timeout_ms = 2000};
  request.targets = {{.address = addr("127.0.0.1"),
                      .port = answer.outside_port,
                      .nonce = 4711,
                      .only_after_failure = true},
                     {.address = addr("127.0.0.1"), .port = answer.ports.at(0), .nonce = 4711}};
  CHECK(probe::dial(request, fake_lookups(), soon()).untried == std::vector<std::uint32_t>{0});
  request.targets.at(1).nonce = 1;
  const DialAnswer both = probe::dial(request, fake_lookups(), soon());
  CHECK(both.untried.empty());
  CHECK(both.dials.at(0).outcome == Outcome::ok);
  CHECK(both.dials.at(1).outcome == Outcome::wrong_answer);
}

TEST_CASE("sets with one name, unknown names, addresses that are not ours") {
  Listeners listeners;
  CHECK(listeners.open(listen_request("127.0.0.1")).error.empty());
  CHECK_FALSE(listeners.open(listen_request("127.0.0.1")).error.empty());
  CHECK_FALSE(listeners.report({"other"}).closed.empty());
  ListenRequest foreign = listen_request("192.0.2.1");
  foreign.id = "foreign";
  const ListenAnswer answer = listeners.open(foreign);
  CHECK(answer.ports.empty());
  CHECK(answer.error.starts_with("bind 192.0.2.1 port 3"));
  CHECK(answer.error.ends_with("Cannot assign requested address"));
}

// A listener that is not ours: what it does with a client is the row's.
struct Stranger {
  Fd fd = *probe::bound_socket(addr("127.0.0.1"), 0, SOCK_STREAM);
  std::thread thread;
  explicit Stranger(void (*serve)(int client)) {
    REQUIRE(::listen(fd.get(), 1) == 0);
    thread = std::thread([this, serve] {
      pollfd waiting{.fd = fd.get(), .events = POLLIN, .revents = 0};
      ::poll(&waiting, 1, 5000);
      const Fd client(::accept(fd.get(), nullptr, nullptr));
      serve(client.get());
    });
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;
  ~Stranger() { thread.join(); }
  [[nodiscard]] std::uint16_t port() const { return probe::own_end(fd).port(); }
};

void reset(int client) {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}
void say_ssh(int client) {
  static_cast<void>(::send(client, "SSH-2.0-OpenSSH_9.2p1\r\n", 23, MSG_NOSIGNAL));
  char byte = 0;
  while (::recv(client, &byte, 1, 0) > 0) {
  }
}
void say_nothing(int client) {
  char byte = 0;
  while (::recv(client, &byte, 1, 0) > 0) {
  }
}
void hang_up(int) {}

TEST_CASE("who is no listener of ours is told apart") {
  struct Row {
    const char* name;
    void (*serve)(int);
    std::optional<std::uint64_t> nonce;
    Outcome outcome;
  };
  for (const Row& row : {Row{"reset after accept", reset, 1, Outcome::reset},
                         Row{"closed", hang_up, 1, Outcome::reset},
                         Row{"another service", say_ssh, 1, Outcome::wrong_answer},
                         Row{"silence", say_nothing, 1, Outcome::no_answer},
                         Row{"the job's own port", say_nothing, std::nullopt, Outcome::ok}}) {
    CAPTURE(row.name);
    const Stranger stranger(row.serve);
    const Dial dial = dial_one("127.0.0.1", stranger.port(), row.nonce);
    CHECK(dial.outcome == row.outcome);
    CHECK(dial.ours == row.nonce.has_value());
  }
}

TEST_CASE("another set's nonce is a wrong answer, and a full accept queue is silence") {
  Listeners listeners;
  const ListenAnswer answer = listeners.open(listen_request("127.0.0.1"));
  const Dial wrong = dial_one("127.0.0.1", answer.ports.at(1), 42);
  CHECK(wrong.outcome == Outcome::wrong_answer);
  CHECK(wrong.error == "another listener of ours answered");

  const Fd full = *probe::bound_socket(addr("127.0.0.1"), 0, SOCK_STREAM);
  REQUIRE(::listen(full.get(), 0) == 0);
  const auto port = probe::own_end(full).port();
  CHECK(dial_one("127.0.0.1", port, std::nullopt).outcome == Outcome::ok);
  CHECK(dial_one("127.0.0.1", port, std::nullopt).outcome == Outcome::timed_out);
}

TEST_CASE("the job's own port is given back at the first stranger, and after its time") {
  const auto port = probe::own_end(*probe::bound_socket(addr("127.0.0.1"), 0, SOCK_STREAM)).port();
  const auto request = [&](int hold_ms) {
    return ListenRequest{
        .id = "master", .address = addr("127.0.0.1"), .port = port, .nonce = 7, .hold_ms = hold_ms};
  };
  const auto free_again = [&] {
    for (int i = 0; i < 100; ++i) {
      const auto fd = probe::bound_socket(addr("127.0.0.1"), port, SOCK_STREAM);
      if (fd && ::listen(fd->get(), 1) == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  };
  SUBCASE("our own dials leave it open") {
    Listeners listeners;
    CHECK(listeners.open(request(2000)).ports == std::vector{port});
    CHECK(dial_one("127.0.0.1", port, 7).outcome == Outcome::ok);
    CHECK(dial_one("127.0.0.1", port, 8).outcome == Outcome::wrong_answer);
    const ReportAnswer report = listeners.report({"master"});
    CHECK(report.closed.empty());
    CHECK(report.accepted.size() == 2);
    CHECK(free_again());
  }
  SUBCASE("a worker that looks for its store") {
    Listeners listeners;
    REQUIRE(listeners.open(request(2000)).error.empty());
    const Fd worker(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const probe::Endpoint end(addr("127.0.0.1"), port);
    REQUIRE(::connect(worker.get(), end.get(), end.size()) == 0);
    static_cast<void>(::send(worker.get(), "\x0a\x3c\x85\xf7\xce", 5, MSG_NOSIGNAL));
    char byte = 0;
    CHECK(::recv(worker.get(), &byte, 1, 0) <= 0);  // it got no byte of ours
    CHECK(free_again());
    CHECK(listeners.report({"master"}).closed == "a foreign client");
  }
  SUBCASE("its time is over") {
    Listeners listeners;
    REQUIRE(listeners.open(request(100)).error.empty());
    CHECK(free_again());
    CHECK(listeners.report({"master"}).closed == "the hold time was over");
  }
  SUBCASE("somebody else has it") {
    const auto owner = probe::bound_socket(addr("127.0.0.1"), port, SOCK_STREAM);
    REQUIRE(::listen(owner->get(), 1) == 0);
    Listeners listeners;
    const ListenAnswer answer = listeners.open(request(2000));
    CHECK(answer.ports.empty());
    CHECK(answer.error.ends_with("Address already in use"));
  }
}

// What the dialler at `a` sees of port 33333 at `b`, where a filter or a route was put in the way.
struct Row {
  const char* name;
  const char* at_a;
  const char* at_b;
  const char* address;
  Outcome outcome;
  const char* error;
  std::optional<bool> left = true;
  std::optional<bool> arrived = true;
};
// NOLINTBEGIN(cppcoreguidelines-macro-usage): literals that the compiler joins
#define RULE(hook, rule)                                                      \
  "nft add table inet t && nft add chain inet t c \"{ type filter hook " hook \
  " priority 0; }\" && nft add rule inet t c tcp dport 33333 " rule
// NOLINTEND(cppcoreguidelines-macro-usage)

const Row rows[] = {
    {"open", "true", "true", "10.99.0.2", Outcome::ok, ""},
    {"open, IPv6", "true", "true", "fd99::2", Outcome::ok, ""},
    {"dropped", "true", RULE("input", "drop"), "10.99.0.2", Outcome::timed_out,
     "connect: no answer"},
    {"dropped, IPv6", "true", RULE("input", "drop"), "fd99::2", Outcome::timed_out,
     "connect: no answer"},
    {"dropped before it left", RULE("output", "drop"), "true", "10.99.0.2", Outcome::timed_out,
     "connect: no answer", false, false},
    {"the answer dropped here",
     "nft add table inet t && nft add chain inet t c \"{ type filter hook input priority 0; }\" && "
     "nft add rule inet t c tcp sport 33333 drop",
     "true", "10.99.0.2", Outcome::timed_out, "the answer came, and was dropped here"},
    {"the answer dropped there", "true",
     "nft add table inet t && nft add chain inet t c \"{ type filter hook output priority 0; }\" "
     "&& "
     "nft add rule inet t c tcp sport 33333 drop",
     "10.99.0.2", Outcome::timed_out, "connect: no answer"},
    {"rejected by a reset", "true", RULE("input", "reject with tcp reset"), "10.99.0.2",
     Outcome::refused, "connect: ECONNREFUSED"},
    {"rejected as administratively prohibited", "true",
     RULE("input", "reject with icmpx type admin-prohibited"), "10.99.0.2", Outcome::prohibited,
     "ICMP 3/13 from 10.99.0.2"},
    {"rejected as administratively prohibited, IPv6", "true",
     RULE("input", "reject with icmpx type admin-prohibited"), "fd99::2", Outcome::prohibited,
     "ICMPv6 1/1 from fd99::2"},
    {"rejected as host prohibited", "true", RULE("input", "reject with icmp type host-prohibited"),
     "10.99.0.2", Outcome::prohibited, "ICMP 3/10 from 10.99.0.2"},
    {"rejected as net prohibited", "true", RULE("input", "reject with icmp type net-prohibited"),
     "10.99.0.2", Outcome::prohibited, "ICMP 3/9 from 10.99.0.2"},
    {"rejected as port unreachable", "true",
     RULE("input", "reject with icmpx type port-unreachable"), "10.99.0.2", Outcome::refused,
     "ICMP 3/3 from 10.99.0.2"},
    {"rejected as host unreachable", "true",
     RULE("input", "reject with icmp type host-unreachable"), "10.99.0.2",
     Outcome::host_unreachable, "ICMP 3/1 from 10.99.0.2"},
    {"rejected as net unreachable", "true", RULE("input", "reject with icmp type net-unreachable"),
     "10.99.0.2", Outcome::net_unreachable, "ICMP 3/0 from 10.99.0.2"},
    {"no route", "true", "true", "10.98.0.2", Outcome::net_unreachable,
     "connect: ENETUNREACH, at once", false, std::nullopt},
    {"a route to nowhere", "ip route add unreachable 10.99.0.2", "true", "10.99.0.2",
     Outcome::host_unreachable, "connect: EHOSTUNREACH, at once", false, false},
    {"a forbidden route", "ip route add prohibit 10.99.0.2", "true", "10.99.0.2",
     Outcome::local_error, "connect: EACCES, at once", false, false},
    {"a black hole", "ip route add blackhole 10.99.0.2", "true", "10.99.0.2", Outcome::local_error,
     "connect: EINVAL, at once", false, false},
    // The last one: the entry stays.
    {"a frame for another MAC has not arrived",
     "ip neigh replace 10.99.0.2 lladdr 02:00:00:00:00:99 nud permanent dev eth0", "true",
     "10.99.0.2", Outcome::timed_out, "connect: no answer", true, false},
};

TEST_CASE("outcomes between two hosts, and where the SYN was seen") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    for (const Namespace* host : {&lab.a, &lab.b}) {
      host->sh(
          "nft flush ruleset; for t in unreachable prohibit blackhole; do "
          "ip route flush type $t; done");
    }
    lab.a.sh(row.at_a);
    lab.b.sh(row.at_b);
    const bool elsewhere = std::string(row.address).starts_with("10.98");
    ListenRequest request = listen_request(elsewhere ? "10.99.0.2" : row.address);
    request.port = 33333;
    request.udp = false;
    const auto listeners = lab.b.in([] { return std::make_unique<Listeners>(); });
    const ListenAnswer answer = lab.b.in([&] { return listeners->open(request); });
    REQUIRE(answer.error.empty());
    REQUIRE(answer.watching.empty());
    const Dial dial = lab.a.in([&] { return dial_one(row.address, 33333, 4711); });
    CHECK(dial.outcome == row.outcome);
    CHECK(dial.error == row.error);
    CHECK(dial.syn_left == Observed<bool>(*row.left));
    // There, too: names of links are those of the network of whoever asks.
    const ReportAnswer report = lab.b.in([&] { return listeners->report({"set"}); });
    if (row.arrived) CHECK(report.syns.empty() != *row.arrived);
    if (!report.syns.empty()) {
      CHECK(report.syns.size() == 1);
      CHECK(report.syns[0] == Arrival{*dial.source, addr(row.address), 33333, "eth0"});
    }
  }
}

TEST_CASE("nobody has the address: no ARP answer, and the node says so itself") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  const Dial dial = lab.a.in([] { return dial_one("10.99.0.77", 33333, 4711, 4000); });
  CHECK(dial.outcome == Outcome::host_unreachable);
  CHECK(dial.error == "ICMP 3/1 from 10.99.0.1");
  CHECK(dial.syn_left == Observed<bool>(false));
}

TEST_CASE("a neighbour that has not answered in time is no filter") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  DialRequest request{.timeout_ms = 200};
  for (const char* address : {"10.99.0.77", "fd99::77"}) {
    request.targets.push_back({.address = addr(address), .port = 33333});
  }
  const auto lookups = fake_lookups({{addr("10.99.0.77"), "eth0", "", "incomplete"},
                                     {addr("fd99::77"), "eth0", "", "reachable"}});
  const DialAnswer answer = lab.a.in([&] { return probe::dial(request, lookups, soon()); });
  CHECK(answer.dials.at(0).outcome == Outcome::host_unreachable);
  CHECK(answer.dials.at(0).error == "no ARP answer from 10.99.0.77");
  CHECK(answer.dials.at(1).outcome == Outcome::timed_out);
}

TEST_CASE("a set that only watches sees what comes to another's port") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  const auto listeners = lab.b.in([] { return std::make_unique<Listeners>(); });
  ListenRequest request{.id = "set",
                        .address = addr("10.99.0.2"),
                        .port = std::uint16_t{33333},
                        .watch_arrivals = true,
                        .watch_only = true,
                        .hold_ms = 100};
  CHECK(lab.b.in([&] { return listeners->open(request); }).ports ==
        std::vector<std::uint16_t>{33333});
  CHECK(lab.a.in([] { return dial_one("10.99.0.2", 33333, std::nullopt); }).outcome ==
        Outcome::refused);
  CHECK(listeners->report({"set"}).syns.size() == 1);
}

}  // namespace
}  // namespace distdoctor::testing
