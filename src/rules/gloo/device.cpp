#include "rules/gloo/device.h"

#include "base/text.h"
#include "rules/interface_addresses.h"
#include "rules/resolve.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace distdoctor::rules {

namespace {

// As std::getline cuts them: no element after a trailing comma, but empty ones elsewhere.
std::vector<std::string_view> names_in(std::string_view list) {
  if (list.ends_with(',')) list.remove_suffix(1);
  return split(list, ',');
}

GlooChoice by_names(const std::vector<Link>& links, std::string_view list) {
  const auto rows = interface_addresses(links);
  GlooChoice choice{.reason = GlooReason::variable};
  for (const std::string_view name : names_in(list)) {
    const auto row = std::ranges::find(rows, name, &InterfaceAddress::name);
    if (row == rows.end()) {
      return {.error = name.empty() ? "GlooDeviceFactory::makeTCPDevice(): interface or hostname "
                                      "can't be empty"
                                    : "Unable to find address for: " + std::string(name),
              .reason = GlooReason::variable};
    }
    choice.devices.push_back({.interface = row->name, .address = row->address});
  }
  return choice;
}

// bind(2) takes the addresses of all links, also of those that are down, and for IPv4 loopback the
// whole prefix of lo.
bool bindable(const Link& link, const LinkAddress& row, const Address& wanted) {
  if (row.tentative || row.dad_failed) return false;
  if (!wanted.v6 && wanted.loopback()) return row.address.shares_prefix(wanted, row.prefix);
  const bool zone_fits = !wanted.v6 || !wanted.link_local() || wanted.zone == link.name;
  return zone_fits && row.address.v6 == wanted.v6 && row.address.bytes == wanted.bytes;
}

const Link* link_to_bind(const std::vector<Link>& links, const Address& wanted) {
  for (const Link& link : links) {
    for (const LinkAddress& row : link.addresses) {
      if (bindable(link, row, wanted)) return &link;
    }
  }
  return nullptr;
}

GlooChoice by_hostname(const std::vector<Link>& links, const std::vector<Address>& resolved) {
  for (const Address& address : resolved) {
    if (const Link* link = link_to_bind(links, address)) {
      return {.devices = {{.interface = link->name, .address = address}},
              .reason = GlooReason::hostname};
    }
  }
  const Address loopback{.bytes = {127, 0, 0, 1}};
  const Link* lo = link_to_bind(links, loopback);
  if (lo == nullptr) {
    return {.error = "Unable to find address for: 127.0.0.1", .reason = GlooReason::fallback};
  }
  return {.devices = {{.interface = lo->name, .address = loopback}},
          .reason = GlooReason::fallback};
}

}  // namespace

Observed<GlooChoice> gloo_choice(const NodeFacts& node, const Settings& settings) {
  if (!node.links.known()) return node.links.why();
  const auto names = settings.find("GLOO_SOCKET_IFNAME");
  if (names != settings.end() && names->second.value.size() > 1) {
    return by_names(*node.links, names->second.value);
  }
  if (!node.identity.known()) return node.identity.why();
  const auto resolved = resolve(node.identity->hostname, node);
  if (!resolved.known()) return resolved.why();
  return by_hostname(*node.links, *resolved);
}

}  // namespace distdoctor::rules
