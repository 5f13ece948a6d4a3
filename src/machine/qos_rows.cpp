#include "machine/qos_rows.h"

#include "machine/netlink.h"

#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace distdoctor::machine {
namespace {

// Of Linux 6.3 and later; the headers of Debian 12 are older.
constexpr int kTrustTable = 11;         // DCB_ATTR_DCB_APP_TRUST_TABLE
constexpr unsigned kPcp = 255;          // DCB_APP_SEL_PCP
constexpr std::size_t kMostRows = 512;  // each of 64 code points with each of 8 priorities

std::span<const std::uint8_t> bytes_of(nlattr* attribute) {
  if (attribute == nullptr) return {};
  return {static_cast<const std::uint8_t*>(nla_data(attribute)),
          static_cast<std::size_t>(nla_len(attribute))};
}

template <class Take>
void each_in(nlattr* nest, Take take) {
  if (nest == nullptr) return;
  auto* row = static_cast<nlattr*>(nla_data(nest));
  int left = nla_len(nest);
  while (nla_ok(row, left) != 0) {
    take(row);
    row = nla_next(row, &left);
  }
}

// struct ieee_pfc: its second byte is the bitmap.
std::optional<int> pause_of(nlattr* pfc) {
  const auto bytes = bytes_of(pfc);
  return bytes.size() < 2 ? std::nullopt : std::optional<int>(bytes[1]);
}

std::vector<DscpPriority> by_dscp(nlattr* table) {
  std::vector<DscpPriority> rows;
  each_in(table, [&rows](nlattr* row) {
    const auto bytes = bytes_of(row);
    dcb_app app{};
    if (nla_type(row) != DCB_ATTR_IEEE_APP || bytes.size() < sizeof app) return;
    std::memcpy(&app, bytes.data(), sizeof app);
    const bool dscp = app.selector == IEEE_8021QAZ_APP_SEL_DSCP && app.protocol < 64;
    if (!dscp || app.priority > 7 || rows.size() == kMostRows) return;
    rows.push_back({.dscp = app.protocol, .priority = app.priority});
  });
  std::ranges::sort(rows, {},
                    [](const DscpPriority& row) { return std::pair(row.dscp, row.priority); });
  return rows;
}

// Every RoCE v2 packet has a code point; only a tagged one has a priority of its own. So where PCP
// comes first and DSCP second, what decides depends on the packet, and is not told.
std::string trust_of(nlattr* table) {
  std::vector<unsigned> selectors;
  each_in(table, [&selectors](nlattr* row) {
    const auto bytes = bytes_of(row);
    if (!bytes.empty()) selectors.push_back(bytes[0]);
  });
  if (selectors.empty()) return "";
  if (selectors.front() == IEEE_8021QAZ_APP_SEL_DSCP) return "dscp";
  return selectors == std::vector{kPcp} ? "pcp" : "";
}

}  // namespace

std::optional<LinkQos> decode_qos(nlmsghdr* message) {
  const Attributes<dcbmsg, DCB_ATTR_MAX> attributes(message);
  if (!attributes.valid() || message->nlmsg_type != RTM_GETDCB) return std::nullopt;
  nlattr* const nest = attributes.at(DCB_ATTR_IEEE);
  std::array<nlattr*, kTrustTable + 1> ieee{};
  if (nest == nullptr || nla_parse_nested(ieee.data(), kTrustTable, nest, nullptr) != 0) {
    return std::nullopt;
  }
  LinkQos qos{.trust = trust_of(ieee.at(kTrustTable)),
              .by_dscp = by_dscp(ieee.at(DCB_ATTR_IEEE_APP_TABLE)),
              .pause = pause_of(ieee.at(DCB_ATTR_IEEE_PFC))};
  return qos == LinkQos{} ? std::nullopt : std::optional(std::move(qos));
}

Result<LinkQos> ask_qos(const std::string& interface) {
  dcbmsg header{};
  header.cmd = DCB_CMD_IEEE_GET;
  NetlinkRequest request{.protocol = NETLINK_ROUTE,
                         .type = RTM_GETDCB,
                         .dump = false,
                         .what = "the priorities of a link",
                         .body = netlink_bytes(header)};
  const auto* const name = reinterpret_cast<const std::uint8_t*>(interface.c_str());
  netlink_append(request.body, DCB_ATTR_IFNAME, {name, interface.size() + 1});
  std::optional<LinkQos> qos;
  DD_TRY(netlink_ask(request, [&qos](nlmsghdr* message) {
    qos = decode_qos(message);
    return false;
  }));
  if (qos) return *std::move(qos);
  return std::unexpected(errno_error("ask netlink for", request.what, EOPNOTSUPP));
}

}  // namespace distdoctor::machine
