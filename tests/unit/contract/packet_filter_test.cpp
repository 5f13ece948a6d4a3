#include <distdoctor/packet_filter.h>

#include "collect/filter_text.h"
#include "collect/iptables_rules.h"
#include "collect/nft_rules.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

Firewall nft(const std::string& text) {
  return {.chains = collect::keep_ours(collect::parse_nft_ruleset(text))};
}
// An input chain with these lines, in one table of both families.
Firewall input(const std::string& lines, const std::string& policy = "accept") {
  return nft(
      "table inet filter { # handle 1\n\tchain mine { # handle 9\n\t\ttcp dport 29500 drop # "
      "handle 90\n\t}\n\tchain input { # handle 2\n\t\ttype filter hook input priority "
      "filter; policy " +
      policy + ";\n" + lines + "\t}\n}\n");
}
Firewall iptables(const std::string& text, FilterTool tool = FilterTool::iptables) {
  return {.chains = collect::keep_ours(collect::parse_iptables_save(text, tool, "ip"))};
}

// From node1 to MASTER_PORT of node0.
Packet packet() {
  return {.source = addr("10.10.0.11"),
          .destination = addr("10.10.0.10"),
          .port = 29500,
          .interface = "eth0"};
}
Packet outgoing() {
  Packet made = packet();
  made.way = Way::out;
  return made;
}

// "passes", "unknown", "stopped by 7 before 7", with the policy as 0.
std::string told(const FilterResult& result) {
  std::string text(slug(result.says));
  for (const FilterStop& stop : result.stops) {
    text +=
        " " + stop.chain + " " + std::to_string(stop.number) + "<" + std::to_string(stop.before);
  }
  return text;
}
std::string told(const Firewall& firewall, const Packet& asked) {
  return told(judge_packet(firewall, asked));
}

TEST_CASE("what may stop a packet, by conditions that nobody can follow, is told") {
  const Firewall mangle = iptables(
      "*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -p tcp -m tcp --dport 29500 -m connlimit "
      "--connlimit-above 0 --connlimit-mask 32 --connlimit-saddr -j DROP\nCOMMIT\n");
  const FilterResult result = judge_packet(mangle, packet());
  CHECK(result.says == FilterSays::unknown);
  REQUIRE(result.may_stop.size() == 1);
  CHECK(result.may_stop[0].table == "mangle");
  CHECK(result.may_stop[0].number == 1);

  const Firewall queue = input("tcp dport 29500 queue to 0 # handle 7\n");
  const FilterResult queued = judge_packet(queue, packet());
  CHECK(queued.says == FilterSays::unknown);
  REQUIRE(queued.may_stop.size() == 1);
  CHECK(queued.may_stop[0].before == 7);

  CHECK(judge_packet(input("tcp dport 1 queue to 0 # handle 7\n"), packet()).may_stop.empty());
}

struct Row {
  const char* name;
  const char* lines;
  const char* expected;
  const char* policy = "accept";
};
const Row rows[] = {
    {"no rule", "", "passes"},
    {"policy drop", "", "stopped input 0<0", "drop"},
    {"a rule for the port", "tcp dport 29500 counter packets 3 bytes 180 drop # handle 7\n",
     "stopped input 7<7"},
    {"a rule for other ports", "tcp dport { 22, 29501-29600 } drop # handle 7\n", "passes"},
    {"the first that matches decides", "tcp dport 29500 accept # handle 6\ndrop # handle 7\n",
     "passes"},
    {"what was allowed does not match, the policy drops",
     "iif \"lo\" accept # handle 3\nct state established,related accept # handle 4\n"
     "meta l4proto { icmp, ipv6-icmp } accept # handle 5\ntcp dport 22 accept # handle 6\n",
     "stopped input 0<0", "drop"},
    {"a drop policy with an accept for the peers",
     "iif \"lo\" accept # handle 3\nct state established,related accept # handle 4\n"
     "ct state invalid drop # handle 5\nip saddr 10.10.0.0/24 accept # handle 6\n",
     "passes", "drop"},
    {"a verdict map of the connection's state",
     "ct state vmap { invalid : drop, established : accept, related : accept } # handle 4\n"
     "tcp dport 29500 accept # handle 5\n",
     "passes", "drop"},
    {"rejected at the end",
     "ct state { established, related } accept # handle 4\n"
     "reject with icmpx admin-prohibited # handle 8\n",
     "stopped input 8<8"},
    {"another interface", "iifname \"eth1\" drop # handle 7\n", "passes"},
    {"this interface, with a wildcard", "iifname \"eth*\" drop # handle 7\n", "stopped input 7<7"},
    {"interfaces but this one", "iifname != \"eth0\" drop # handle 7\n", "passes"},
    {"another source", "ip saddr { 10.10.0.12, 192.0.2.0/24 } drop # handle 7\n", "passes"},
    {"a range of sources", "ip saddr 10.10.0.2-10.10.0.20 drop # handle 7\n", "stopped input 7<7"},
    {"all sources but a net", "ip saddr != 10.0.0.0/8 drop # handle 7\n", "passes"},
    {"the other family",
     "ip6 saddr != fd00::/8 drop # handle 7\nmeta nfproto ipv6 drop # handle "
     "8\n",
     "passes"},
    {"only SYNs", "tcp flags syn / fin,syn,rst,ack tcp dport 1024-65535 drop # handle 7\n",
     "stopped input 7<7"},
    {"what is no SYN", "tcp flags != syn / fin,syn,rst,ack ct state new drop # handle 7\n",
     "passes"},
    {"what no local address is for", "fib daddr type != local drop # handle 7\n", "passes"},
    {"broadcasts", "meta pkttype { broadcast, multicast } drop # handle 7\n", "passes"},
    {"a mark that nobody set", "meta mark & 0x00008000 == 0x00008000 drop # handle 7\n", "passes"},
    {"a mark that somebody may have set",
     "ip saddr 10.10.0.0/16 meta mark set 0x00008000 # handle 6\n"
     "meta mark 0x00008000 drop # handle 7\n",
     "unknown"},
    {"privileged source ports", "tcp sport 0-1023 drop # handle 7\n", "passes"},
    {"all unprivileged source ports", "tcp sport 1024-65535 drop # handle 7\n",
     "stopped input 7<7"},
    {"some source ports", "tcp sport 40000 drop # handle 7\n", "unknown"},
    {"a rate limit, then no rule", "limit rate over 10/second drop # handle 7\n", "unknown"},
    {"a rate limit, then a drop", "limit rate over 10/second drop # handle 6\ndrop # handle 7\n",
     "stopped input 7<7"},
    {"an accept that may hold, then a drop",
     "xt match \"recent\" accept # handle 6\ndrop # handle 7\n", "unknown"},
    {"an accept that may hold, then an accept",
     "xt match \"recent\" drop # handle 5\nxt match \"recent\" accept # handle 6\n", "unknown"},
    {"jump to a chain that drops", "jump mine # handle 5\naccept # handle 6\n",
     "stopped mine 90<90"},
    {"jump that may happen", "xt match \"recent\" jump mine # handle 5\n", "unknown"},
    {"goto a chain, back to the policy", "goto nothing # handle 5\n", "unknown", "drop"},
    {"return in the base chain: an accept has to stand before it",
     "tcp dport 29500 return # handle 5\naccept # handle 6\n", "stopped input 0<5", "drop"},
    {"return that may happen, then an accept",
     "xt match \"recent\" return # handle 5\naccept # handle 6\n", "unknown", "drop"},
    {"queue to a program", "queue num 0 # handle 5\ndrop # handle 6\n", "unknown"},
    {"a concatenation that may be ours", "ip saddr . tcp dport { 10.0.0.1 . 22 } drop # handle 7\n",
     "unknown"},
    {"a port by its name", "tcp dport ssh drop # handle 7\n", "unknown"},
    {"unreadable address", "ip saddr 10.0.0.1/255.0.0.255 drop # handle 7\n", "unknown"},
};

TEST_CASE("what a filter does to a packet, in three values") {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(told(input(row.lines, row.policy), packet()) == row.expected);
  }
}

TEST_CASE("goto does not come back: an accept has to stand before it") {
  const auto firewall = nft(
      "table inet f { # handle 1\n\tchain more { # handle 9\n\t\ttcp dport 22 accept # handle 90\n"
      "\t}\n\tchain input { # handle 2\n\t\ttype filter hook input priority filter; policy drop;\n"
      "\t\tgoto more # handle 5\n\t\taccept # handle 6\n\t}\n}\n");
  CHECK(told(firewall, packet()) == "stopped input 0<5");
}

TEST_CASE("accept ends one base chain only; each that stops it is told, in their order") {
  const auto firewall = nft(R"(table ip guard { # handle 1
	chain late { # handle 1
		type filter hook input priority 10; policy accept;
		tcp dport { 29500, 32768-60999 } counter packets 0 bytes 0 drop # handle 4
	}
}
table inet site { # handle 2
	chain early { # handle 1
		type filter hook prerouting priority 300; policy accept;
		tcp dport 29500 drop # handle 2
	}

	chain input { # handle 1
		type filter hook input priority -5; policy drop;
		tcp dport 29500 accept # handle 3
	}

	chain out { # handle 1
		type filter hook output priority -5; policy drop;
	}
}
table ip6 other { # handle 2
	chain input { # handle 1
		type filter hook input priority -500; policy drop;
	}
}
)");
  CHECK(told(firewall, packet()) == "stopped early 2<2 late 4<4");
  CHECK(told(firewall, outgoing()) == "stopped out 0<0");
}

TEST_CASE("tables of iptables, of both kinds") {
  const std::string saved =
      "*filter\n:INPUT DROP [0:0]\n:OUTPUT ACCEPT [0:0]\n:DOCKER-USER - [0:0]\n"
      "[0:0] -A INPUT -i lo -j ACCEPT\n"
      "[0:0] -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n"
      "[0:0] -A INPUT -j DOCKER-USER\n"
      "[5:300] -A DOCKER-USER ! -s 10.10.0.0/28 -p tcp -m multiport --dports 22,29500 -j REJECT "
      "--reject-with icmp-port-unreachable\n"
      "[0:0] -A DOCKER-USER -s 10.10.0.0/28 -j ACCEPT\nCOMMIT\n";
  CHECK(told(iptables(saved), packet()) == "passes");
  Packet from_afar = packet();
  from_afar.source = addr("10.10.1.1");
  const FilterResult result = judge_packet(iptables(saved, FilterTool::iptables_legacy), from_afar);
  REQUIRE(result.stops.size() == 1);
  CHECK(result.stops[0] == FilterStop{.tool = FilterTool::iptables_legacy,
                                      .family = "ip",
                                      .table = "filter",
                                      .chain = "DOCKER-USER",
                                      .base = "INPUT",
                                      .number = 1,
                                      .before = 1,
                                      .verdict = FilterVerdict::reject,
                                      .packets = 5,
                                      .text = "-A DOCKER-USER ! -s 10.10.0.0/28 -p tcp -m "
                                              "multiport --dports 22,29500 -j REJECT --reject-with "
                                              "icmp-port-unreachable"});
}

// Docker 24 without containers, with one published port.
constexpr const char* kDocker = R"(*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:OUTPUT ACCEPT [0:0]
:DOCKER - [0:0]
:DOCKER-ISOLATION-STAGE-1 - [0:0]
:DOCKER-ISOLATION-STAGE-2 - [0:0]
:DOCKER-USER - [0:0]
[0:0] -A FORWARD -j DOCKER-USER
[0:0] -A FORWARD -j DOCKER-ISOLATION-STAGE-1
[0:0] -A FORWARD -o docker0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
[0:0] -A FORWARD -o docker0 -j DOCKER
[0:0] -A DOCKER-ISOLATION-STAGE-1 -j RETURN
[0:0] -A DOCKER-USER -j RETURN
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:DOCKER - [0:0]
[0:0] -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
[0:0] -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
[0:0] -A POSTROUTING -s 172.17.0.0/16 ! -o docker0 -j MASQUERADE
[0:0] -A DOCKER -i docker0 -j RETURN
[0:0] -A DOCKER ! -i docker0 -p tcp -m tcp --dport 8080 -j DNAT --to-destination 172.17.0.2:80
COMMIT
)";
// kube-proxy 1.29, its chains that a packet for the node meets.
constexpr const char* kKubernetes = R"(*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-NPX46M4PTMTKRN6Y - [0:0]
:KUBE-SEP-WQ2XDX6H7HPCVQVG - [0:0]
[0:0] -A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
[0:0] -A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
[0:0] -A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
[0:0] -A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
[0:0] -A KUBE-NODEPORTS -d 127.0.0.0/8 -p tcp -m comment --comment "ns/svc" -m tcp --dport 30080 -j KUBE-SVC-NPX46M4PTMTKRN6Y
[0:0] -A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
[0:0] -A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
[0:0] -A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
[0:0] -A KUBE-SEP-WQ2XDX6H7HPCVQVG -p tcp -m tcp -j DNAT --to-destination 10.0.0.5:6443
[0:0] -A KUBE-SERVICES -d 10.96.0.1/32 -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp --dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y
[0:0] -A KUBE-SERVICES -m comment --comment "kubernetes service nodeports" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS
[0:0] -A KUBE-SVC-NPX46M4PTMTKRN6Y ! -s 10.244.0.0/16 -d 10.96.0.1/32 -p tcp -m tcp --dport 443 -j KUBE-MARK-MASQ
[0:0] -A KUBE-SVC-NPX46M4PTMTKRN6Y -j KUBE-SEP-WQ2XDX6H7HPCVQVG
COMMIT
*filter
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:KUBE-EXTERNAL-SERVICES - [0:0]
:KUBE-FIREWALL - [0:0]
:KUBE-NODEPORTS - [0:0]
:KUBE-PROXY-FIREWALL - [0:0]
:KUBE-SERVICES - [0:0]
[0:0] -A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes load balancer firewall" -j KUBE-PROXY-FIREWALL
[0:0] -A INPUT -m comment --comment "kubernetes health check service ports" -j KUBE-NODEPORTS
[0:0] -A INPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes externally-visible service portals" -j KUBE-EXTERNAL-SERVICES
[0:0] -A INPUT -j KUBE-FIREWALL
[0:0] -A OUTPUT -m conntrack --ctstate NEW -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
[0:0] -A OUTPUT -j KUBE-FIREWALL
[0:0] -A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP
[0:0] -A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP
[0:0] -A KUBE-SERVICES -d 10.96.7.7/32 -p tcp -m comment --comment "ns/none has no endpoints" -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable
COMMIT
)";

TEST_CASE("healthy: chains of docker and kube-proxy are not in the way") {
  for (const char* saved : {kDocker, kKubernetes}) {
    for (const FilterTool tool : {FilterTool::iptables, FilterTool::iptables_legacy}) {
      CHECK(told(iptables(saved, tool), packet()) == "passes");
      CHECK(told(iptables(saved, tool), outgoing()) == "passes");
    }
  }
}

TEST_CASE("a port that docker hands on to a container: nobody knows from here") {
  Packet published = packet();
  published.port = 8080;
  CHECK(told(iptables(kDocker), published) == "unknown");
}

TEST_CASE("chains that see other packets: of a device, of bridges") {
  const std::string netdev =
      "table netdev nd { # handle 2\n\tchain in { # handle 1\n\t\ttype filter hook ingress device "
      "\"eth0\" priority filter; policy accept;\n\t\ttcp dport 29500 drop # handle 3\n\t}\n}\n";
  Packet asked = packet();
  CHECK(told(nft(netdev), asked) == "stopped in 3<3");
  asked.interface = "eth1";
  CHECK(told(nft(netdev), asked) == "passes");
  asked.interface = "";
  CHECK(told(nft(netdev), asked) == "unknown");
  CHECK(told(nft(netdev), outgoing()) == "passes");
  const std::string bridge =
      "table bridge b { # handle 2\n\tchain in { # handle 1\n\t\ttype filter hook input priority "
      "filter; policy accept;\n\t\tdrop # handle 3\n\t}\n}\n";
  CHECK(told(nft(bridge), packet()) == "passes");
  asked = packet();
  asked.bridged = true;
  CHECK(told(nft(bridge), asked) == "unknown");
}

TEST_CASE("a node towards its own address is local at both ends, by lo") {
  Packet own = packet();
  own.source = own.destination;
  own.interface = "lo";
  CHECK(told(input("iif \"lo\" accept # handle 3\n", "drop"), own) == "passes");
  CHECK(told(input("fib saddr type local drop # handle 3\n"), own) == "stopped input 3<3");
  CHECK(told(input("fib saddr type local drop # handle 3\n"), packet()) == "passes");
}

TEST_CASE("answers come from the port that listens, and belong to a connection") {
  Packet answer = packet();
  answer.source = packet().destination;
  answer.destination = packet().source;
  answer.answer = true;
  const struct {
    const char* lines;
    const char* expected;
  } answers[] = {
      {"ct state established accept # handle 3\n", "passes"},
      {"ct state new tcp dport 29500 accept # handle 3\n", "stopped input 0<0"},
      {"tcp sport 29500 accept # handle 3\n", "passes"},
      {"tcp dport 1024-65535 accept # handle 3\n", "passes"},
      {"tcp dport 32768-60999 accept # handle 3\n", "unknown"},
      {"tcp dport 22 accept # handle 3\n", "stopped input 0<0"},
      {"tcp flags syn / fin,syn,rst,ack accept # handle 3\n", "stopped input 0<0"},
      {"tcp flags syn,ack / fin,syn,rst,ack accept # handle 3\n", "passes"},
      {"tcp flags ack accept # handle 3\n", "passes"},
  };
  for (const auto& row : answers) {
    CAPTURE(row.lines);
    CHECK(told(input(row.lines, "drop"), answer) == row.expected);
  }
}

TEST_CASE("chains that call each other without an end, or too often, end as unknown") {
  std::vector<FilterChain> chains = {{.family = "ip", .table = "t", .name = "in", .hook = "input"}};
  chains[0].rules = {{.verdict = FilterVerdict::jump, .target = "a"}};
  chains.push_back({.family = "ip", .table = "t", .name = "a"});
  chains[1].rules = {{.verdict = FilterVerdict::jump, .target = "a", .text = "jump a"}};
  CHECK(told({.chains = chains}, packet()) == "unknown");
  // 2^40 paths.
  chains.resize(1);
  for (int i = 0; i < 40; ++i) {
    const std::string next = "c" + std::to_string(i + 1);
    const FilterRule down{.verdict = FilterVerdict::jump, .target = next};
    chains.push_back({.family = "ip",
                      .table = "t",
                      .name = i == 0 ? "a" : "c" + std::to_string(i),
                      .rules = {down, down}});
  }
  chains.push_back({.family = "ip", .table = "t", .name = "c40"});
  CHECK(told({.chains = chains}, packet()) == "unknown");
}

TEST_CASE("a chain that was cut is not known to let pass") {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "tcp dport 22 accept # handle 5\n";
  auto chains = collect::parse_nft_ruleset(
      "table ip t { # handle 1\n\tchain c { # handle 2\n\t\ttype filter hook input priority "
      "filter; policy accept;\n" +
      lines + "\t}\n}\n");
  CHECK(told({.chains = collect::keep_ours(chains)}, packet()) == "passes");
  CHECK(told({.chains = collect::keep_ours(chains, 99)}, packet()) == "unknown");
  chains[0].rules = {{.verdict = FilterVerdict::jump, .target = "more"}};
  chains.push_back({.family = "ip", .table = "t", .name = "more"});
  chains.push_back({.family = "ip", .table = "t", .name = "late", .hook = "input", .priority = 9});
  CHECK(told({.chains = collect::keep_ours(chains, 2)}, packet()) == "passes");
  CHECK(collect::keep_ours(chains, 1).size() == 2);
  CHECK(told({.chains = collect::keep_ours(chains, 1)}, packet()) == "unknown");
}

TEST_CASE("ports in pieces that no rule tells apart") {
  const auto firewall = input("tcp dport { 22, 40000-50000 } drop # handle 5\n");
  CHECK(port_pieces(firewall, {32768, 60999}, 64) ==
        std::vector<PortRange>{{32768, 39999}, {40000, 50000}, {50001, 60999}});
  CHECK(port_pieces(firewall, {32768, 60999}, 2) ==
        std::vector<PortRange>{{32768, 39999}, {40000, 60999}});
  CHECK(port_pieces(firewall, {29500, 29500}, 64) == std::vector<PortRange>{{29500, 29500}});
}

}  // namespace
}  // namespace distdoctor::testing
