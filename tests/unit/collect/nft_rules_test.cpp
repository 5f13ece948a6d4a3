#include "collect/nft_rules.h"

#include "collect/nft_rule.h"
#include "support/filter_rules.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace distdoctor::testing {

using namespace collect;  // NOLINT(google-build-using-namespace): a test of this namespace
namespace {

// Each line as nftables 1.0.6 printed it, without its handle; older and newer forms say so.
struct Row {
  const char* text;
  std::vector<std::string> rules;
  const char* family = "inet";
};
const Row rows[] = {
    {R"(iif "lo" accept comment "lo { } ; drop")", {"in interface lo -> accept"}},
    {R"(iifname "eth*" tcp dport { 22, 80, 1000-2000 } counter packets 0 bytes 0 accept)",
     {"in interface eth*, protocol tcp, destination port 22|80|1000-2000 -> accept"}},
    {R"(iifname { "eth0", "eth1" } accept)", {"in interface eth0|eth1 -> accept"}},
    {R"(iifname != "lo" drop)", {"not in interface lo -> drop"}},
    {R"(oifname "lo" accept)", {"out interface lo -> accept"}},
    {"ct state established,related accept", {"state established|related -> accept"}},
    {"ct state { established, related } accept", {"state established|related -> accept"}},
    {"ct state != { established, new } drop", {"not state established|new -> drop"}},
    {"ct state ! invalid,new drop", {"not state invalid|new -> drop"}},
    {"ct state vmap { invalid : drop, established : accept, related : jump mine }",
     {"state invalid -> drop", "state established -> accept", "state related -> jump mine"}},
    {"ct status dnat accept", {"state dnat -> accept"}},
    {"ct direction original accept", {"other -> accept"}},
    {"tcp dport vmap @ports",
     {"protocol tcp, destination port 22 -> accept",
      "protocol tcp, destination port 23 -> jump other"}},
    {"tcp dport vmap @nobody", {"protocol tcp -> other"}},
    {"tcp dport vmap { 22 : accept, * : drop }", {"protocol tcp -> other"}},
    {"meta l4proto { icmp, ipv6-icmp } accept", {"protocol icmp|ipv6-icmp -> accept"}},
    {"ip protocol icmp accept", {"family ip, protocol icmp -> accept"}},
    {"ip protocol icmp accept", {"protocol icmp -> accept"}, "ip"},
    {"ip6 nexthdr tcp accept", {"family ip6, protocol tcp -> accept"}},
    {"icmp type echo-request limit rate 5/second accept",
     {"family ip, protocol icmp, other -> accept"}},
    {"icmpv6 type { nd-router-advert, nd-neighbor-solicit } accept",
     {"family ip6, protocol ipv6-icmp, other -> accept"}},
    {"ip saddr @blocked drop", {"family ip, source 10.0.0.0/24|10.1.0.1-10.1.0.9 -> drop"}},
    {"ip saddr @large drop", {"family ip, other -> drop"}},
    {"ip saddr @nobody drop", {"family ip, other -> drop"}},
    {R"(ip saddr != 10.0.0.0/8 tcp dport 22 log prefix "a b drop " group 3 drop)",
     {"family ip, not source 10.0.0.0/8, protocol tcp, destination port 22 -> drop"}},
    {"ip saddr . tcp dport { 10.0.0.1 . 22 } accept", {"family ip, other -> accept"}},
    {"ip saddr . tcp dport vmap { 10.0.0.1 . 22 : drop }", {"family ip, other -> other"}},
    {"ip saddr & 255.255.0.255 == 10.0.0.1 drop", {"family ip, other -> drop"}},
    {"ip saddr 10.0.0.1-10.0.0.9 tcp dport >= 5 accept",
     {"family ip, source 10.0.0.1-10.0.0.9, protocol tcp, destination port 5-65535 -> accept"}},
    {"ip6 saddr { ::1, fe80::/10 } accept", {"family ip6, source ::1|fe80::/10 -> accept"}},
    {"tcp flags syn / fin,syn,rst,ack tcp dport 32768-60999 counter packets 0 bytes 0 drop",
     {"protocol tcp, tcp flags fin,syn,rst,ack/syn, destination port 32768-60999 -> drop"}},
    {"tcp flags != syn / fin,syn,rst,ack ct state new drop",
     {"protocol tcp, not tcp flags fin,syn,rst,ack/syn, state new -> drop"}},
    {"tcp flags & (fin | syn | rst | ack) == syn drop",  // nftables 0.9 and 1.1
     {"protocol tcp, tcp flags fin,syn,rst,ack/syn -> drop"}},
    {"tcp flags & (fin | syn) == fin | syn drop",
     {"protocol tcp, tcp flags fin,syn/fin,syn -> drop"}},
    {"tcp flags ! syn drop", {"protocol tcp, not tcp flags syn/syn -> drop"}},
    {"tcp flags syn accept", {"protocol tcp, tcp flags syn/syn -> accept"}},
    {"tcp option maxseg size set rt mtu", {"protocol tcp, other -> mark"}},
    {"meta nfproto ipv4 tcp dport 1 counter packets 0 bytes 0 reject with icmp host-prohibited",
     {"family ip, protocol tcp, destination port 1 -> reject"}},
    {"reject with icmpx admin-prohibited", {"-> reject"}},
    {"fib daddr type local accept", {"destination type local -> accept"}},
    {"fib daddr type != local drop", {"not destination type local -> drop"}},
    {"fib saddr . iif oif missing drop", {"other -> drop"}},
    {"meta mark 0x00000001 accept", {"mark 0x00000001/0xffffffff -> accept"}},
    {"meta mark & 0x00000010 != 0x00000010 drop", {"not mark 0x00000010/0x00000010 -> drop"}},
    {"meta mark set 0x00000002 accept", {"-> mark", "-> accept"}},
    {"counter packets 0 bytes 0 meta mark set mark and 0xffffff00 xor 0x1", {"-> mark"}},
    {"ct mark set 0x00000002 tcp dport 22 drop", {"protocol tcp, destination port 22 -> drop"}},
    {"ip daddr set 10.0.0.9", {"family ip, other -> other"}},
    {"meta pkttype { broadcast, multicast } drop", {"packet type broadcast|multicast -> drop"}},
    {"limit rate over 400/minute drop", {"limit -> drop"}},
    {"limit rate 10 mbytes/second burst 5 mbytes tcp dport 5 accept",
     {"limit, protocol tcp, destination port 5 -> accept"}},
    {"tcp dport 22 ct count over 10 reject",
     {"protocol tcp, destination port 22, other -> reject"}},
    {"numgen random mod 100 < 5 counter packets 0 bytes 0 drop", {"other -> drop"}},
    {"th dport 53 accept", {"destination port 53 -> accept"}},
    {"udp dport 53 accept", {"protocol udp, destination port 53 -> accept"}},
    {"meta l4proto sctp sctp sport . sctp dport { 0-65535 . 1 } accept",
     {"protocol sctp, other -> accept"}},
    {"tcp dport ssh accept", {"protocol tcp, destination port ssh -> accept"}},
    {"xt match u32 counter packets 0 bytes 0 drop", {"other -> drop"}},
    {"meta l4proto tcp # xt_recent counter packets 0 bytes 0 drop",  // nftables 0.9
     {"protocol tcp, other -> drop"}},
    {"meter x { ip saddr limit rate over 10/second } counter packets 0 bytes 0 drop",
     {"other -> drop"}},
    {"jump { accept }", {"-> other"}},
    {"goto mine", {"-> goto mine"}},
    {"return", {"-> return"}},
    {"continue", {}},
    {"counter packets 5 bytes 6", {}},
    {R"(log prefix "x")", {}},
    {"masquerade", {"-> accept"}},
    {"tcp dport 80 redirect to :8080", {"protocol tcp, destination port 80 -> other"}},
    {"tcp dport 81 dnat to 10.0.0.5:80", {"protocol tcp, destination port 81 -> other"}},
    {"counter packets 0 bytes 0 queue num 0", {"-> other"}},
    {"notrack", {"-> other"}},
    {"iif", {}},
    {"tcp dport", {}},
    {"tcp dport { 22,", {}},
};

TEST_CASE("rules of nft, as it prints them") {
  NftSets sets;
  sets["blocked"] = {.elements = {{"10.0.0.0/24", {}}, {"10.1.0.1-10.1.0.9", {}}}};
  sets["large"] = {.simple = false};
  sets["ports"] = {.elements = {{"22", {.verdict = FilterVerdict::accept}},
                                {"23", {.verdict = FilterVerdict::jump, .target = "other"}}}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    std::size_t written = 0;
    CHECK(described(parse_nft_rule({.text = row.text, .family = row.family, .handle = 9}, sets,
                                   written)) == row.rules);
  }
}

TEST_CASE("a rule of nft keeps its text, its handle and its counter") {
  std::size_t written = 0;
  const auto rules = parse_nft_rule(
      {.text = "tcp dport 22 counter packets 5 bytes 6 drop", .family = "ip", .handle = 9}, {},
      written);
  REQUIRE(rules.size() == 1);
  CHECK(rules[0].number == 9);
  CHECK(rules[0].packets == 5);
  CHECK(rules[0].text == "tcp dport 22 counter packets 5 bytes 6 drop");
  const auto secret = parse_nft_rule(
      {.text = "drop comment \"see http://ann:secret@host/\"", .family = "ip"}, {}, written);
  CHECK(secret.at(0).text.find("secret") == std::string::npos);
}

// Printed by nftables 1.0.6 in a namespace of its own.
constexpr std::string_view kRuleset = R"(table inet filter { # handle 1
	set blocked { # handle 3
		type ipv4_addr
		flags interval
		elements = { 10.0.0.0/24, 10.1.0.1-10.1.0.9 }
	}

	set many { # handle 5
		type ipv4_addr
		elements = { 10.0.0.1, 10.0.0.2,
			     10.0.0.3 }
	}

	set dyn { # handle 6
		type ipv4_addr
		flags dynamic,timeout
		counter
		timeout 1h
		elements = { 10.0.0.1 counter packets 0 bytes 0 expires 59m59s992ms }
	}

	set cat { # handle 7
		type ipv4_addr . inet_service
		comment "a set"
		elements = { 10.0.0.1 . 22 }
	}

	map vm { # handle 9
		type inet_service : verdict
		elements = { 22 : accept, 23 : jump other }
	}

	counter c1 { # handle 3
		packets 0 bytes 0
	}

	chain other { # handle 1
		return # handle 10
	}

	chain input { # handle 2
		type filter hook input priority filter - 5; policy drop;
		ip saddr @many drop # handle 100
		ip saddr @dyn drop # handle 53
		ip saddr . tcp dport @cat drop # handle 54
		tcp dport vmap @vm # handle 21
		jump {
			accept
		} # handle 88
		tcp dport 22 accept # handle 99
	}
}
table netdev nd { # handle 2
	chain in { # handle 1
		type filter hook ingress device "lo" priority filter; policy accept;
		tcp dport 9 drop # handle 3
	}

	chain both { # handle 1
		type filter hook ingress devices = { lo, eth0 } priority -500; policy drop;
	}
}
# Warning: table ip nat is managed by iptables-nft, do not touch!
table ip nat { # handle 3
	chain POSTROUTING { # handle 3
		type nat hook postrouting priority srcnat + 7; policy accept;
		counter packets 0 bytes 0 masquerade # handle 4
	}
}
table inet asleep { # handle 9
	flags dormant
	chain input { # handle 2
		type filter hook input priority filter; policy drop;
	}
}
table inet last { # handle 9
	chain input { # handle 2
		type filter hook input priority 10; policy drop;
	}
}
)";

TEST_CASE("a ruleset of nft: tables, sets, chains and their hooks") {
  const auto chains = parse_nft_ruleset(kRuleset);
  std::vector<std::string> names;
  for (const FilterChain& chain : chains) {
    names.push_back(chain.family + " " + chain.table + " " + chain.name + " " + chain.hook + " " +
                    std::to_string(chain.priority) + " " + std::string(slug(chain.policy)));
  }
  CHECK(names == std::vector<std::string>{
                     "inet filter other  0 accept", "inet filter input input -5 drop",
                     "netdev nd in ingress 0 accept", "netdev nd both ingress -500 accept",
                     "ip nat POSTROUTING postrouting 107 accept", "inet last input input 10 drop"});
  REQUIRE(chains.size() == 6);
  CHECK(described(chains[1].rules) ==
        std::vector<std::string>{"family ip, source 10.0.0.1|10.0.0.2|10.0.0.3 -> drop",
                                 "family ip, source 10.0.0.1 -> drop", "family ip, other -> drop",
                                 "protocol tcp, destination port 22 -> accept",
                                 "protocol tcp, destination port 23 -> jump other", "-> other",
                                 "protocol tcp, destination port 22 -> accept"});
  CHECK(chains[1].rules.back().number == 99);
  CHECK(described(chains[2].rules) ==
        std::vector<std::string>{"in interface lo, protocol tcp, destination port 9 -> drop"});
  CHECK(described(chains[3].rules) == std::vector<std::string>{"in interface lo|eth0 -> drop"});
}

TEST_CASE("a set with more elements than a condition holds is not decoded") {
  const auto decoded = [](std::size_t elements) {
    std::string text =
        "table ip t { # handle 1\n\tset s { # handle 1\n\t\ttype inet_service\n"
        "\t\telements = { ";
    for (std::size_t i = 0; i < elements; ++i) text += std::to_string(i + 1) + ",\n";
    text += "70000 }\n\t}\n\tchain c { # handle 2\n\t\ttcp dport @s drop # handle 3\n\t}\n}\n";
    return described(parse_nft_ruleset(text).at(0).rules.at(0));
  };
  CHECK(decoded(3) == "protocol tcp, destination port 1|2|3|70000 -> drop");
  CHECK(decoded(kMostSetElements) == "protocol tcp, other -> drop");
}

TEST_CASE("sets that many rules name are written out up to a bound, then no more") {
  std::string text = "table ip t { # handle 1\n\tset s { # handle 1\n\t\telements = { 1";
  for (std::size_t i = 1; i < kMostSetElements; ++i) text += "," + std::to_string(i);
  text += " }\n\t}\n\tchain c { # handle 2\n";
  const std::size_t rules = kMostSetsWritten / kMostSetElements + 1;
  for (std::size_t i = 0; i < rules; ++i) text += "\t\ttcp dport @s drop # handle 3\n";
  const auto chains = parse_nft_ruleset(text + "\t}\n}\n");
  REQUIRE(chains.at(0).rules.size() == rules);
  CHECK(chains[0].rules[rules - 2].conditions.back().field == FilterField::destination_port);
  CHECK(chains[0].rules[rules - 1].conditions.back().field == FilterField::other);
}

TEST_CASE("a text that ends anywhere is read as far as it goes") {
  for (std::size_t end = 0; end <= kRuleset.size(); ++end) {
    CHECK(parse_nft_ruleset(kRuleset.substr(0, end)).size() <= 7);
  }
}

}  // namespace
}  // namespace distdoctor::testing
