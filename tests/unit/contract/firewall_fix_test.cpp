#include <distdoctor/firewall_fix.h>

#include "base/fd.h"
#include "support/builders.h"
#include "support/netns.h"

#include <doctest/doctest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <sstream>
#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

constexpr int kPort = 33333;

sockaddr_in6 endpoint(const char* address) {
  sockaddr_in6 end{};
  end.sin6_family = AF_INET6;
  end.sin6_port = htons(kPort);
  ::inet_pton(AF_INET6, address, &end.sin6_addr);
  return end;
}

Fd listener() {
  Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in6 any = endpoint("::");
  const int off = 0;
  ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any) == 0);
  REQUIRE(::listen(fd.get(), 16) == 0);
  return fd;
}

// Whether a connection comes about within a moment; a refused one does not.
bool connects(const char* address) {
  const Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_in6 end = endpoint(address);
  static_cast<void>(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&end), sizeof end));
  pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, 300) != 1) return false;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0;
}

Opening opening_for(const std::vector<const char*>& peers, Way way = Way::in) {
  Opening opening{
      .node = "node1", .peers = {}, .ports = {32768, 60999}, .interface = "eth0", .way = way};
  for (const char* peer : peers) opening.peers.push_back(addr(peer));
  return opening;
}

TEST_CASE("open_port_fix prints one command for each family, for the ports and peers asked for") {
  const auto fixes =
      open_port_fix(opening_for({"10.99.0.1", "fd99::1", "10.99.0.7", "fe80::1%eth0"}));
  REQUIRE(fixes.size() == 2);
  CHECK(fixes[0].node == "node1");
  CHECK(fixes[0].command.starts_with("for p in 10.99.0.1 10.99.0.7; do\n  if firewall-cmd"));
  CHECK(fixes[0].command.find("port=32768-60999") != std::string::npos);
  CHECK(fixes[0].command.find("--get-zone-of-interface=eth0") != std::string::npos);
  CHECK(fixes[0].command.find("to any port 32768:60999") != std::string::npos);
  CHECK(fixes[1].command.starts_with("for p in fd99::1 fe80::1; do\n"));
  CHECK(fixes[1].command.find("family=ipv6") != std::string::npos);
  CHECK(open_port_fix(opening_for({})).empty());
  const auto one =
      open_port_fix({.node = "n", .peers = {addr("10.0.0.1")}, .ports = {29500, 29500}});
  CHECK(one[0].command.find("tcp dport 29500 accept") != std::string::npos);
  CHECK(one[0].command.find("zone") == std::string::npos);
  const auto out = open_port_fix(opening_for({"10.0.0.1"}, Way::out));
  CHECK(out[0].command.find("firewall-cmd") == std::string::npos);
  CHECK(out[0].command.find("ufw prepend allow out proto tcp to $p port 32768:60999") !=
        std::string::npos);
}

TEST_CASE("open_port_fix prints lines that a person can read") {
  for (const Way way : {Way::in, Way::out}) {
    for (const Fix& fix : open_port_fix(opening_for({"10.99.0.1", "fd99::1"}, way))) {
      std::istringstream lines(fix.command);
      for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        CHECK(line.size() <= 130);
      }
    }
  }
}

struct Row {
  const char* name;
  const char* filter;         // on the host that is connected to
  const char* outgoing = "";  // on the one that connects
};
const Row rows[] = {
    {"two nft base chains",
     "nft -f - <<END\ntable inet lab {\nchain in { type filter hook input priority 0; policy "
     "drop;\n"
     "ct state established accept\nmeta l4proto ipv6-icmp accept\n}\n}\ntable ip guard {\nchain in "
     "{ type filter hook input "
     "priority 10; policy accept;\ntcp dport 1-65535 drop\n}\n}\nEND"},
    {"nft table for one family each",
     "nft -f - <<END\ntable ip a {\nchain i { type filter hook input priority 0;\ntcp dport "
     "1-65535 reject\n}\n}\n"
     "table ip6 a {\nchain i { type filter hook input priority 0;\ntcp dport 1-65535 "
     "drop\n}\n}\nEND"},
    {"iptables",
     "for t in iptables ip6tables; do $t -A INPUT -p tcp --dport 1024:65535 -j DROP; done"},
    {"iptables policy",
     "iptables -P INPUT DROP; ip6tables -P INPUT DROP; ip6tables -A INPUT -p ipv6-icmp -j ACCEPT"},
    {"output chain of the dialler", "true",
     "nft -f - <<END\ntable inet lab {\nchain out { type filter hook output priority 0;\ntcp dport "
     "1024-65535 drop\n}\n}\nEND"},
};

TEST_CASE("the printed command opens what a filter holds closed") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const Wire lab;
    const Fd listening = lab.b.in(listener);
    const auto both = [&] {
      return std::pair(lab.a.in([] { return connects("::ffff:10.99.0.2"); }),
                       lab.a.in([] { return connects("fd99::2"); }));
    };
    REQUIRE(both() == std::pair(true, true));
    must("ip netns exec " + lab.b.name() + " sh <<'SH'\n" + row.filter + "\nSH");
    must("ip netns exec " + lab.a.name() + " sh <<'SH'\n" + row.outgoing + "\nSH");
    REQUIRE(both() == std::pair(false, false));
    const bool out = *row.outgoing != '\0';
    const auto fixes = out ? open_port_fix(opening_for({"10.99.0.2", "fd99::2"}, Way::out))
                           : open_port_fix(opening_for({"10.99.0.1", "fd99::1"}));
    for (const Fix& fix : fixes) {
      must("ip netns exec " + (out ? lab.a : lab.b).name() + " sh <<'SH'\n" + fix.command + "\nSH");
    }
    CHECK(both() == std::pair(true, true));
  }
}

TEST_CASE("the printed command leaves a chain alone that drops nothing") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const Wire lab;
  const std::string host = "ip netns exec " + lab.b.name() + " sh <<'SH'\n";
  must(host +
       "nft -f - <<END\ntable inet counts {\nchain in { type filter hook input priority -5;\n"
       "counter\n}\n}\ntable inet guard {\nchain in { type filter hook input priority 0;\n"
       "tcp dport 1-65535 drop\n}\n}\nEND\nSH");
  for (const Fix& fix : open_port_fix(opening_for({"10.99.0.1"})))
    must(host + fix.command + "\nSH");
  must(host + "nft list table inet guard | grep -q accept\nSH");
  must(host + "! nft list table inet counts | grep -q 10.99.0.1\nSH");
}

}  // namespace
}  // namespace distdoctor::testing
