// Kernel messages, built here byte by byte, and what becomes of them.
#include "machine/link_rows.h"
#include "machine/route_rows.h"
#include "machine/socket_rows.h"
#include "support/netlink_message.h"

#include <doctest/doctest.h>

#include <linux/fib_rules.h>
#include <linux/if_arp.h>
#include <linux/inet_diag.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using distdoctor::testing::Message;

namespace {

Address ip(std::string_view text) {
  return *Address::parse(text);
}

struct KindRow {
  std::string_view info_kind;
  unsigned hardware;
  LinkKind kind;
};
constexpr std::array<KindRow, 9> kKinds = {{
    {"", ARPHRD_ETHER, LinkKind::ethernet},
    {"", ARPHRD_LOOPBACK, LinkKind::loopback},
    {"", ARPHRD_INFINIBAND, LinkKind::infiniband},
    {"", ARPHRD_NONE, LinkKind::other},
    {"veth", ARPHRD_ETHER, LinkKind::veth},
    {"wireguard", ARPHRD_NONE, LinkKind::wireguard},
    {"ipoib", ARPHRD_INFINIBAND, LinkKind::infiniband},
    {"macvtap", ARPHRD_ETHER, LinkKind::macvlan},
    {"gretap", ARPHRD_ETHER, LinkKind::other},
}};

fib_rule_hdr rule_header(unsigned flags = 0) {
  fib_rule_hdr header{};
  header.family = AF_INET;
  header.action = FR_ACT_TO_TBL;
  header.table = 254;
  header.flags = flags;
  return header;
}

constexpr std::string_view kProcTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 "
    "4711 1 0 100\n"
    "   1: 0100000A:9C40 0200000A:733C 02 00000001:00000000 01:00000000 00000004     0        0 "
    "4712 2 0 20\n"
    "   2: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000     0        0 4713 1\n"
    "   3: 0000000000000000FFFF00000100000A:0016 0000000000000000FFFF00000200000A:9C40 01 "
    "00000000:00000000 00:00000000 00000000     0        0 4714 1\n"
    "broken line\n"
    "   4: 0100007F1F90 00000000:0000 0A 00000000:00000003 00:00000000 00000000  1000        0 1 "
    "1\n";

}  // namespace

TEST_CASE("what a link is") {
  for (const auto& row : kKinds) {
    CAPTURE(row.info_kind);
    CHECK(link_kind(row.info_kind, row.hardware) == row.kind);
  }
}

TEST_CASE("a link's message") {
  ifinfomsg header{};
  header.ifi_type = ARPHRD_ETHER;
  header.ifi_index = 7;
  header.ifi_flags = IFF_UP | IFF_RUNNING;
  Message message(RTM_NEWLINK, header);
  message.add(IFLA_IFNAME, std::string_view("eth0\0", 5)).add(IFLA_MTU, 9000U);
  message.add(IFLA_ADDRESS, std::string_view("\x02\x42\xac\x11\x00\x02", 6));
  message.add(IFLA_MASTER, 3U).add(IFLA_OPERSTATE, std::string_view("\x06", 1));
  message.add(IFLA_CARRIER, std::string_view("\x01", 1));
  const auto row = decode_link(message.get());
  REQUIRE(row.has_value());
  CHECK(row->master == 3);
  CHECK(row->link == Link{.name = "eth0",
                          .index = 7,
                          .kind = LinkKind::ethernet,
                          .mtu = 9000,
                          .up = true,
                          .running = true,
                          .carrier = true,
                          .operstate = "up",
                          .mac = "02:42:ac:11:00:02"});
  CHECK_FALSE(decode_link(Message(RTM_NEWADDR, header).get()).has_value());
}

TEST_CASE("an address's message: our own end of a tunnel, and the long flags") {
  ifaddrmsg header{};
  header.ifa_family = AF_INET;
  header.ifa_prefixlen = 32;
  header.ifa_index = 4;
  Message message(RTM_NEWADDR, header);
  message.add(IFA_ADDRESS, ip("10.9.0.2")).add(IFA_LOCAL, ip("10.9.0.1"));
  message.add(IFA_LABEL, std::string_view("tun0:1\0", 7)).add(IFA_FLAGS, unsigned{IFA_F_SECONDARY});
  const auto row = decode_address(message.get());
  REQUIRE(row.has_value());
  CHECK(row->first == 4);
  CHECK(row->second ==
        LinkAddress{.address = ip("10.9.0.1"), .prefix = 32, .label = "tun0:1", .secondary = true});
  CHECK_FALSE(decode_address(Message(RTM_NEWADDR, header).get()).has_value());
}

TEST_CASE("a route's message: one route, several next hops, a cached copy of none") {
  const LinkNames names = {{2, "eth0"}, {3, "eth1"}};
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_dst_len = 24;
  header.rtm_type = RTN_UNICAST;
  header.rtm_table = RT_TABLE_COMPAT;
  Message message(RTM_NEWROUTE, header);
  message.add(RTA_DST, ip("10.2.0.0")).add(RTA_TABLE, 1000U).add(RTA_PRIORITY, 50U);
  message.add(RTA_PREFSRC, ip("10.1.0.1"));
  auto via_one = message;
  via_one.add(RTA_OIF, 2U).add(RTA_GATEWAY, ip("10.1.0.254"));
  const Route expected{.destination = ip("10.2.0.0"),
                       .prefix = 24,
                       .interface = "eth0",
                       .gateway = ip("10.1.0.254"),
                       .source = ip("10.1.0.1"),
                       .table = 1000,
                       .metric = 50};
  CHECK(decode_routes(via_one.get(), names) == std::vector{expected});
  const std::string hops = std::string("\x08\x00\x00\x00\x02\x00\x00\x00", 8) +
                           std::string("\x10\x00\x00\x00\x03\x00\x00\x00", 8) +
                           std::string("\x08\x00\x05\x00\x0a\x01\x01\xfe", 8);
  auto via_two = message;
  via_two.add(RTA_MULTIPATH, hops);
  const auto routes = decode_routes(via_two.get(), names);
  REQUIRE(routes.size() == 2);
  CHECK(routes[0].interface == "eth0");
  CHECK_FALSE(routes[0].gateway.has_value());
  CHECK(routes[1].interface == "eth1");
  CHECK(routes[1].gateway == ip("10.1.1.254"));
}

TEST_CASE("of too many routes none are told, since a part leads astray") {
  const auto all = ask_routes(1'000'000);
  if (!all || all->size() < 2) {
    MESSAGE("skipped: no two routes here");
    return;
  }
  CHECK(ask_routes(all->size()).has_value());
  const auto part = ask_routes(all->size() - 1);
  REQUIRE_FALSE(part.has_value());
  CHECK(part.error().attempt == "read the routes");
  CHECK(part.error().reason == "more than " + std::to_string(all->size() - 1));
}

TEST_CASE("a rule's message, and rules that nobody should think he knows") {
  Message plain(RTM_NEWRULE, rule_header());
  plain.add(FRA_PRIORITY, 100U).add(FRA_TABLE, 1000U).add(FRA_FWMARK, 7U);
  plain.add(FRA_SUPPRESS_PREFIXLEN, 0xffff'ffffU);
  const auto rule = decode_rule(plain.get());
  REQUIRE(rule.has_value());
  CHECK(*rule == PolicyRule{.priority = 100, .table = 1000, .mark = 7});
  CHECK(decode_rule(Message(RTM_NEWRULE, rule_header(FIB_RULE_INVERT)).get())->action ==
        RuleAction::other);
  Message ports(RTM_NEWRULE, rule_header());
  ports.add(FRA_DPORT_RANGE, 0x00160016U);
  CHECK(decode_rule(ports.get())->action == RuleAction::other);
  Message suppressed(RTM_NEWRULE, rule_header());
  suppressed.add(FRA_SUPPRESS_PREFIXLEN, 0U);
  CHECK(decode_rule(suppressed.get())->action == RuleAction::other);
}

TEST_CASE("a neighbour's message; multicast entries are none") {
  ndmsg header{};
  header.ndm_family = AF_INET6;
  header.ndm_ifindex = 2;
  header.ndm_state = NUD_STALE;
  Message message(RTM_NEWNEIGH, header);
  message.add(NDA_DST, ip("fe80::1")).add(NDA_LLADDR, std::string_view("\x02\0\0\0\0\x01", 6));
  const auto row = decode_neighbour(message.get(), {{2, "eth0"}});
  REQUIRE(row.has_value());
  CHECK(*row == Neighbour{ip("fe80::1%eth0"), "eth0", "02:00:00:00:00:01", "stale"});
  header.ndm_state = NUD_NOARP;
  Message silent(RTM_NEWNEIGH, header);
  silent.add(NDA_DST, ip("ff02::1"));
  CHECK_FALSE(decode_neighbour(silent.get(), {}).has_value());
}

TEST_CASE("a socket's message: IPv4 in IPv6 is IPv4") {
  inet_diag_msg header{};
  header.idiag_family = AF_INET6;
  header.idiag_state = 1;
  header.idiag_retrans = 3;
  header.idiag_rqueue = 5;
  header.idiag_inode = 77;
  header.id.idiag_sport = htons(29500);
  header.id.idiag_dport = htons(40000);
  const auto mapped = ip("::ffff:10.0.0.1");
  std::memcpy(&header.id.idiag_src, mapped.bytes.data(), 16);
  const auto row = decode_socket(Message(20, header).get());
  REQUIRE(row.has_value());
  CHECK(*row == SocketRow{.state = TcpState::established,
                          .local = ip("10.0.0.1"),
                          .local_port = 29500,
                          .remote = ip("::"),
                          .remote_port = 40000,
                          .receive_queue = 5,
                          .retransmits = 3,
                          .inode = 77});
}

TEST_CASE("/proc/net/tcp and tcp6, for kernels without sock_diag") {
  const auto rows = parse_proc_tcp(kProcTcp);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0] == SocketRow{.listening = true,
                             .local = ip("127.0.0.1"),
                             .local_port = 8080,
                             .remote = ip("0.0.0.0"),
                             .receive_queue = 3,
                             .uid = 1000,
                             .inode = 4711});
  CHECK(rows[1].state == TcpState::syn_sent);
  CHECK(rows[1].remote == ip("10.0.0.2"));
  CHECK(rows[1].remote_port == 29500);
  CHECK(rows[1].retransmits == 4);
  CHECK(rows[2].local == ip("::1"));
  CHECK(rows[3].remote == ip("10.0.0.2"));
  CHECK(parse_proc_tcp("").empty());
}

TEST_CASE("messages that end too early are no rows") {
  nlmsghdr header{};
  header.nlmsg_len = sizeof header;
  header.nlmsg_type = RTM_NEWLINK;
  CHECK_FALSE(decode_link(&header).has_value());
  header.nlmsg_type = RTM_NEWROUTE;
  CHECK(decode_routes(&header, {}).empty());
  CHECK_FALSE(decode_socket(&header).has_value());
}
