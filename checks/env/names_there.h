// Whether a line that NCCL ignores today would do harm if it were mended: what it names may not be
// there. Look-ups that the checks of this folder share; no judgement.
#pragma once

#include "config_lines.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::checks::env {

// NCCL's lists of names (misc/utils.cc parseStringList, matchIfList): [^][=]name[:port],...; the
// ports of HCAs are left out of account.
inline bool takes_any(std::string_view list, const std::vector<std::string>& names) {
  const bool exclude = list.starts_with('^');
  if (exclude) list.remove_prefix(1);
  const bool exact = list.starts_with('=');
  if (exact) list.remove_prefix(1);
  std::vector<std::string_view> wanted;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const auto element = list.substr(begin, end - begin);
    if (const auto name = element.substr(0, element.find(':')); !name.empty()) {
      wanted.push_back(name);
    }
    begin = end + 1;
  }
  return std::ranges::any_of(names, [&](const std::string& name) {
    const bool listed = wanted.empty() || std::ranges::any_of(wanted, [&](std::string_view one) {
                          return exact ? name == one : name.starts_with(one);
                        });
    return listed != exclude;
  });
}

// What a list could name on a node: interfaces that carry addresses, or RDMA devices. Empty: there
// are none, or nobody knows.
inline std::vector<std::string> names_on(const NodeFacts& node, std::string_view variable) {
  std::vector<std::string> names;
  if (variable == "NCCL_SOCKET_IFNAME" && node.links.known()) {
    for (const Link& link : *node.links) {
      const bool loopback = std::ranges::all_of(
          link.addresses, [](const LinkAddress& row) { return row.address.loopback(); });
      if (link.running && !loopback) names.push_back(link.name);
    }
  }
  if (variable == "NCCL_IB_HCA" && node.rdma.known()) {
    for (const RdmaDevice& device : node.rdma->devices) names.push_back(device.name);
  }
  return names;
}

// Nothing on the node has such a name, as far as was seen. Up to one character is unset to NCCL.
inline bool names_nothing(const NodeFacts& node,
                          std::string_view variable,
                          std::string_view value) {
  const auto names = names_on(node, variable);
  return value.size() > 1 && !names.empty() && !takes_any(value, names);
}

// Out with a line that does nothing today, and would break the job if it did.
inline Fix delete_line(const NodeFacts& node, const FileLine& at, std::string_view meant) {
  Fix fix = edit_line(node, at, "d");
  fix.text = fmt::format(
      "{} would name nothing that is there: without the line NCCL chooses by "
      "itself",
      meant);
  return fix;
}

// The line as it was meant, or out with it.
inline Fix mend_line(const NodeFacts& node,
                     const FileLine& at,
                     std::string_view variable,
                     std::string_view written) {
  const std::string value = meant_value(written);
  const std::string line = std::string(variable) + "=" + value;
  if (names_nothing(node, variable, value)) return delete_line(node, at, line);
  if (const auto script = replacing(line)) return edit_line(node, at, *script);
  return {.node = node.host,
          .kind = Fix::Kind::manual,
          .text = fmt::format("make line {} of {}: {}", at.line, at.path, line)};
}

}  // namespace distdoctor::checks::env
