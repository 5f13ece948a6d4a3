// What a condition of an nft rule may look at (man 8 nft, "Payload expressions", "Meta
// expressions").
#pragma once

#include <distdoctor/facts/firewall.h>
#include <distdoctor/filter_condition.h>

#include <array>
#include <string_view>

namespace distdoctor::collect {

struct NftKey {
  std::string_view text;  // blanks between its words
  FilterField field;
  std::string_view family = {};    // that it implies
  std::string_view protocol = {};  // likewise
  std::string_view named = {};     // of `other`: as filter_condition.h names it
};
inline constexpr std::array kNftKeys = {
    NftKey{"ip saddr", FilterField::source, "ip"},
    NftKey{"ip daddr", FilterField::destination, "ip"},
    NftKey{"ip protocol", FilterField::protocol, "ip"},
    NftKey{"ip6 saddr", FilterField::source, "ip6"},
    NftKey{"ip6 daddr", FilterField::destination, "ip6"},
    NftKey{"ip6 nexthdr", FilterField::protocol, "ip6"},
    NftKey{"tcp sport", FilterField::source_port, {}, "tcp"},
    NftKey{"tcp dport", FilterField::destination_port, {}, "tcp"},
    NftKey{"tcp flags", FilterField::other, {}, "tcp", kTcpFlags},
    NftKey{"udp sport", FilterField::source_port, {}, "udp"},
    NftKey{"udp dport", FilterField::destination_port, {}, "udp"},
    NftKey{"th sport", FilterField::source_port},
    NftKey{"th dport", FilterField::destination_port},
    NftKey{"meta l4proto", FilterField::protocol},
    NftKey{"meta nfproto", FilterField::family},
    NftKey{"meta protocol", FilterField::family},
    NftKey{"meta mark", FilterField::other, {}, {}, kMark},
    NftKey{"meta pkttype", FilterField::other, {}, {}, kPacketType},
    NftKey{"meta iifname", FilterField::in_interface},
    NftKey{"meta oifname", FilterField::out_interface},
    NftKey{"meta iif", FilterField::in_interface},
    NftKey{"meta oif", FilterField::out_interface},
    NftKey{"mark", FilterField::other, {}, {}, kMark},
    NftKey{"pkttype", FilterField::other, {}, {}, kPacketType},
    NftKey{"iifname", FilterField::in_interface},
    NftKey{"oifname", FilterField::out_interface},
    NftKey{"iif", FilterField::in_interface},
    NftKey{"oif", FilterField::out_interface},
    NftKey{"ct state", FilterField::state},
    NftKey{"ct status", FilterField::state},
    NftKey{"fib saddr type", FilterField::other, {}, {}, kSourceType},
    NftKey{"fib daddr type", FilterField::other, {}, {}, kDestinationType},
    NftKey{"icmp", FilterField::other, "ip", "icmp"},
    NftKey{"icmpv6", FilterField::other, "ip6", "ipv6-icmp"},
    NftKey{"sctp", FilterField::other, {}, "sctp"},
    NftKey{"dccp", FilterField::other, {}, "dccp"},
    NftKey{"udplite", FilterField::other, {}, "udplite"},
    NftKey{"udp", FilterField::other, {}, "udp"},
    NftKey{"tcp", FilterField::other, {}, "tcp"},
    NftKey{"ip6", FilterField::other, "ip6"},
    NftKey{"ip", FilterField::other, "ip"},
};

}  // namespace distdoctor::collect
