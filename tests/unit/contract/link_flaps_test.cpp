#include <distdoctor/link_flaps.h>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

TEST_CASE("lines of network drivers: up, down, or something else") {
  using enum LinkEvent;
  struct Row {
    std::string_view text;
    LinkEvent event;
  };
  for (const Row& row : std::vector<Row>{
           {"mlx5_core 0000:18:00.0 eth2: Link down", down},
           {"mlx5_core 0000:18:00.0 eth2: Link up", up},
           {"mlx5_core 0000:18:00.0: Port module event: module 0, Cable unplugged", down},
           {"mlx5_core 0000:18:00.0: Port module event: module 0, Cable plugged", none},
           {"igb 0000:01:00.0 eno1: igb: eno1 NIC Link is Down", down},
           {"ixgbe 0000:03:00.0 eth1: NIC Link is Up 10 Gbps, Flow Control: RX/TX", up},
           {"bnxt_en 0000:41:00.0 ens1f0np0: NIC Link is Up, 25000 Mbps (NRZ) full duplex", up},
           {"tg3 0000:02:00.0 eth0: Link is down", down},
           {"r8169 0000:04:00.0 enp4s0: Link is Up - 1Gbps/Full - flow control off", up},
           {"NVRM: Xid (PCI:0000:1b:00): 79", none},
           {"", none}}) {
    CAPTURE(row.text);
    CHECK(link_event(row.text) == row.event);
  }
}

TEST_CASE("an interface is named by a word of its own") {
  CHECK(names_word("igb 0000:01:00.0 eth1: NIC Link is Down", "eth1"));
  CHECK(names_word("eth1", "eth1"));
  CHECK(names_word("eth10: eth1", "eth1"));
  CHECK_FALSE(names_word("igb 0000:01:00.0 eth10: NIC Link is Down", "eth1"));
  CHECK_FALSE(names_word("eth1.7: down", "eth1"));
  CHECK_FALSE(names_word("veth1: down", "eth1"));
  CHECK_FALSE(names_word("anything", ""));
}

TEST_CASE("what the log has of a link: losses that end a time of being up") {
  const KernelLog log{.lines = {{10, "a: Link up"},
                                {12, "a: Link down"},
                                {14, "a: Link up"},
                                {400, "a: Link down"},
                                {401, "a: Link up"},
                                {402, "a: Link down"},
                                {403, "a: Link down"},
                                {404, "a: Link up"},
                                {500, "b: Link down"},
                                {9'999, "a: Link down"}},
                      .now_s = 1'000};
  const auto a = history_of(log, [](std::string_view text) { return names_word(text, "a"); });
  CHECK(a.told);
  CHECK(a.all.size() == 4);  // the last one lies in the future
  REQUIRE(a.lasting.size() == 1);
  CHECK(a.lasting[0].ago_s == 600);
  const auto c = history_of(log, [](std::string_view text) { return names_word(text, "c"); });
  CHECK_FALSE(c.told);
}

TEST_CASE("counters: what they gained, as far as both are known") {
  const std::map<std::string, std::int64_t> then = {{"mlx5_0/1", 3}};
  CHECK(gained(then, "mlx5_0/1", 5) == 2);
  CHECK(gained(then, "mlx5_0/1", 1) == 0);
  CHECK(gained(then, "mlx5_0/1", std::nullopt) == 0);
  CHECK(gained(then, "mlx5_1/1", 5) == 0);
}
