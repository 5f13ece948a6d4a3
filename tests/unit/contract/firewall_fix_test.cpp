#include <distdoctor/firewall_fix.h>
#include <distdoctor/packet_filter.h>

#include "base/fd.h"
#include "collect/collectors.h"
#include "machine/machine.h"
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

constexpr int kMoment = 300;     // ms: what is dropped stays silent
constexpr int kPatience = 5000;  // what is open answers at once, but for a busy machine

// Whether a connection comes about in that time; a refused one does not.
bool connects(const char* address, int ms) {
  const Fd fd(::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const sockaddr_in6 end = endpoint(address);
  static_cast<void>(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&end), sizeof end));
  pollfd ready{.fd = fd.get(), .events = POLLOUT, .revents = 0};
  if (::poll(&ready, 1, ms) != 1) return false;
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
  CHECK(fixes[0].command.starts_with("if firewall-cmd"));
  CHECK(fixes[0].command.find("  for p in 10.99.0.1 10.99.0.7; do\n    ufw") != std::string::npos);
  // One rule for all of them where the tool takes several.
  CHECK(fixes[0].command.find("iptables -I INPUT -s 10.99.0.1,10.99.0.7 -p tcp") !=
        std::string::npos);
  CHECK(fixes[0].command.find("ip saddr { 10.99.0.1, 10.99.0.7 } tcp dport") != std::string::npos);
  CHECK(fixes[0].command.find("port=32768-60999") != std::string::npos);
  CHECK(fixes[0].command.find("--get-zone-of-interface=eth0") != std::string::npos);
  CHECK(fixes[0].command.find("to any port 32768:60999") != std::string::npos);
  CHECK(fixes[1].command.find("for p in fd99::1 fe80::1; do\n") != std::string::npos);
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

TEST_CASE("what a node sends to itself is let through by its loopback link, in whatever chain") {
  Opening opening = opening_for({"10.0.0.1"});
  opening.own = addr("10.0.0.1");
  const std::string script = open_port_fix(opening).front().command;
  for (const char* part : {"iptables -I INPUT -i lo -j ACCEPT", "iifname lo accept",
                           "iptables -t $1 -I $2 -i lo -j ACCEPT"}) {
    CAPTURE(part);
    CHECK(script.find(part) != std::string::npos);
  }
  CHECK(script.find("10.0.0.1") == std::string::npos);
  opening.peers.push_back(addr("10.0.0.2"));  // then its own address is one of several
  CHECK(open_port_fix(opening).front().command.find("iifname lo") == std::string::npos);
}

TEST_CASE("the protocol is that of the traffic, in whatever tool") {
  Opening opening = opening_for({"10.0.0.1", "10.0.0.2"});
  opening.udp = true;
  opening.ports = {4791, 4791};
  const auto fixes = open_port_fix(opening);
  REQUIRE(fixes.size() == 1);
  for (const char* part : {"port port=4791 protocol=udp", "proto udp from $p",
                           "-p udp --dport 4791", "udp dport 4791 accept"}) {
    CAPTURE(part);
    CHECK(fixes[0].command.find(part) != std::string::npos);
  }
  CHECK(fixes[0].command.find("tcp") == std::string::npos);
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
    {"nft before routing",
     "nft -f - <<END\ntable inet early {\nchain p { type filter hook prerouting priority -300;\n"
     "tcp dport 1-65535 drop\n}\n}\nEND"},
    {"iptables before routing",
     "for t in iptables ip6tables; do $t -t raw -A PREROUTING -p tcp --dport 1024:65535 -j DROP; "
     "$t -t mangle -A PREROUTING -p tcp --dport 1024:65535 -j DROP; done"},
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
    const auto both = [&](int ms) {
      return std::pair(lab.a.in([ms] { return connects("::ffff:10.99.0.2", ms); }),
                       lab.a.in([ms] { return connects("fd99::2", ms); }));
    };
    REQUIRE(both(kPatience) == std::pair(true, true));
    must("ip netns exec " + lab.b.name() + " sh <<'SH'\n" + row.filter + "\nSH");
    must("ip netns exec " + lab.a.name() + " sh <<'SH'\n" + row.outgoing + "\nSH");
    REQUIRE(both(kMoment) == std::pair(false, false));
    const bool out = *row.outgoing != '\0';
    const auto fixes = out ? open_port_fix(opening_for({"10.99.0.2", "fd99::2"}, Way::out))
                           : open_port_fix(opening_for({"10.99.0.1", "fd99::1"}));
    for (const Fix& fix : fixes) {
      must("ip netns exec " + (out ? lab.a : lab.b).name() + " sh <<'SH'\n" + fix.command + "\nSH");
    }
    CHECK(both(kPatience) == std::pair(true, true));
  }
}

// What the rules of this namespace say of connections between the two addresses.
std::vector<Closed> closed_by(const Firewall& firewall,
                              Way way,
                              const std::vector<std::pair<const char*, const char*>>& ends) {
  std::vector<Closed> all;
  for (const auto& [own, peer] : ends) {
    const bool in = way == Way::in;
    const auto result = judge_packet(firewall, {.way = way,
                                                .source = addr(in ? peer : own),
                                                .destination = addr(in ? own : peer),
                                                .port = kPort,
                                                .interface = "eth0"});
    for (const FilterStop& stop : result.stops) all.push_back({addr(peer), stop});
  }
  return all;
}

Firewall read_rules(const Namespace& host) {
  return host.in([] {
    const auto machine = machine::Machine::live();
    REQUIRE(machine.has_value());
    NodeFacts node;
    collect::collect_firewall(**machine, {}, node);
    REQUIRE(node.firewall.known());
    return *node.firewall;
  });
}

const Row read_rows[] = {
    {"a chain that others jump to, with two rules that stop different peers",
     "nft -f - <<END\ntable inet lab {\nset far { type ipv4_addr; elements = { 10.99.0.1 }; }\n"
     "chain deep {\ncounter\nip saddr @far tcp dport 1024-65535 counter drop\n"
     "ip6 saddr fd99::/64 tcp dport 33000-34000 reject\naccept\n}\n"
     "chain in { type filter hook input priority 0; policy accept;\nct state established accept\n"
     "jump deep\n}\n}\nEND"},
    {"goto, then the policy",
     "nft -f - <<END\ntable inet lab {\nchain deep {\nmeta l4proto ipv6-icmp accept\n}\n"
     "chain in { type filter hook input priority 0; policy drop;\nct state established accept\n"
     "goto deep\n}\n}\nEND"},
    {"a user chain of iptables and rules after it",
     "for t in iptables ip6tables; do $t -N GUARD; $t -A INPUT -i lo -j ACCEPT; "
     "$t -A INPUT -j GUARD; $t -A GUARD -p tcp --dport 22 -j ACCEPT; "
     "$t -A GUARD -p tcp -m multiport --dports 1024:40000 -j REJECT; $t -A INPUT -p tcp -j DROP; "
     "done"},
    {"mangle",
     "for t in iptables ip6tables; do $t -t mangle -A PREROUTING -p tcp ! --dport 22 -j "
     "DROP; done"},
};

TEST_CASE("where the rules were read, one rule before the deciding one opens the way") {
  if (const auto why = why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  std::vector<Row> all(std::begin(rows), std::end(rows));
  all.insert(all.end(), std::begin(read_rows), std::end(read_rows));
  for (const Row& row : all) {
    CAPTURE(row.name);
    const Wire lab;
    const Fd listening = lab.b.in(listener);
    const auto both = [&](int ms) {
      return std::pair(lab.a.in([ms] { return connects("::ffff:10.99.0.2", ms); }),
                       lab.a.in([ms] { return connects("fd99::2", ms); }));
    };
    const bool out = *row.outgoing != '\0';
    const Namespace& host = out ? lab.a : lab.b;
    must("ip netns exec " + host.name() + " sh <<'SH'\n" + (out ? row.outgoing : row.filter) +
         "\nSH");
    REQUIRE(both(kMoment) == std::pair(false, false));
    const Way way = out ? Way::out : Way::in;
    const auto ends =
        out ? std::vector<std::pair<const char*, const char*>>{{"10.99.0.1", "10.99.0.2"},
                                                               {"fd99::1", "fd99::2"}}
            : std::vector<std::pair<const char*, const char*>>{{"10.99.0.2", "10.99.0.1"},
                                                               {"fd99::2", "fd99::1"}};
    const Firewall firewall = read_rules(host);
    const auto closed = closed_by(firewall, way, ends);
    REQUIRE(closed.size() >= 2);
    // Counted the other way round: what is seen after the fix is that nothing stops them.
    for (const Fix& fix : open_before_fix(opening_for({}, way), firewall, closed)) {
      CAPTURE(fix.command);
      CHECK(fix.command.find('\n') == std::string::npos);
      must("ip netns exec " + host.name() + " sh <<'SH'\n" + fix.command + "\nSH");
    }
    CHECK(both(kPatience) == std::pair(true, true));
    CHECK(closed_by(read_rules(host), way, ends).empty());
  }
}

FilterStop iptables_stop(const char* chain, int before) {
  return {.tool = FilterTool::iptables,
          .family = "ip",
          .table = "filter",
          .chain = chain,
          .base = "INPUT",
          .number = before,
          .before = before,
          .text = "-A INPUT -j DROP"};
}
std::vector<std::string> commands(const Firewall& firewall, const std::vector<Closed>& closed) {
  std::vector<std::string> all;
  for (const Fix& fix : open_before_fix(opening_for({}), firewall, closed)) {
    all.push_back(fix.command);
  }
  return all;
}

TEST_CASE("of two places in a chain of iptables the last comes first, so that no number moves") {
  CHECK(commands({}, {{addr("10.0.0.1"), iptables_stop("INPUT", 3)},
                      {addr("10.0.0.2"), iptables_stop("INPUT", 5)},
                      {addr("10.0.0.3"), iptables_stop("INPUT", 3)}}) ==
        std::vector<std::string>{
            "iptables -I INPUT 5 -s 10.0.0.2 -p tcp --dport 32768:60999 -j ACCEPT",
            "iptables -I INPUT 3 -s 10.0.0.1,10.0.0.3 -p tcp --dport 32768:60999 -j ACCEPT"});
  FilterStop legacy = iptables_stop("my chain", 1);
  legacy.tool = FilterTool::iptables_legacy;
  legacy.table = "mangle";
  CHECK(commands({}, {{addr("10.0.0.1"), legacy}}) ==
        std::vector<std::string>{"iptables-legacy -t mangle -I 'my chain' 1 -s 10.0.0.1 -p tcp "
                                 "--dport 32768:60999 -j ACCEPT"});
}

TEST_CASE("ufw and firewalld mend what they own, and nothing else") {
  const Firewall ufw{.ufw = true};
  const FilterStop user = iptables_stop("ufw-user-input", 4);
  const std::string through_ufw =
      "for p in 10.0.0.1 10.0.0.2; do\n  ufw prepend allow proto tcp from $p to any port "
      "32768:60999\ndone";
  CHECK(commands(ufw, {{addr("10.0.0.1"), user}, {addr("10.0.0.2"), iptables_stop("INPUT", 0)}}) ==
        std::vector<std::string>{through_ufw});
  for (const char* chain : {"INPUT", "ufw-before-input"}) {
    CHECK(commands(ufw, {{addr("10.0.0.1"), iptables_stop(chain, 4)}})
              .at(0)
              .starts_with(std::string("iptables -I ") + chain + " 4 "));
  }
  const FilterStop zone{.family = "inet",
                        .table = "firewalld",
                        .chain = "filter_INPUT",
                        .number = 9,
                        .before = 9,
                        .verdict = FilterVerdict::reject};
  const FilterChain its{.family = "inet", .table = "firewalld", .name = "filter_INPUT"};
  const Firewall firewalld{.chains = {its}, .firewalld = true};
  CHECK(commands(firewalld, {{addr("10.0.0.1"), zone}}).at(0).find("firewall-cmd --zone") !=
        std::string::npos);
  CHECK(commands(firewalld, {{addr("10.0.0.1"), iptables_stop("INPUT", 4)}})
            .at(0)
            .starts_with("iptables -I INPUT 4 "));
  CHECK(commands({.firewalld = true}, {{addr("10.0.0.1"), iptables_stop("INPUT", 4)}})
            .at(0)
            .find("firewall-cmd") != std::string::npos);
  CHECK(commands({.chains = {its}}, {{addr("10.0.0.1"), zone}}).at(0) ==
        "nft insert rule inet firewalld filter_INPUT position 9 ip saddr 10.0.0.1 tcp dport "
        "32768-60999 accept");
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
