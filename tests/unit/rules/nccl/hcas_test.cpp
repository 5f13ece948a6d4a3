#include "rules/nccl/hcas.h"

#include "collect/collectors.h"
#include "machine/machine.h"
#include "support/links.h"
#include "support/rdma_machines.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

constexpr const char* kToday = "2.28.9";

NodeFacts node_of(const machine::CapturedMachine& captured) {
  NodeFacts node{.host = "there", .reached = true};
  collect::collect_rdma(*machine::Machine::captured(captured), {}, node);
  return node;
}

NcclHcas chosen(const machine::CapturedMachine& captured,
                const std::vector<std::string>& settings,
                const char* version = kToday) {
  const auto hcas = rules::nccl_hcas(node_of(captured), settings_from(settings), version);
  REQUIRE(hcas.known());
  return *hcas;
}

// "mlx5_0:1 mlx5_1:1@3": of RoCE with the GID's index.
std::string words(const NcclHcas& hcas) {
  std::string text;
  for (const HcaChoice& hca : hcas.used) {
    if (!text.empty()) text += ' ';
    text += hca.device + ':' + std::to_string(hca.port);
    if (hca.gid_index) text += '@' + std::to_string(*hca.gid_index);
  }
  return text;
}

// Three InfiniBand devices whose names begin alike, registered in another order.
machine::CapturedMachine three() {
  machine::CapturedMachine machine;
  add_verbs(machine, {"mlx5"});
  add_hca(machine, {.name = "mlx5_1", .uverbs = 1});
  add_hca(machine, {.name = "mlx5_10", .uverbs = 10});
  add_hca(machine, {.name = "mlx5_2", .uverbs = 2});
  return machine;
}

struct Row {
  std::string value;
  std::string expected;
};

// What NCCL 2.28.9 said with a stand-in for libibverbs (tests/differential/nccl_hcas.py).
const std::vector<Row> kNames = {
    {"", "mlx5_1:1 mlx5_2:1 mlx5_10:1"},
    {",", "mlx5_1:1 mlx5_2:1 mlx5_10:1"},
    {"mlx5_1", "mlx5_1:1 mlx5_10:1"},
    {"=mlx5_1", "mlx5_1:1"},
    {"^mlx5_1", "mlx5_2:1"},
    {"^=mlx5_1", "mlx5_2:1 mlx5_10:1"},
    {"=mlx5_2:1,mlx5_10:2", "mlx5_2:1"},
    {"mlx5_1:", ""},
    {"mlx5_2, mlx5_1", "mlx5_2:1"},
    {"^", ""},
    {"MLX5_1", ""},
};

}  // namespace

TEST_CASE("nccl_hcas: names and ports") {
  for (const Row& row : kNames) {
    CAPTURE(row.value);
    CHECK(words(chosen(three(), {"NCCL_IB_HCA=" + row.value})) == row.expected);
  }
  CHECK(words(chosen(three(), {})) == "mlx5_1:1 mlx5_2:1 mlx5_10:1");
}

TEST_CASE("nccl_hcas: why a port is left out") {
  auto machine = three();
  add_hca(machine, {.name = "mlx5_3", .uverbs = 3, .state = "2: INIT"});
  add_hca(machine, {.name = "mlx5_4", .uverbs = 4, .layer = "Unspecified"});
  add_hca(machine, {.name = "mlx5_5", .uverbs = 5, .node = false});
  const NcclHcas hcas = chosen(machine, {"NCCL_IB_HCA=^mlx5_1"});
  CHECK(words(hcas) == "mlx5_2:1");
  CHECK(hcas.left_out == std::vector<HcaLeftOut>{{"mlx5_1", 1, HcaPassed::filtered},
                                                 {"mlx5_3", 1, HcaPassed::not_active},
                                                 {"mlx5_4", 1, HcaPassed::not_active},
                                                 {"mlx5_5", 1, HcaPassed::not_usable},
                                                 {"mlx5_10", 1, HcaPassed::filtered}});
}

TEST_CASE("nccl_hcas: without libibverbs or its provider no device is usable") {
  auto machine = three();
  std::erase_if(machine.files, [](const auto& file) {
    return file.first.starts_with("/usr/lib") || file.first.starts_with("/etc");
  });
  CHECK(words(chosen(machine, {})).empty());
  add_verbs(machine, {"rxe"});
  CHECK(words(chosen(machine, {})).empty());
  add_verbs(machine, {"mlx5"});
  CHECK(words(chosen(machine, {})) == "mlx5_1:1 mlx5_2:1 mlx5_10:1");
}

TEST_CASE("nccl_hcas: the table's length") {
  machine::CapturedMachine machine;
  add_verbs(machine, {"mlx5"});
  for (int i = 0; i < 40; ++i) {
    add_hca(machine, {.name = "mlx5_" + std::to_string(i), .uverbs = i});
  }
  const NcclHcas hcas = chosen(machine, {});
  CHECK(hcas.used.size() == 32);
  CHECK(hcas.used.back().device == "mlx5_31");
  CHECK(hcas.left_out.size() == 8);
  CHECK(hcas.left_out.front() == HcaLeftOut{"mlx5_32", 1, HcaPassed::too_many});
  CHECK(chosen(machine, {}, "2.14.3").used.size() == 16);
}

TEST_CASE("nccl_hcas: what switches NET/IB off") {
  CHECK(chosen(three(), {"NCCL_IB_DISABLE=1"}).disabled_by == "NCCL_IB_DISABLE");
  CHECK(chosen(three(), {"NCCL_IB_DISABLE=0x2"}).used.empty());
  CHECK(chosen(three(), {"NCCL_NET=socket"}).disabled_by == "NCCL_NET");
  for (const char* not_so : {"NCCL_IB_DISABLE=true", "NCCL_IB_DISABLE=", "NCCL_IB_DISABLE=0",
                             "NCCL_IB_DISABLE=99999999999999999999", "NCCL_NET=ib"}) {
    CAPTURE(not_so);
    CHECK(chosen(three(), {not_so}).used.size() == 3);
  }
}

TEST_CASE("nccl_hcas: unseen devices are unknown, unless nobody asks for them") {
  NodeFacts node{.host = "there"};
  node.rdma = Unknown{.kind = Why::denied, .text = "EACCES"};
  CHECK_FALSE(rules::nccl_hcas(node, {}, kToday).known());
  CHECK(rules::nccl_hcas(node, settings_from({"NCCL_IB_DISABLE=1"}), kToday).known());
}

TEST_CASE("nccl_hcas: the GID of a RoCE port") {
  machine::CapturedMachine machine;
  add_verbs(machine, {"mlx5"});
  auto gids = roce_gids("rdma0", "10.0.0.6", 6);
  gids.push_back({4, "fd00:0000:0000:0000:0000:0000:0000:0006", "IB/RoCE v1", "rdma0"});
  gids.push_back({5, "fd00:0000:0000:0000:0000:0000:0000:0006", "RoCE v2", "rdma0"});
  add_hca(machine, {.layer = "Ethernet", .gids = gids});
  const auto index = [&](const std::vector<std::string>& settings, const char* version = kToday) {
    return chosen(machine, settings, version).used.at(0).gid_index;
  };
  CHECK(index({}) == 3);
  CHECK(index({"NCCL_IB_ROCE_VERSION_NUM=1"}) == 2);
  CHECK(index({"NCCL_IB_ADDR_FAMILY=AF_INET6"}) == 5);
  CHECK(index({"NCCL_IB_ADDR_RANGE=10.0.0.0/8"}) == 3);
  CHECK(index({"NCCL_IB_ADDR_RANGE=10.1.0.0/16"}) == 0);  // nothing fits: the first remains
  CHECK(index({"NCCL_IB_ADDR_RANGE=10.1.0.0"}) == 3);     // no mask: no range
  CHECK(index({"NCCL_IB_ADDR_RANGE=fd00::/8"}) == 3);     // of the other family: no range
  CHECK(index({"NCCL_IB_GID_INDEX=1"}) == 1);
  CHECK(index({"NCCL_IB_GID_INDEX=-1"}) == 3);
  CHECK(index({}, "2.20.5") == 0);  // before 2.21 there was no search
}

TEST_CASE("nccl_hcas: a RoCE port without any GID") {
  machine::CapturedMachine machine;
  add_verbs(machine, {"mlx5"});
  add_hca(machine, {.layer = "Ethernet"});
  CHECK_FALSE(chosen(machine, {}).used.at(0).gid_index.has_value());
}

TEST_CASE("ports of one card are merged, in NCCL's order") {
  using Groups = std::vector<std::vector<std::string>>;
  CHECK(chosen(three(), {}).merged == Groups{{"mlx5_1:1", "mlx5_2:1", "mlx5_10:1"}});
  CHECK(chosen(three(), {"NCCL_IB_HCA=^mlx5_1"}).merged.empty());  // takes mlx5_10, too
  CHECK(chosen(three(), {}, "2.19.4").merged.empty());
}
