#include "rules/nccl/interfaces.h"

#include "support/builders.h"
#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)
using rules::nccl_choice;

namespace {

// What NCCL 2.28.9 said in network namespaces with these links and variables. One word is both;
// else "bootstrap | NET/Socket list". Names stand for the first address of that name.
struct Row {
  std::string name;
  std::string links;
  std::vector<std::string> settings;
  std::string expected;
};

const std::string kNoInterface = "no socket interface found | no interface found";
const std::string kPlain =
    "lo=127.0.0.1/8,::1/128 eth1=10.0.1.1/24,fe80::1:1/64 eth10=10.0.10.1/24,fe80::10:1/64 "
    "eth0=10.0.0.1/24,fe80::1/64";
const std::string kLo = "lo=127.0.0.1/8,::1/128 ";
const std::string kBridges = kLo + "docker0=172.17.0.1/16 virbr0=192.168.122.1/24 ";

std::string many_links(int count) {
  std::string links = kLo;
  for (int i = 1; i <= count; ++i) {
    links += "eth" + std::to_string(i) + "=10.1." + std::to_string(i) + ".1/24 ";
  }
  return links;
}
std::string many_names(int count, const std::string& last) {
  std::string list;
  for (int i = 1; i <= count; ++i) list += "bogus" + std::to_string(i) + ",";
  return "NCCL_SOCKET_IFNAME=" + list + last;
}
std::string first_links(int count) {
  std::string list = "eth1 |";
  for (int i = 1; i <= count; ++i) list += " eth" + std::to_string(i);
  return list;
}
Row named(const std::string& name, const std::string& value, const std::string& expected) {
  return {name, kPlain, {"NCCL_SOCKET_IFNAME=" + value}, expected};
}

const std::vector<Row> kA = {
    {"A1 unset", kPlain, {}, "eth1 | eth1 eth10 eth0"},
    named("A2 a prefix", "eth1", "eth1 | eth1 eth10"),
    named("A3 exact", "=eth1", "eth1"),
    named("A4 excludes by prefix", "^eth1", "lo | lo eth0"),
    named("A5 excludes exactly", "^=eth1", "lo | lo eth10 eth0"),
    named("A6 the kernel's order", "eth0,eth1", "eth1 | eth1 eth10 eth0"),
    named("A7 the kernel's order, exact", "=eth0,eth10", "eth10 | eth10 eth0"),
    named("A8 trailing comma", "eth0,", "eth0"),
    named("A9 one character is unset", ",", "eth1 | eth1 eth10 eth0"),
    named("A10 an empty list takes all", ",,", "lo | lo eth1 eth10 eth0"),
    named("A11 blank after a comma", "eth9, eth0", kNoInterface),
    named("A11 blank in front", " eth0", kNoInterface),
    named("A11 blank behind", "eth0 ", kNoInterface),
    named("A12 capitals", "ETH0", kNoInterface),
    named("A12 quotes", "\"eth0\"", kNoInterface),
    named("A12 glob", "eth*", kNoInterface),
    named("A12 semicolon", "eth0;eth1", kNoInterface),
    named("A12 an address", "10.0.0.1", kNoInterface),
    named("A13 '=' before '^'", "=^eth1", kNoInterface),
    named("A13 excludes an empty list", "^=", kNoInterface),
    named("A13 excludes all", "^lo,eth,docker", kNoInterface),
    named("A14 a second '^' is text", "^eth1,^eth0", "lo | lo eth0"),
    named("A15 a second '=' is text", "eth0,=eth10", "eth0"),
    named("A16 port", "eth0:1", "eth0"),
    named("A16 port, exact", "=eth0:5", "eth0"),
    named("A17 excludes lo", "^lo", "eth1 | eth1 eth10 eth0"),
    named("A18 excludes lo and a prefix", "^lo,eth1", "eth0"),
    {"A19 IPv6",
     kPlain,
     {"NCCL_SOCKET_FAMILY=AF_INET6"},
     "eth1:fe80::1:1%eth1 | eth1:fe80::1:1%eth1 eth10:fe80::10:1%eth10 eth0:fe80::1%eth0"},
    {"A20 another word for the family",
     kPlain,
     {"NCCL_SOCKET_FAMILY=inet6"},
     "eth1 | eth1 eth10 eth0"},
    named("'^' alone is one character", "^", "eth1 | eth1 eth10 eth0"),
    named("'=' alone is one character", "=", "eth1 | eth1 eth10 eth0"),
    named("an empty exact list takes all", "=,", "lo | lo eth1 eth10 eth0"),
    named("a port without a name", ":5,eth0", "eth0"),
    named("only a port", ":5", "lo | lo eth1 eth10 eth0"),
    named("a second port is no element", "eth0:1:2,lo", "lo | lo eth0"),
};

const std::vector<Row> kB = {
    {"B1 a bridge of a docker network", kBridges + "br-f00ba4=172.18.0.1/16", {}, "br-f00ba4"},
    {"B2 ^docker0",
     kBridges + "br-f00ba4=172.18.0.1/16",
     {"NCCL_SOCKET_IFNAME=^docker0"},
     "lo | lo virbr0 br-f00ba4"},
    {"B3 ^docker0,lo",
     kBridges + "br-f00ba4=172.18.0.1/16",
     {"NCCL_SOCKET_IFNAME=^docker0,lo"},
     "virbr0 | virbr0 br-f00ba4"},
    {"B4 docker0 and virbr0", kBridges, {}, "docker0"},
    {"B5 virbr0 and lo", kLo + "virbr0=192.168.122.1/24", {}, "lo"},
    {"B6 virbr0 only", "lo~=127.0.0.1/8 virbr0=192.168.122.1/24", {}, "virbr0"},
    {"B7 virbr0 without carrier", "lo~=127.0.0.1/8 virbr0!=192.168.122.1/24", {}, kNoInterface},
    {"B8 a bridge member with only fe80",
     kLo + "docker0=172.17.0.1/16 veth1=fe80::1/64 veth2=fe80::2/64",
     {},
     "veth1:fe80::1%veth1 | veth1:fe80::1%veth1 veth2:fe80::2%veth2"},
};

const std::vector<Row> kC = {
    {"C1 both up", kLo + "ens5=10.5.0.1/24 enp1=10.6.0.1/24", {}, "ens5 | ens5 enp1"},
    {"C2 admin down", kLo + "ens5~=10.5.0.1/24 enp1=10.6.0.1/24", {}, "enp1"},
    {"C3 no carrier", kLo + "ens5!=10.5.0.1/24 enp1=10.6.0.1/24", {}, "enp1"},
    {"C4 no carrier, named",
     kLo + "ens5!=10.5.0.1/24 enp1=10.6.0.1/24",
     {"NCCL_SOCKET_IFNAME=ens5"},
     kNoInterface},
    {"C5 no carrier, one of two named",
     kLo + "ens5!=10.5.0.1/24 enp1=10.6.0.1/24",
     {"NCCL_SOCKET_IFNAME==ens5,enp1"},
     "enp1"},
};

const std::vector<Row> kD = {
    {"D1 a /32", kLo + "eth0=10.0.0.1/32", {}, "eth0"},
    {"D2 only fd00::", kLo + "eth0=fd00::1/64,fe80::1/64", {}, "eth0:fd00::1"},
    {"D2 only fd00::, IPv4 wanted",
     kLo + "eth0=fd00::1/64,fe80::1/64",
     {"NCCL_SOCKET_FAMILY=AF_INET"},
     "lo"},
    {"D3 only fe80::", kLo + "eth0=fe80::1/64", {}, "eth0:fe80::1%eth0"},
    {"D4 fe80 joins the data",
     kLo + "eth0=fe80::1/64 eth1=10.0.1.1/24",
     {},
     "eth1 | eth1 eth0:fe80::1%eth0"},
    {"D5 fe80 by name",
     kLo + "eth0=fe80::1/64 eth1=10.0.1.1/24",
     {"NCCL_SOCKET_IFNAME=eth0"},
     "eth0:fe80::1%eth0"},
    {"D6 two addresses", kLo + "eth0=10.0.0.1/24,10.0.0.2/24", {}, "eth0"},
    {"D7 a label is a device",
     kLo + "eth0=10.0.0.1/24,10.0.0.2/24@eth0:1",
     {},
     "eth0 | eth0 eth0:1:10.0.0.2"},
    {"D7 an alias cannot be named",
     kLo + "eth0=10.0.0.1/24,10.0.0.2/24@eth0:1",
     {"NCCL_SOCKET_IFNAME==eth0:1"},
     "eth0"},
    {"D8 169.254 by index", kLo + "eth0=169.254.7.1/16 eth1=10.0.1.1/24", {}, "eth0 | eth0 eth1"},
    {"D9 no address", kLo + "eth0", {}, "lo"},
    {"D10 lo alone", kLo, {}, "lo"},
    {"D10 lo down", "lo~=127.0.0.1/8", {}, kNoInterface},
    {"D11 dual stack", kLo + "eth0=10.0.0.1/24,fd00::1/64,fe80::1/64", {}, "eth0"},
    {"D11 dual stack, IPv6 wanted",
     kLo + "eth0=10.0.0.1/24,fd00::1/64,fe80::1/64",
     {"NCCL_SOCKET_FAMILY=AF_INET6"},
     "eth0:fd00::1"},
    {"::1 is never taken",
     kLo,
     {"NCCL_SOCKET_FAMILY=AF_INET6", "NCCL_SOCKET_IFNAME=lo"},
     kNoInterface},
};

const std::vector<Row> kE = {
    {"E1 ib first", kLo + "eth0=10.0.0.1/24 ib0=10.9.0.1/24", {}, "ib0"},
    {"E2 ib with only fe80", kLo + "eth0=10.0.0.1/24 ib0=fe80::9/64", {}, "ib0:fe80::9%ib0"},
    {"E3 ^ib",
     kLo + "eth0=10.0.0.1/24 ib0=10.9.0.1/24",
     {"NCCL_SOCKET_IFNAME=^ib"},
     "lo | lo eth0"},
    {"E4 ib down", kLo + "eth0=10.0.0.1/24 ib0~=10.9.0.1/24", {}, "eth0"},
    {"E5 ibft0 counts as ib", kLo + "eth0=10.0.0.1/24 ibft0=10.9.0.1/24", {}, "ibft0"},
    {"E6 lowlat0 counts as lo", kLo + "lowlat0=10.0.0.1/24", {}, "lo | lo lowlat0"},
    {"E7 docker_gwbridge counts as docker",
     kLo + "docker_gwbridge=172.18.0.1/16 eth0=10.0.0.1/24",
     {},
     "eth0"},
    {"E8 veth", kLo + "veth1234=10.7.0.1/24 eth0=10.0.0.1/24", {}, "veth1234 | veth1234 eth0"},
    {"E8 VPN",
     kLo + "tailscale0=100.64.0.1/32 eth0=10.0.0.1/24",
     {},
     "tailscale0 | tailscale0 eth0"},
    {"E9 tun without reader", kLo + "tun0!=10.8.0.1/24 eth0=10.0.0.1/24", {}, "eth0"},
    {"E10 vxlan and macvlan",
     kLo + "eth0=10.0.0.1/24 vxlan7=10.7.0.1/24 mac0=10.6.0.1/24",
     {},
     "eth0 | eth0 vxlan7 mac0"},
    {"E11 sixteen at most", many_links(20), {}, first_links(16)},
    {"E12 order of the list",
     many_links(20),
     {"NCCL_SOCKET_IFNAME=eth20,eth19"},
     "eth19 | eth19 eth20"},
    {"E13 a seventeenth name", many_links(20), {many_names(16, "eth3")}, kNoInterface},
    {"E13 a sixteenth name", many_links(20), {many_names(15, "eth3")}, "eth3"},
    {"E14 altname", kLo + "eth0=10.0.0.1/24", {"NCCL_SOCKET_IFNAME=enp1s0"}, kNoInterface},
};

const std::string kTwo = kLo + "eth0=10.0.0.1/24,fd00::1/64 eth1=10.1.0.1/24,fe80::1/64";
const std::string kInvalid =
    "Invalid NCCL_COMM_ID, please use format: <ipv4>:<port> or [<ipv6>]:<port> or "
    "<hostname>:<port> | ";
const std::vector<Row> kF = {
    {"F the subnet of the id", kTwo, {"NCCL_COMM_ID=10.1.0.99:1"}, "eth1"},
    {"F a port is not needed", kTwo, {"NCCL_COMM_ID=10.1.0.99"}, "eth1"},
    {"F loopback", kTwo, {"NCCL_COMM_ID=127.0.0.1:1"}, "lo"},
    {"F the id beats the names, not for the data",
     kTwo,
     {"NCCL_COMM_ID=10.1.0.99:1", "NCCL_SOCKET_IFNAME=eth0"},
     "eth1 | eth0"},
    {"F no such subnet",
     kTwo,
     {"NCCL_COMM_ID=10.77.0.1:1"},
     "No usable listening interface found | eth0 eth1"},
    {"F no such subnet, with names",
     kTwo,
     {"NCCL_COMM_ID=10.77.0.1:1", "NCCL_SOCKET_IFNAME=eth0"},
     "No usable listening interface found | eth0"},
    {"F empty", kTwo, {"NCCL_COMM_ID="}, kInvalid + "eth0 eth1"},
    {"F one character", kTwo, {"NCCL_COMM_ID=x"}, kInvalid + "eth0 eth1"},
    {"F no host",
     kTwo,
     {"NCCL_COMM_ID=:1"},
     kInvalid + "No valid <IPv4_or_hostname>:<port> pair found"},
    {"F no host, but names",
     kTwo,
     {"NCCL_COMM_ID=:1", "NCCL_SOCKET_IFNAME=eth0"},
     kInvalid + "eth0"},
    {"F bracket not closed",
     kTwo,
     {"NCCL_COMM_ID=[fd00::2:1"},
     kInvalid + "No valid [IPv6]:port pair found"},
    {"F IPv6", kTwo, {"NCCL_COMM_ID=[fd00::2]:1"}, "eth0:fd00::1"},
    {"F IPv6 loopback", kTwo, {"NCCL_COMM_ID=[::1]:1"}, "lo:::1"},
    {"F nonsense in brackets",
     kTwo,
     {"NCCL_COMM_ID=[zz]:1"},
     "No usable listening interface found | eth0 eth1"},
    {"F link-local with its link", kTwo, {"NCCL_COMM_ID=[fe80::9%eth1]:1"}, "eth1:fe80::1%eth1"},
    {"F link-local without",
     kTwo,
     {"NCCL_COMM_ID=[fe80::9]:1"},
     "No usable listening interface found | eth0 eth1"},
    {"F a link where none belongs",
     kTwo,
     {"NCCL_COMM_ID=[fd00::2%eth0]:1"},
     "No usable listening interface found | eth0 eth1"},
    {"F the family does not matter",
     kTwo,
     {"NCCL_COMM_ID=10.1.0.99:1", "NCCL_SOCKET_FAMILY=AF_INET6"},
     "eth1"},
    {"F ib goes first for the data",
     kTwo + " ib0=10.9.0.1/24",
     {"NCCL_COMM_ID=10.1.0.99:1"},
     "eth1 | ib0"},
    {"F a name", kTwo, {"NCCL_COMM_ID=master:1"}, "eth1"},
    {"F no name at all",
     kTwo,
     {"NCCL_COMM_ID=\"[zz]:1"},
     kInvalid + "error encountered when getting address info : Name or service not known"},
    {"F an unknown name",
     kTwo,
     {"NCCL_COMM_ID=nobody:1"},
     kInvalid + "error encountered when getting address info : Name or service not known"},
};

// The choice in the words of the rows.
std::string word(const std::vector<Link>& links, const Choice& choice) {
  const auto* link = find_link(links, choice.interface);
  const bool first = link != nullptr && link->name == choice.interface && !choice.address.v6 &&
                     link->addresses.front().address == choice.address;
  return first ? choice.interface : choice.interface + ":" + choice.address.text();
}

std::string words(const std::vector<Link>& links, const NcclChoice& choice) {
  const std::string bootstrap =
      choice.bootstrap ? word(links, *choice.bootstrap) : choice.bootstrap_error;
  std::string data = choice.net_socket_error;
  for (const Choice& device : choice.net_socket) {
    data += (data.empty() ? "" : " ") + word(links, device);
  }
  return bootstrap == data ? bootstrap : bootstrap + " | " + data;
}

NodeFacts node_of(const std::string& links) {
  NodeFacts node;
  node.links = links_from(links);
  node.names = std::vector<Resolution>{
      {.name = "master", .all = std::vector<Address>{addr("10.1.0.99")}},
      {.name = "nobody", .all = std::vector<Address>{}},
      {.name = "slow", .all = Unknown{.kind = Why::timed_out, .text = "getent: timed out"}}};
  return node;
}

std::string choose(const Row& row, NcclRules rules) {
  const NodeFacts node = node_of(row.links);
  return words(*node.links, *nccl_choice(node, settings_from(row.settings), rules));
}

void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(choose(row, NcclRules::from_2_28_3) == row.expected);
  }
}

// What rules without IFF_RUNNING and virbr make of it.
const std::vector<Row> kOld = {
    {"virbr0 is like any other", kBridges, {}, "virbr0"},
    {"virbr0 before a later NIC", kBridges + "eth0=10.0.0.1/24", {}, "virbr0 | virbr0 eth0"},
    {"down, but with an address",
     kLo + "ens5~=10.5.0.1/24 enp1=10.6.0.1/24",
     {},
     "ens5 | ens5 enp1"},
    {"no carrier", kLo + "ens5!=10.5.0.1/24", {"NCCL_SOCKET_IFNAME=ens5"}, "ens5"},
    {"tun without reader", kLo + "tun0!=10.8.0.1/24 eth0=10.0.0.1/24", {}, "tun0 | tun0 eth0"},
    {"lo down", "lo~=127.0.0.1/8", {}, "lo"},
};

}  // namespace

TEST_CASE("nccl_choice: table A, names") {
  check_rows(kA);
}
TEST_CASE("nccl_choice: table B, containers") {
  check_rows(kB);
}
TEST_CASE("nccl_choice: table C, state of links") {
  check_rows(kC);
}
TEST_CASE("nccl_choice: table D, addresses") {
  check_rows(kD);
}
TEST_CASE("nccl_choice: table E, names that mean something") {
  check_rows(kE);
}
TEST_CASE("nccl_choice: table F, NCCL_COMM_ID") {
  check_rows(kF);
}

TEST_CASE("nccl_choice: both older sets of rules") {
  for (const NcclRules rules : {NcclRules::to_2_22, NcclRules::to_2_27}) {
    for (const Row& row : kOld) {
      CAPTURE(row.name);
      CHECK(choose(row, rules) == row.expected);
    }
    for (const Row& row : kA) {
      CAPTURE(row.name);
      CHECK(choose(row, rules) == row.expected);
    }
  }
}

TEST_CASE("nccl_choice: what was not seen makes no choice") {
  NodeFacts node = node_of(kTwo);
  const auto slow = nccl_choice(node, settings_from({"NCCL_COMM_ID=slow:1"}), {});
  CHECK(slow.why().kind == Why::timed_out);
  const auto unasked = nccl_choice(node, settings_from({"NCCL_COMM_ID=other:1"}), {});
  CHECK(unasked.why().kind == Why::not_collected);
  node.names = Unknown{};
  CHECK_FALSE(nccl_choice(node, settings_from({"NCCL_COMM_ID=master:1"}), {}).known());
  CHECK(nccl_choice(node, settings_from({"NCCL_COMM_ID=10.1.0.99:1"}), {}).known());
  node.links = Unknown{.kind = Why::denied, .text = "netlink"};
  CHECK(nccl_choice(node, {}, {}).why().kind == Why::denied);
}

TEST_CASE("nccl_rules_of") {
  struct Version {
    std::string_view text;
    NcclRules rules;
  };
  for (const Version& row : std::vector<Version>{{"2.8.4", NcclRules::to_2_22},
                                                 {"2.22.3", NcclRules::to_2_22},
                                                 {"2.23.4", NcclRules::to_2_27},
                                                 {"2.27.7+cuda12.4", NcclRules::to_2_27},
                                                 {"2.28.3", NcclRules::from_2_28_3},
                                                 {"2.28.9", NcclRules::from_2_28_3},
                                                 {"2.30.7", NcclRules::from_2_28_3},
                                                 {"3.0.0", NcclRules::from_2_28_3},
                                                 {"1.3.5", NcclRules::to_2_22},
                                                 {"", NcclRules::from_2_28_3},
                                                 {"unknown", NcclRules::from_2_28_3}}) {
    CAPTURE(row.text);
    CHECK(rules::nccl_rules_of(row.text) == row.rules);
  }
}
