#include "collect/qos.h"

#include "capture/capture.h"
#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

using Number = std::optional<int>;

machine::CapturedMachine with_ecn(const std::string& tells, const std::string& slows) {
  machine::CapturedMachine captured;
  const std::string folder = "/sys/class/net/rdma0/ecn/";
  for (int i = 0; i < 8; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const auto name = "/enable/" + std::to_string(i);
    if (place < tells.size()) captured.files[folder + "roce_np" + name].text = {tells[place], '\n'};
    if (place < slows.size()) captured.files[folder + "roce_rp" + name].text = {slows[place], '\n'};
  }
  return captured;
}
const Observed<LinkQos> kUntold = Unknown{Why::unsupported, "the driver of rdma0 tells none"};

Observed<LinkQos> read(const machine::CapturedMachine& captured) {
  std::optional<Unknown> late;
  return read_qos(*machine::Machine::captured(captured), "rdma0", late);
}

// rdma0 of mlx5_0, as netlink, DCB and sysfs show it.
machine::CapturedMachine roce_machine() {
  auto captured = with_ecn("00010000", "00010001");
  captured.links = std::vector{
      Link{.name = "rdma0", .index = 3, .kind = LinkKind::ethernet, .mac = "02:00:00:00:00:02"},
      Link{.name = "eth0", .index = 2, .kind = LinkKind::ethernet}};
  captured.qos["rdma0"] = {.by_dscp = {{26, 3}}, .pause = 8};
  captured.qos["eth0"] = {.pause = 8};  // no RDMA device: of no interest
  auto& files = captured.files;
  files["/sys/class/net/rdma0/ifindex"].text = "3\n";
  files["/sys/class/net/rdma0/address"].text = "02:00:00:00:00:02\n";
  files["/sys/class/net/rdma0/qos/trust"].text = "dscp\n";
  files["/sys/class/infiniband/mlx5_0/ports/1/link_layer"].text = "Ethernet\n";
  files["/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0"].text = "rdma0\n";
  files["/sys/class/infiniband/mlx5_0/tc/1/traffic_class"].text = "Global tclass=106\n";
  return captured;
}

void look(machine::Machine& machine, NodeFacts& node) {
  collect_links(machine, {}, node);
  collect_rdma(machine, {}, node);
}

}  // namespace

TEST_CASE("the words of MLNX_OFED's files") {
  CHECK(parse_trust("dscp\n") == "dscp");
  CHECK(parse_trust("pcp") == "pcp");
  CHECK(parse_trust("both\n").empty());
  CHECK(parse_trust("pcp dscp").empty());
  CHECK(parse_trust("").empty());
  CHECK(parse_traffic_class("Global tclass=106\n") == Number(106));
  CHECK(parse_traffic_class("src ip 10.0.0.1, tclass=7\nGlobal tclass=0\n") == Number(0));
  CHECK(parse_traffic_class("Global tclass=256") == Number());
  CHECK(parse_traffic_class("Global tclass=-1") == Number());
  CHECK(parse_traffic_class("tclass=106") == Number());
  CHECK(parse_traffic_class("") == Number());
}

TEST_CASE("ECN of all priorities, or of none that is told") {
  CHECK(read(with_ecn("00010000", "10000001")) ==
        LinkQos{.ecn_tells = 1 << 3, .ecn_slows = 1 << 7 | 1});
  CHECK(read(with_ecn("0000000", "0000000x")) == kUntold);
  CHECK(read({}) == kUntold);
}

TEST_CASE("a card that was late once is not asked again, and what its files tell counts") {
  const Unknown was_late{Why::timed_out, "rdma1 was late"};
  const auto read_late = [&](machine::CapturedMachine captured) {
    std::optional<Unknown> late = was_late;
    captured.qos["rdma0"] = {.pause = 8};
    return read_qos(*machine::Machine::captured(captured), "rdma0", late);
  };
  CHECK(read_late({}) == was_late);
  CHECK(read_late(with_ecn("00010000", "10000001")) ==
        LinkQos{.ecn_tells = 1 << 3, .ecn_slows = 1 << 7 | 1});
}

TEST_CASE("a link with an RDMA device tells of its priorities, and no other") {
  const auto captured = roce_machine();
  const auto machine = machine::Machine::captured(captured);
  NodeFacts node;
  look(*machine, node);
  CHECK(node.links->at(0).qos ==
        LinkQos{
            .trust = "dscp", .by_dscp = {{26, 3}}, .pause = 8, .ecn_tells = 8, .ecn_slows = 0x88});
  CHECK(node.links->at(1).qos == Observed<LinkQos>());
  CHECK(node.rdma->devices.at(0).ports.at(0).traffic_class == Number(106));
}

TEST_CASE("a sysfs of another network namespace tells nothing of our link's priorities") {
  auto captured = roce_machine();
  captured.files["/sys/class/net/rdma0/ifindex"].text = "17\n";
  NodeFacts node;
  look(*machine::Machine::captured(captured), node);
  CHECK(node.links->at(0).qos == Observed<LinkQos>());
}

TEST_CASE("a machine that was written down tells the same") {
  const auto original = machine::Machine::captured(roce_machine());
  capture::Recorder recorder(*original);
  NodeFacts before;
  look(recorder.machine(), before);
  REQUIRE(before.links->at(0).qos.known());
  const auto again = capture::read(capture::write(recorder.notes()), "node.json");
  REQUIRE(again.has_value());
  CHECK(again->qos.size() == 1);
  NodeFacts after;
  look(*machine::Machine::captured(*again), after);
  CHECK(after.links == before.links);
  CHECK(after.rdma == before.rdma);
}
