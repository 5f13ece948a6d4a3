// Answers of data centre bridging, built here byte by byte as net/dcb/dcbnl.c of Linux 6.6 does:
// no card with DCB is here, so that no kernel gives one.
#include "machine/qos_rows.h"

#include "machine/machine.h"
#include "support/netlink_message.h"
#include "support/netns.h"

#include <doctest/doctest.h>

#include <linux/dcbnl.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using distdoctor::testing::attribute;
using distdoctor::testing::Message;

namespace {

constexpr int kTrustTable = 11;   // DCB_ATTR_DCB_APP_TRUST_TABLE
constexpr int kOtherApp = 2;      // DCB_ATTR_DCB_APP
constexpr int kNested = 1 << 15;  // NLA_F_NESTED

std::string app(unsigned selector, unsigned priority, unsigned protocol) {
  const dcb_app row{.selector = static_cast<std::uint8_t>(selector),
                    .priority = static_cast<std::uint8_t>(priority),
                    .protocol = static_cast<std::uint16_t>(protocol)};
  return attribute(DCB_ATTR_IEEE_APP,
                   std::string_view(reinterpret_cast<const char*>(&row), sizeof row));
}
std::string pause(unsigned bits) {
  ieee_pfc pfc{};
  pfc.pfc_cap = 8;
  pfc.pfc_en = static_cast<std::uint8_t>(bits);
  return attribute(DCB_ATTR_IEEE_PFC,
                   std::string_view(reinterpret_cast<const char*>(&pfc), sizeof pfc));
}
std::string trust(std::initializer_list<char> selectors) {
  std::string rows;
  for (const char selector : selectors) {
    rows += attribute(selector == '\xff' ? kOtherApp : DCB_ATTR_IEEE_APP,
                      std::string_view(&selector, 1));
  }
  return attribute(kTrustTable | kNested, rows);
}
Message answer(const std::string& ieee, int type = RTM_GETDCB) {
  dcbmsg header{};
  header.cmd = DCB_CMD_IEEE_GET;
  Message message(type, header);
  message.add(DCB_ATTR_IFNAME, std::string_view("rdma0\0", 6)).add(DCB_ATTR_IEEE, ieee);
  message.add(DCB_ATTR_DCBX, std::string_view("\x08", 1));
  return message;
}
LinkQos decoded(const std::string& ieee) {
  return decode_qos(answer(ieee).get()).value_or(LinkQos{.trust = "none"});
}

}  // namespace

TEST_CASE("priorities of a link: flow control, the table by code point, trust") {
  const std::string table = attribute(
      DCB_ATTR_IEEE_APP_TABLE, app(5, 4, 46) + app(1, 3, 0x8915) + app(5, 3, 26) + app(5, 3, 24));
  CHECK(decoded(attribute(DCB_ATTR_IEEE_ETS, std::string(58, '\0')) + pause(0x08) + table +
                trust({5, '\xff'})) ==
        LinkQos{.trust = "dscp", .by_dscp = {{24, 3}, {26, 3}, {46, 4}}, .pause = 8});
  CHECK(decoded(pause(0)) == LinkQos{.pause = 0});
}

TEST_CASE("trust is told where one thing decides on RoCE's packets") {
  CHECK(decoded(pause(0) + trust({5})).trust == "dscp");
  CHECK(decoded(pause(0) + trust({'\xff'})).trust == "pcp");
  CHECK(decoded(pause(0) + trust({'\xff', 5})).trust.empty());
  CHECK(decoded(pause(0) + trust({})).trust.empty());
}

TEST_CASE("what is no such answer, or holds nothing, tells nothing") {
  CHECK_FALSE(decode_qos(answer(pause(8), RTM_NEWLINK).get()).has_value());
  CHECK_FALSE(decode_qos(answer("").get()).has_value());
  CHECK_FALSE(decode_qos(answer(attribute(DCB_ATTR_IEEE_PFC, "x")).get()).has_value());
  CHECK_FALSE(
      decode_qos(answer(attribute(DCB_ATTR_IEEE_APP_TABLE, app(5, 8, 1) + app(5, 1, 64))).get())
          .has_value());
  auto cut = answer(pause(8));
  nlmsghdr* const message = cut.get();
  for (unsigned length = message->nlmsg_len; length > 0; --length) {
    message->nlmsg_len = length;
    static_cast<void>(decode_qos(message));
  }
  CHECK_FALSE(decode_qos(message).has_value());
}

TEST_CASE("a kernel is asked for a link without DCB, and for one that is not there") {
  if (const auto why = testing::why_no_namespaces(); !why.empty()) {
    MESSAGE("skipped: ", why);
    return;
  }
  const testing::Namespace host("ddqos-" + std::to_string(::getpid()));
  host.sh("ip link add eth0 type veth peer name far");
  const auto errors = host.in([] {
    const auto machine = Machine::live().value();
    return std::vector{machine->qos("eth0").error().errno_value,
                       machine->qos("none").error().errno_value,
                       machine->qos("a-name-longer-than-any-link-has").error().errno_value};
  });
  CHECK(errors[0] == EOPNOTSUPP);
  CHECK((errors[1] == ENODEV || errors[1] == EOPNOTSUPP));  // a kernel without CONFIG_DCB
  CHECK(errors[2] != 0);
}
