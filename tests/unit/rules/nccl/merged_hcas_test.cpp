#include "rules/nccl/merged_hcas.h"

#include "support/links.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

// "a=0000:18:00.0 b=0000:18:00.1,ib c=": devices by their PCI address, RoCE unless it is said.
std::string merged(const std::string& text,
                   const std::vector<std::string>& settings = {},
                   int minor = 28) {
  Rdma rdma;
  std::vector<HcaChoice> used;
  for (const std::string& word : cut(text, ' ')) {
    const auto equals = word.find('=');
    const auto comma = word.find(',');
    const std::string name = word.substr(0, equals);
    rdma.devices.push_back({.name = name, .pci = word.substr(equals + 1, comma - equals - 1)});
    used.push_back({.device = name, .roce = comma == std::string::npos});
  }
  std::string groups;
  for (const auto& ports : rules::merged_ports(used, rdma, settings_from(settings), minor)) {
    if (!groups.empty()) groups += ' ';
    for (std::size_t i = 0; i < ports.size(); ++i) groups += (i == 0 ? "" : "+") + ports[i];
  }
  return groups;
}

constexpr const char* kTwoPorts = "a=0000:18:00.0 b=0000:18:00.1 c=0000:19:00.0";

}  // namespace

// What NCCL 2.28.9 said with a stand-in for libibverbs (tests/differential/nccl_hcas.py).
TEST_CASE("ports of one card become one device") {
  struct Row {
    std::string_view name;
    std::string devices;
    std::string expected;
  };
  for (const Row& row : std::vector<Row>{
           {"two ports of a card", kTwoPorts, "a:1+b:1"},
           {"cards of their own", "a=0000:18:00.0 b=0000:19:00.0", ""},
           {"another domain", "a=0000:18:00.0 b=0001:18:00.1", ""},
           {"virtual functions", "a=0000:18:00.0 b=0000:18:02.5 c=0000:18:03.1", "a:1+b:1+c:1"},
           {"four at most",
            "a=0000:18:00.0 b=0000:18:00.1 c=0000:18:00.2 d=0000:18:00.3 e=0000:18:00.4",
            "a:1+b:1+c:1+d:1"},
           {"without a PCI address", "a= b= c=0000:18:00.0", "a:1+b:1"},
           {"InfiniBand and RoCE", "a=0000:18:00.0 b=0000:18:00.1,ib c=0000:18:00.2", ""},
           {"InfiniBand first, then two of RoCE", "a=0000:18:00.0,ib b=0000:18:00.1 c=0000:18:00.2",
            "b:1+c:1"},
           {"interleaved cards", "a=0000:18:00.0 b=0000:19:00.0 c=0000:18:00.1 d=0000:19:00.1",
            "a:1+c:1 b:1+d:1"}}) {
    CAPTURE(row.name);
    CHECK(merged(row.devices) == row.expected);
  }
}

TEST_CASE("what switches that off, or asks for more") {
  CHECK(merged(kTwoPorts, {"NCCL_IB_MERGE_NICS=0"}).empty());
  CHECK(merged(kTwoPorts, {"NCCL_IB_MERGE_NICS=x"}).empty());
  CHECK(merged(kTwoPorts, {"NCCL_IB_MERGE_NICS="}) == "a:1+b:1");
  CHECK(merged(kTwoPorts, {"NCCL_NET_MERGE_LEVEL=LOC"}).empty());
  CHECK(merged(kTwoPorts, {"NCCL_NET_MERGE_LEVEL=port"}).empty());
  CHECK(merged(kTwoPorts, {"NCCL_NET_MERGE_LEVEL=PORT"}) == "a:1+b:1");
  const std::string functions = "a=0000:18:00.0 b=0000:18:02.5 c=0000:18:02.1";
  CHECK(merged(functions, {"NCCL_IB_MERGE_VFS=0"}) == "b:1+c:1");
  CHECK(merged(kTwoPorts, {"NCCL_NET_FORCE_MERGE=a,c"}).empty());  // not predicted
}

TEST_CASE("older versions") {
  CHECK(merged(kTwoPorts, {}, 19).empty());
  CHECK(merged(kTwoPorts, {}, 20) == "a:1+b:1");
  CHECK(merged("a=0000:18:00.0 b=0000:18:00.1 c=0000:18:00.2", {}, 23) == "a:1+b:1");
  CHECK(merged(kTwoPorts, {"NCCL_NET_MERGE_LEVEL=LOC"}, 23) == "a:1+b:1");
}
