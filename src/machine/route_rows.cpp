#include "machine/route_rows.h"

#include "machine/link_rows.h"
#include "machine/netlink.h"

#include <linux/fib_rules.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace distdoctor::machine {
namespace {

std::string name_of(const LinkNames& names, std::optional<std::uint32_t> index) {
  const auto found = names.find(static_cast<int>(index.value_or(0)));
  return found != names.end() ? found->second : "";
}

RouteKind route_kind(unsigned type) {
  switch (type) {
    case RTN_UNICAST:
      return RouteKind::unicast;
    case RTN_LOCAL:
      return RouteKind::local;
    case RTN_BROADCAST:
    case RTN_ANYCAST:
      return RouteKind::broadcast;
    case RTN_MULTICAST:
      return RouteKind::multicast;
    case RTN_UNREACHABLE:
      return RouteKind::unreachable;
    case RTN_BLACKHOLE:
      return RouteKind::blackhole;
    case RTN_PROHIBIT:
      return RouteKind::prohibit;
    default:
      return RouteKind::other;
  }
}

// RTA_VIA: a gateway of the other family, behind its family (struct rtvia).
std::optional<Address> via_of(nlattr* attribute) {
  if (attribute == nullptr || nla_len(attribute) < 2) return std::nullopt;
  std::uint16_t family = 0;
  std::memcpy(&family, nla_data(attribute), sizeof family);
  const std::size_t length = family == AF_INET6 ? 16 : 4;
  if (static_cast<std::size_t>(nla_len(attribute)) < sizeof family + length) return std::nullopt;
  Address address{.v6 = family == AF_INET6};
  std::memcpy(address.bytes.data(), static_cast<char*>(nla_data(attribute)) + sizeof family,
              length);
  return address;
}

std::optional<Address> gateway_of(nlattr* gateway, nlattr* via) {
  const auto address = address_of(gateway);
  return address ? address : via_of(via);
}

std::optional<int> mtu_of(nlattr* metrics) {
  std::array<nlattr*, RTAX_MAX + 1> values{};
  if (metrics == nullptr || nla_parse_nested(values.data(), RTAX_MAX, metrics, nullptr) != 0) {
    return std::nullopt;
  }
  const auto mtu = number_of(values.at(RTAX_MTU));
  return mtu && *mtu > 0 ? std::optional(static_cast<int>(*mtu)) : std::nullopt;
}

// The next hops of RTA_MULTIPATH: struct rtnexthop, each with attributes of its own.
std::vector<Route> each_hop(const Route& route, nlattr* multipath, const LinkNames& names) {
  std::vector<Route> routes;
  auto* bytes = static_cast<char*>(nla_data(multipath));
  auto left = static_cast<std::size_t>(nla_len(multipath));
  while (left >= sizeof(rtnexthop)) {
    rtnexthop hop{};
    std::memcpy(&hop, bytes, sizeof hop);
    if (hop.rtnh_len < sizeof hop || hop.rtnh_len > left) break;
    std::array<nlattr*, RTA_MAX + 1> attributes{};
    nla_parse(attributes.data(), RTA_MAX, reinterpret_cast<nlattr*>(bytes + sizeof hop),
              static_cast<int>(hop.rtnh_len - sizeof hop), nullptr);
    auto& added = routes.emplace_back(route);
    added.interface = name_of(names, static_cast<std::uint32_t>(hop.rtnh_ifindex));
    added.gateway = gateway_of(attributes.at(RTA_GATEWAY), attributes.at(RTA_VIA));
    const auto step = std::min<std::size_t>(left, NLMSG_ALIGN(hop.rtnh_len));
    bytes += step;
    left -= step;
  }
  return routes;
}

RuleAction rule_action(unsigned action) {
  switch (action) {
    case FR_ACT_TO_TBL:
      return RuleAction::lookup;
    case FR_ACT_UNREACHABLE:
      return RuleAction::unreachable;
    case FR_ACT_BLACKHOLE:
      return RuleAction::blackhole;
    case FR_ACT_PROHIBIT:
      return RuleAction::prohibit;
    default:
      return RuleAction::other;
  }
}

using RuleAttributes = Attributes<fib_rule_hdr, FRA_MAX>;

// -1 is "suppress nothing", which the kernel may spell out.
bool suppresses(nlattr* attribute) {
  const auto value = number_of(attribute);
  return value && *value != 0xffff'ffffU;
}

bool has_more_selectors(const RuleAttributes& rule) {
  constexpr std::array kSelectors = {FRA_UID_RANGE, FRA_IP_PROTO, FRA_SPORT_RANGE, FRA_DPORT_RANGE,
                                     FRA_TUN_ID};
  return (rule->flags & FIB_RULE_INVERT) != 0 || rule->tos != 0 ||
         std::ranges::any_of(kSelectors, [&](int type) { return rule.at(type) != nullptr; }) ||
         number_of(rule.at(FRA_L3MDEV)).value_or(0) != 0 ||
         suppresses(rule.at(FRA_SUPPRESS_PREFIXLEN)) || suppresses(rule.at(FRA_SUPPRESS_IFGROUP));
}

std::string neighbour_state(unsigned state) {
  constexpr std::array<std::string_view, 8> kStates = {
      "incomplete", "reachable", "stale", "delay", "probe", "failed", "noarp", "permanent"};
  for (std::size_t bit = 0; bit < kStates.size(); ++bit) {
    if ((state & (1U << bit)) != 0) return std::string(kStates.at(bit));
  }
  return "none";
}

// Both families, one after the other; an absent IPv6 is no error.
template <class Header>
Result<void> ask_both(NetlinkRequest request,
                      unsigned char Header::* family,
                      const TakeMessage& take) {
  for (const auto value : {AF_INET, AF_INET6}) {
    Header header{};
    header.*family = static_cast<unsigned char>(value);
    request.body = netlink_bytes(header);
    const auto asked = netlink_ask(request, take);
    const bool absent = !asked && (asked.error().errno_value == EAFNOSUPPORT ||
                                   asked.error().errno_value == EOPNOTSUPP);
    if (!asked && !(absent && value == AF_INET6)) return std::unexpected(asked.error());
  }
  return {};
}

void append_address(std::string& body, int type, const Address& address) {
  netlink_append(body, type, std::span(address.bytes).first(address.v6 ? 16 : 4));
}

NetlinkRequest route_question(const Address& destination, const std::optional<Address>& source) {
  rtmsg header{};
  header.rtm_family = destination.v6 ? AF_INET6 : AF_INET;
  header.rtm_dst_len = static_cast<unsigned char>(destination.bits());
  header.rtm_src_len = source ? header.rtm_dst_len : static_cast<unsigned char>(0);
  NetlinkRequest request{.protocol = NETLINK_ROUTE,
                         .type = RTM_GETROUTE,
                         .dump = false,
                         .what = "a route",
                         .body = netlink_bytes(header)};
  append_address(request.body, RTA_DST, destination);
  if (source) append_address(request.body, RTA_SRC, *source);
  if (!destination.zone.empty()) {
    const std::uint32_t index = ::if_nametoindex(destination.zone.c_str());
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &index, sizeof index);
    netlink_append(request.body, RTA_OIF, bytes);
  }
  return request;
}

// IPv6 reports a route into nowhere as an answer of its own kind.
RouteAnswer answer_of(const Route& route) {
  switch (route.kind) {
    case RouteKind::unreachable:
      return {.error = ::strerrordesc_np(ENETUNREACH)};
    case RouteKind::blackhole:
      return {.error = ::strerrordesc_np(EINVAL)};
    case RouteKind::prohibit:
      return {.error = ::strerrordesc_np(EACCES)};
    default:
      return {.interface = route.interface,
              .gateway = route.gateway,
              .source = route.source,
              .mtu = route.mtu};
  }
}

}  // namespace

std::vector<Route> decode_routes(nlmsghdr* message, const LinkNames& names) {
  const Attributes<rtmsg, RTA_MAX> attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_NEWROUTE) return {};
  Route route;
  const auto destination = address_of(attributes.at(RTA_DST));
  route.destination = destination.value_or(Address{.v6 = attributes->rtm_family == AF_INET6});
  route.prefix = attributes->rtm_dst_len;
  route.kind = route_kind(attributes->rtm_type);
  route.interface = name_of(names, number_of(attributes.at(RTA_OIF)));
  route.gateway = gateway_of(attributes.at(RTA_GATEWAY), attributes.at(RTA_VIA));
  route.source = address_of(attributes.at(RTA_PREFSRC));
  const auto table = number_of(attributes.at(RTA_TABLE)).value_or(attributes->rtm_table);
  route.table = static_cast<int>(table);
  route.metric = static_cast<int>(number_of(attributes.at(RTA_PRIORITY)).value_or(0));
  route.mtu = mtu_of(attributes.at(RTA_METRICS));
  auto* const multipath = attributes.at(RTA_MULTIPATH);
  if (multipath == nullptr) return {route};
  return each_hop(route, multipath, names);
}

std::optional<PolicyRule> decode_rule(nlmsghdr* message) {
  const RuleAttributes attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_NEWRULE) return std::nullopt;
  PolicyRule rule;
  rule.priority = static_cast<int>(number_of(attributes.at(FRA_PRIORITY)).value_or(0));
  rule.action =
      has_more_selectors(attributes) ? RuleAction::other : rule_action(attributes->action);
  rule.v6 = attributes->family == AF_INET6;
  rule.table = static_cast<int>(number_of(attributes.at(FRA_TABLE)).value_or(attributes->table));
  rule.from = address_of(attributes.at(FRA_SRC));
  rule.from_prefix = attributes->src_len;
  rule.to = address_of(attributes.at(FRA_DST));
  rule.to_prefix = attributes->dst_len;
  rule.in_interface = text_of(attributes.at(FRA_IIFNAME));
  rule.out_interface = text_of(attributes.at(FRA_OIFNAME));
  rule.mark = number_of(attributes.at(FRA_FWMARK));
  return rule;
}

std::optional<Neighbour> decode_neighbour(nlmsghdr* message, const LinkNames& names) {
  const Attributes<ndmsg, NDA_MAX> attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_NEWNEIGH) return std::nullopt;
  auto address = address_of(attributes.at(NDA_DST));
  if (!address || (attributes->ndm_state & NUD_NOARP) != 0) return std::nullopt;
  const auto name = name_of(names, static_cast<std::uint32_t>(attributes->ndm_ifindex));
  if (address->v6 && address->link_local()) address->zone = name;
  return Neighbour{.address = *address,
                   .interface = name,
                   .mac = mac_of(attributes.at(NDA_LLADDR)),
                   .state = neighbour_state(attributes->ndm_state)};
}

Result<std::vector<Route>> ask_routes(std::size_t most) {
  DD_TRY(const auto names, ask_link_names());
  std::vector<Route> routes;
  const NetlinkRequest request{
      .protocol = NETLINK_ROUTE, .type = RTM_GETROUTE, .what = "the routes"};
  DD_TRY(ask_both(request, &rtmsg::rtm_family, [&](nlmsghdr* message) {
    const auto* const header = static_cast<const rtmsg*>(nlmsg_data(message));
    const bool copy =
        nlmsg_valid_hdr(message, sizeof *header) != 0 && (header->rtm_flags & RTM_F_CLONED) != 0;
    if (copy) return true;
    for (auto& route : decode_routes(message, names)) routes.push_back(std::move(route));
    return routes.size() <= most;
  }));
  if (routes.size() > most) {
    return failure("read the routes", "more than " + std::to_string(most));
  }
  return routes;
}

Result<std::vector<PolicyRule>> ask_rules() {
  std::vector<PolicyRule> rules;
  const NetlinkRequest request{.protocol = NETLINK_ROUTE, .type = RTM_GETRULE, .what = "the rules"};
  DD_TRY(ask_both(request, &fib_rule_hdr::family, [&](nlmsghdr* message) {
    if (auto rule = decode_rule(message)) rules.push_back(*std::move(rule));
    return true;
  }));
  return rules;
}

Result<std::vector<Neighbour>> ask_neighbours(std::size_t most) {
  DD_TRY(const auto names, ask_link_names());
  std::vector<Neighbour> neighbours;
  const NetlinkRequest request{
      .protocol = NETLINK_ROUTE, .type = RTM_GETNEIGH, .what = "the neighbours"};
  DD_TRY(ask_both(request, &ndmsg::ndm_family, [&](nlmsghdr* message) {
    if (auto row = decode_neighbour(message, names)) neighbours.push_back(*std::move(row));
    return neighbours.size() < most;
  }));
  return neighbours;
}

Result<RouteAnswer> ask_route_to(const Address& destination, const std::optional<Address>& source) {
  DD_TRY(const auto names, ask_link_names());
  RouteAnswer answer;
  const auto asked = netlink_ask(route_question(destination, source), [&](nlmsghdr* message) {
    const auto routes = decode_routes(message, names);
    if (!routes.empty()) answer = answer_of(routes.front());
    return routes.empty();
  });
  if (asked) return answer;
  const int error = asked.error().errno_value;
  if (error == ETIMEDOUT || error == EPROTONOSUPPORT) return std::unexpected(asked.error());
  return RouteAnswer{.error = ::strerrordesc_np(error)};
}

}  // namespace distdoctor::machine
