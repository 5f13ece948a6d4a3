#include "machine/link_rows.h"

#include "machine/netlink.h"

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace distdoctor::machine {
namespace {

struct KindRow {
  std::string_view name;
  LinkKind kind;
};
constexpr std::array<KindRow, 17> kKinds = {{{"bridge", LinkKind::bridge},
                                             {"veth", LinkKind::veth},
                                             {"netkit", LinkKind::veth},
                                             {"tun", LinkKind::tun},
                                             {"wireguard", LinkKind::wireguard},
                                             {"vlan", LinkKind::vlan},
                                             {"bond", LinkKind::bond},
                                             {"team", LinkKind::team},
                                             {"macvlan", LinkKind::macvlan},
                                             {"macvtap", LinkKind::macvlan},
                                             {"ipvlan", LinkKind::ipvlan},
                                             {"ipvtap", LinkKind::ipvlan},
                                             {"vxlan", LinkKind::vxlan},
                                             {"ipoib", LinkKind::infiniband},
                                             {"dummy", LinkKind::dummy},
                                             {"ethernet", LinkKind::ethernet},
                                             {"loopback", LinkKind::loopback}}};

// RFC 2863 states, as `ip link` and /sys/class/net/NAME/operstate write them (IF_OPER_*).
constexpr std::array<std::string_view, 7> kOperationalStates = {
    "unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"};

std::string operational_state(std::optional<std::uint32_t> state) {
  const auto index = static_cast<std::size_t>(state.value_or(0));
  return std::string(index < kOperationalStates.size() ? kOperationalStates.at(index) : "unknown");
}

std::string info_kind(nlattr* link_info) {
  std::array<nlattr*, IFLA_INFO_MAX + 1> info{};
  if (link_info == nullptr ||
      nla_parse_nested(info.data(), IFLA_INFO_MAX, link_info, nullptr) != 0) {
    return "";
  }
  return text_of(info.at(IFLA_INFO_KIND));
}

std::vector<std::string> alternative_names(nlattr* properties) {
  std::vector<std::string> names;
  if (properties == nullptr) return names;
  auto* property = static_cast<nlattr*>(nla_data(properties));
  int left = nla_len(properties);
  while (nla_ok(property, left) != 0) {
    if (nla_type(property) == IFLA_ALT_IFNAME) names.push_back(text_of(property));
    property = nla_next(property, &left);
  }
  return names;
}

NetlinkRequest all_links() {
  ifinfomsg header{};
  header.ifi_family = AF_UNSPEC;
  return {.protocol = NETLINK_ROUTE,
          .type = RTM_GETLINK,
          .what = "the links",
          .body = netlink_bytes(header)};
}

Result<std::vector<LinkRow>> ask_link_rows() {
  std::vector<LinkRow> rows;
  DD_TRY(netlink_ask(all_links(), [&rows](nlmsghdr* message) {
    if (auto row = decode_link(message)) rows.push_back(*std::move(row));
    return true;
  }));
  return rows;
}

void add_address(std::vector<LinkRow>& rows, nlmsghdr* message) {
  auto decoded = decode_address(message);
  if (!decoded) return;
  for (auto& [link, master] : rows) {
    if (link.index != decoded->first) continue;
    auto& address = decoded->second;
    if (address.label.empty()) address.label = link.name;
    if (address.address.link_local() && address.address.v6) address.address.zone = link.name;
    link.addresses.push_back(std::move(address));
    return;
  }
}

// AF_UNSPEC gives IPv4 of all links, then IPv6 of all links: getifaddrs(3) keeps this order.
Result<void> ask_addresses(std::vector<LinkRow>& rows) {
  ifaddrmsg header{};
  header.ifa_family = AF_UNSPEC;
  const NetlinkRequest request{.protocol = NETLINK_ROUTE,
                               .type = RTM_GETADDR,
                               .what = "the addresses",
                               .body = netlink_bytes(header)};
  return netlink_ask(request, [&rows](nlmsghdr* message) {
    add_address(rows, message);
    return true;
  });
}

void name_masters(std::vector<LinkRow>& rows) {
  for (auto& row : rows) {
    const auto master = std::ranges::find_if(
        rows, [&row](const LinkRow& other) { return other.link.index == row.master; });
    if (row.master != 0 && master != rows.end()) row.link.master = master->link.name;
  }
}

}  // namespace

LinkKind link_kind(std::string_view info_kind, unsigned hardware_type) {
  if (info_kind.empty()) {
    switch (hardware_type) {
      case ARPHRD_LOOPBACK:
        return LinkKind::loopback;
      case ARPHRD_ETHER:
        return LinkKind::ethernet;
      case ARPHRD_INFINIBAND:
        return LinkKind::infiniband;
      default:
        return LinkKind::other;
    }
  }
  const auto* const row = std::ranges::find(kKinds, info_kind, &KindRow::name);
  return row != kKinds.end() ? row->kind : LinkKind::other;
}

std::optional<LinkRow> decode_link(nlmsghdr* message) {
  const Attributes<ifinfomsg, IFLA_MAX> attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_NEWLINK) return std::nullopt;
  const unsigned flags = attributes->ifi_flags;
  LinkRow row;
  row.link.name = text_of(attributes.at(IFLA_IFNAME));
  row.link.index = attributes->ifi_index;
  row.link.kind = link_kind(info_kind(attributes.at(IFLA_LINKINFO)), attributes->ifi_type);
  row.link.mtu = static_cast<int>(number_of(attributes.at(IFLA_MTU)).value_or(0));
  row.link.up = (flags & IFF_UP) != 0;
  row.link.running = (flags & IFF_RUNNING) != 0;
  row.link.carrier = number_of(attributes.at(IFLA_CARRIER)).value_or(0) != 0;
  row.link.operstate = operational_state(number_of(attributes.at(IFLA_OPERSTATE)));
  row.link.mac = mac_of(attributes.at(IFLA_ADDRESS));
  row.link.altnames = alternative_names(attributes.at(IFLA_PROP_LIST));
  row.master = static_cast<int>(number_of(attributes.at(IFLA_MASTER)).value_or(0));
  return row;
}

std::optional<std::pair<int, LinkAddress>> decode_address(nlmsghdr* message) {
  const Attributes<ifaddrmsg, IFA_MAX> attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_NEWADDR) return std::nullopt;
  // On a point-to-point link IFA_ADDRESS is the other end, IFA_LOCAL ours.
  auto own = address_of(attributes.at(IFA_LOCAL));
  if (!own) own = address_of(attributes.at(IFA_ADDRESS));
  if (!own) return std::nullopt;
  const auto flags = number_of(attributes.at(IFA_FLAGS)).value_or(attributes->ifa_flags);
  return std::pair{static_cast<int>(attributes->ifa_index),
                   LinkAddress{.address = *own,
                               .prefix = attributes->ifa_prefixlen,
                               .label = text_of(attributes.at(IFA_LABEL)),
                               .secondary = (flags & IFA_F_SECONDARY) != 0 && !own->v6,
                               .tentative = (flags & IFA_F_TENTATIVE) != 0,
                               .dad_failed = (flags & IFA_F_DADFAILED) != 0}};
}

Result<std::vector<Link>> ask_links() {
  DD_TRY(auto rows, ask_link_rows());
  DD_TRY(ask_addresses(rows));
  name_masters(rows);
  std::vector<Link> links;
  for (auto& row : rows) links.push_back(std::move(row.link));
  return links;
}

Result<std::map<int, std::string>> ask_link_names() {
  DD_TRY(const auto rows, ask_link_rows());
  std::map<int, std::string> names;
  for (const auto& row : rows) names.emplace(row.link.index, row.link.name);
  return names;
}

}  // namespace distdoctor::machine
