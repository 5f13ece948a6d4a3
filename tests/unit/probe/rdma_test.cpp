#include <distdoctor/untested.h>

#include "probe/assemble.h"
#include "probe/plan.h"
#include "support/builders.h"
#include "support/hcas.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

using namespace probe;
using Lines = std::vector<std::string>;
using Answers = std::vector<Observed<Answer>>;

World roce_world(std::size_t size) {
  World world;
  world.cluster = healthy_cluster(size);
  give_roce(world);
  return world;
}

Lines lines(const ProbePlan& plan) {
  Lines all;
  for (const PlannedRdma& row : plan.rdma) all.push_back(row.sender.id);
  return all;
}
Lines reasons(const std::vector<Untried>& rows) {
  Lines all;
  for (const Untried& row : rows) {
    if (row.what == kRdmaTraffic) all.push_back(row.node + " " + row.what + ": " + row.why.text);
  }
  return all;
}

struct PlanRow {
  std::string name;
  std::size_t size;
  void (*change)(World&);
  Lines planned = {};
  Lines left_out = {};
};
const Lines kBothRails = {"node0/mlx5_0:1 -> node1/mlx5_0:1", "node0/mlx5_1:1 -> node1/mlx5_1:1"};
const std::vector<PlanRow> kPlans = {
    {"two nodes: each rail once", 2, [](World&) {}, kBothRails},
    {"one node", 1, [](World&) {}},
    {"a job without NCCL", 2, [](World& w) { w.cluster.job.nccl = Use::no; }},
    {"RDMA is switched off", 2, [](World& w) { set_and_predict(w, "NCCL_IB_DISABLE", "1"); }},
    {"one rail is left out",
     2,
     [](World& w) { set_and_predict(w, "NCCL_IB_HCA", "mlx5_1"); },
     {kBothRails[1]}},
    {"a partition of its own",
     2,
     [](World& w) { w.set("NCCL_IB_PKEY", "1"); },
     {},
     {"node0 RDMA messages: NCCL_IB_PKEY chooses a partition",
      "node1 RDMA messages: NCCL_IB_PKEY chooses a partition"}},
    {"a port down on one node: the rest by name, since rails need not meet",
     2,
     [](World& w) {
       change_hca(w, 1, "mlx5_0", [](RdmaDevice&, RdmaPort& port) { port.state = "DOWN"; });
     },
     {kBothRails[1]}},
    {"one machine under two names", 3, [](World& w) { w.node(2).same_as = "node0"; }, kBothRails},
    {"InfiniBand and RoCE do not meet", 2,
     [](World& w) {
       World::change(w.prediction(1).hcas, [](NcclHcas& hcas) {
         for (HcaChoice& hca : hcas.used) hca.roce = false;
       });
     }},
    {"four nodes: neighbours over both rails, then those across",
     4,
     [](World&) {},
     {"node0/mlx5_0:1 -> node1/mlx5_0:1", "node1/mlx5_0:1 -> node2/mlx5_0:1",
      "node2/mlx5_0:1 -> node3/mlx5_0:1", "node3/mlx5_0:1 -> node0/mlx5_0:1",
      "node0/mlx5_1:1 -> node1/mlx5_1:1", "node1/mlx5_1:1 -> node2/mlx5_1:1",
      "node2/mlx5_1:1 -> node3/mlx5_1:1", "node3/mlx5_1:1 -> node0/mlx5_1:1",
      "node0/mlx5_0:1 -> node2/mlx5_0:1", "node1/mlx5_0:1 -> node3/mlx5_0:1",
      "node0/mlx5_1:1 -> node2/mlx5_1:1", "node1/mlx5_1:1 -> node3/mlx5_1:1"}},
};

TEST_CASE("which RDMA ports are tried with which") {
  for (const PlanRow& row : kPlans) {
    CAPTURE(row.name);
    World world = roce_world(row.size);
    row.change(world);
    const ProbePlan plan = make_plan(world.cluster, {}, 1);
    CHECK(lines(plan) == row.planned);
    CHECK(reasons(plan.left_out) == row.left_out);
  }
}

TEST_CASE("an RDMA plan names both ends with their GIDs; one sends") {
  const ProbePlan plan = make_plan(roce_world(2).cluster, {.rdma_timeout_ms = 77}, 1);
  REQUIRE(plan.rdma.size() == 2);
  CHECK(plan.rdma[0].sender == RdmaRequest{.id = kBothRails[0],
                                           .device = "mlx5_0",
                                           .gid_index = 3,
                                           .sends = true,
                                           .sizes = {64, 1 << 20},
                                           .timeout_ms = 77});
  CHECK_FALSE(plan.rdma[0].receiver.sends);
  CHECK(plan.rdma[0].roce);
}

TEST_CASE("no node has more RDMA ends than it may have, and each rail of each node has one") {
  const ProbePlan plan = make_plan(roce_world(40).cluster, {.rdma_ends_per_node = 6}, 1);
  std::map<std::string, int> ends;
  std::map<std::string, int> rails;
  for (const PlannedRdma& row : plan.rdma) {
    ++ends[row.from];
    ++ends[row.to];
    ++rails[row.from + row.sender.device];
  }
  CHECK(ends.size() == 40);
  CHECK(rails.size() == 80);
  for (const auto& [node, count] : ends) CHECK(count <= 6);
  REQUIRE_FALSE(plan.left_out.empty());
  CHECK(plan.left_out.back().what == kRdmaTraffic);
}

// --- the answers ---

struct Played {
  ProbePlan plan = make_plan(roce_world(2).cluster, {}, 1);
  Answers opened;
  Answers sent;
  std::vector<Untried> untried = {};

  Played() {
    for (int i = 0; i < 4; ++i) {
      const std::string gid = "gid" + std::to_string(i);
      opened.emplace_back(RdmaAnswer{.end = {.queue_pair = 17, .gid = gid}});
      sent.emplace_back(RdmaAnswer{.messages = {{.bytes = 64, .arrived = true}}});
    }
  }
  std::vector<RdmaPath> paths() { return assemble_rdma(plan, opened, sent, untried); }
};

TEST_CASE("each end gets the other's name") {
  Played played;
  const auto requests = rdma_send_requests(played.plan, played.opened);
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].host == "node0");
  const auto& sender = std::get<RdmaRequest>(requests[0].request);
  REQUIRE(sender.other.has_value());
  CHECK(sender.other->gid == "gid1");
  CHECK(std::get<RdmaRequest>(requests[1].request).other->gid == "gid0");
}

TEST_CASE("a good RDMA path") {
  Played played;
  const auto paths = played.paths();
  REQUIRE(paths.size() == 2);
  CHECK(paths[0] == RdmaPath{.from = "node0",
                             .to = "node1",
                             .from_device = "mlx5_0",
                             .to_device = "mlx5_0",
                             .roce = true,
                             .from_gid_index = 3,
                             .to_gid_index = 3,
                             .from_gid = "gid0",
                             .to_gid = "gid1",
                             .messages = {{.bytes = 64, .arrived = true}}});
  CHECK(played.untried.empty());
}

TEST_CASE("an RDMA end that failed is named; the answers of the others stay theirs") {
  Played played;
  played.opened[1] = RdmaAnswer{.error = "ibv_open_device: EACCES", .error_code = EACCES};
  played.sent = {RdmaAnswer{.messages = {{.bytes = 64, .arrived = true, .ms = 7}}},
                 RdmaAnswer{.messages = {{.bytes = 64, .arrived = true}}}};
  const auto paths = played.paths();
  REQUIRE(paths.size() == 2);
  CHECK(paths[0].failed_at == "node1");
  CHECK(paths[0].error_code == EACCES);
  CHECK(paths[0].messages.empty());
  CHECK(paths[1].error.empty());
  REQUIRE(paths[1].messages.size() == 1);
  CHECK(paths[1].messages[0].ms == 7);
}

TEST_CASE("what broke between two ports is tried once more, and nothing else") {
  Played played;
  CHECK(rdma_again(played.plan, played.paths()).rdma.empty());
  Played lost;
  lost.sent[2] = RdmaAnswer{.messages = {{.bytes = 64, .status = "retry", .status_code = 12}}};
  CHECK(lines(rdma_again(lost.plan, lost.paths())) == Lines{kBothRails[1]});
  Played refused;
  refused.sent[1] = RdmaAnswer{.error = "ibv_modify_qp to RTR: EINVAL", .error_code = EINVAL};
  CHECK(lines(rdma_again(refused.plan, refused.paths())) == Lines{kBothRails[0]});
  Played closed;
  closed.opened[1] = RdmaAnswer{.error = "ibv_open_device: EACCES", .error_code = EACCES};
  closed.sent.resize(2);
  CHECK(rdma_again(closed.plan, closed.paths()).rdma.empty());
}

TEST_CASE("the sender's status stands beside what came to the receiver") {
  Played played;
  played.sent[0] = RdmaAnswer{.messages = {{.bytes = 64, .status = "retry", .status_code = 12}}};
  CHECK(played.paths()[0].messages ==
        std::vector<RdmaMessage>{
            {.bytes = 64, .arrived = true, .status = "retry", .status_code = 12}});
  played.sent[1] = RdmaAnswer{.error = "ibv_modify_qp to RTR: EINVAL", .error_code = EINVAL};
  CHECK(played.paths()[0].failed_at == "node1");
}

TEST_CASE("an RDMA end that nobody heard of is no path but a reason, told once") {
  Played played;
  played.opened[0] = played.opened[2] = Unknown{Why::failed, "run vendor rdma: not there"};
  CHECK(played.paths().empty());
  CHECK(reasons(played.untried) == Lines{"node0 RDMA messages: node0: run vendor rdma: not there"});
  Played silent;
  silent.sent.clear();
  CHECK(silent.paths().empty());
  CHECK(reasons(silent.untried) == Lines{"node0 RDMA messages: node0 was not asked",
                                         "node1 RDMA messages: node1 was not asked"});
}

}  // namespace
}  // namespace distdoctor::testing
