#include "rules/interface_addresses.h"

#include <utility>

namespace distdoctor::rules {

namespace {

void append_family(const std::vector<Link>& links, bool v6, std::vector<InterfaceAddress>& rows) {
  for (const Link& link : links) {
    for (const LinkAddress& row : link.addresses) {
      if (row.address.v6 != v6) continue;
      Address address = row.address;
      if (v6 && address.link_local()) address.zone = link.name;
      rows.push_back({.name = v6 || row.label.empty() ? link.name : row.label,
                      .address = std::move(address),
                      .prefix = row.prefix,
                      .link = &link});
    }
  }
}

}  // namespace

std::vector<InterfaceAddress> interface_addresses(const std::vector<Link>& links) {
  std::vector<InterfaceAddress> rows;
  append_family(links, false, rows);
  append_family(links, true, rows);
  return rows;
}

}  // namespace distdoctor::rules
