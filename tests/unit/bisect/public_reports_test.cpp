// What people reported: what went wrong, and which switch helped. Given runs that go as theirs did,
// the planner has to come to the cause that they found. Runs that a report does not tell go as the
// cause says that they must.
#include "bisect/bisect.h"
#include "support/simulated_cluster.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace distdoctor::testing {
namespace {

constexpr SimulatedShape kTwoGpus{.nodes = 1, .gpus = 2};
constexpr SimulatedShape kFourGpus{.nodes = 1, .gpus = 4};
constexpr SimulatedShape kEightGpus{.nodes = 1, .gpus = 8};
constexpr SimulatedShape kSwitched{.nodes = 1, .gpus = 8, .nvswitch = true};
constexpr SimulatedShape kRdma{.nodes = 2, .gpus = 4, .hcas = 1};
constexpr SimulatedShape kTcp{.nodes = 2, .gpus = 4};

struct Report {
  std::string_view where;
  SimulatedShape shape;
  SimulatedFault what;
  std::string_view helped;  // "NAME=VALUE", "NAME" unset
  Layer layer;
  std::string_view own = {};  // what they had set
};

const std::vector<Report> reports = {
    {"NVIDIA/nccl#257: hangs, IOMMU on; P2P off helps",
     kFourGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#606: hangs; P2P off helps",
     kEightGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#631: hangs; P2P off helps",
     kTwoGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#667: hangs; P2P off helps",
     kFourGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#1817: hangs; P2P off helps",
     kTwoGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#2079: ACS on the bridges; P2P off helps",
     kTwoGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl-tests#117: RTX 4090; P2P off helps",
     kEightGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"ROCm/vllm#390: no iommu=pt; P2P off helps",
     kEightGpus,
     {.layer = Layer::p2p},
     "NCCL_P2P_DISABLE=1",
     Layer::p2p},
    {"NVIDIA/nccl#976: NVLS init fails; NVLS off helps",
     kSwitched,
     {.layer = Layer::nvls, .ailment = Ailment::fails},
     "NCCL_NVLS_ENABLE=0",
     Layer::nvls},
    {"NVIDIA/nccl#660: IB status 4 in a guest; GDR off helps",
     kRdma,
     {.layer = Layer::gdr, .ailment = Ailment::fails},
     "NCCL_NET_GDR_LEVEL=LOC",
     Layer::gdr},
    {"NVIDIA/nccl#317: NCCL_ALGO=Tree has no broadcast; unset helps",
     kRdma,
     {.layer = Layer::settings, .ailment = Ailment::fails, .names = {"NCCL_ALGO"}},
     "NCCL_ALGO",
     Layer::settings,
     "NCCL_ALGO=Tree"},
    {"ROCm/rccl#1026: NCCL_P2P_LEVEL; unset helps",
     kFourGpus,
     {.layer = Layer::settings, .ailment = Ailment::fails, .names = {"NCCL_P2P_LEVEL"}},
     "NCCL_P2P_LEVEL",
     Layer::settings,
     "NCCL_P2P_LEVEL=SYS"},
    {"NVIDIA/nccl#398: TCP by one stream; more of them help",
     kTcp,
     {.layer = Layer::streams, .ailment = Ailment::slow},
     "NCCL_NSOCKS_PERTHREAD=4",
     Layer::streams},
    {"NVIDIA/nccl#290: Docker's /dev/shm; no switch helps, fewer ranks do",
     kRdma,
     {.layer = Layer::shm, .ailment = Ailment::fails, .pools_that_fit = 1},
     "",
     Layer::shm},
    {"pytorch/pytorch#113128: a GPU with ECC errors; no switch helps",
     kRdma,
     {.layer = Layer::gpu, .ailment = Ailment::fails, .places = {{"node1", 2}}},
     "",
     Layer::gpu},
};

void set(SimulatedCluster& cluster, std::string_view own) {
  const auto equals = own.find('=');
  if (equals == std::string_view::npos) return;
  for (Prediction& node : cluster.facts.predicted.nodes) {
    node.settings[std::string(own.substr(0, equals))] = {.value =
                                                             std::string(own.substr(equals + 1))};
  }
}

std::string workaround_text(const Isolation& found, std::string_view helped) {
  for (const auto& [name, value] : found.workaround) {
    const std::string text = value.empty() ? name : name + "=" + value;
    if (text == helped) return text;
  }
  return found.workaround.empty() ? "" : found.workaround.begin()->first;
}

TEST_CASE("bisect comes to what public reports found") {
  for (const Report& report : reports) {
    const std::string where(report.where);
    CAPTURE(where);
    SimulatedCluster cluster(report.shape, report.what);
    set(cluster, report.own);
    const auto step = cluster.bisected();
    const auto* found = std::get_if<Isolation>(&step);
    REQUIRE(found != nullptr);
    CHECK(found->layer == report.layer);
    CHECK(found->ailment == report.what.ailment);
    CHECK(workaround_text(*found, report.helped) == report.helped);
  }
}

}  // namespace
}  // namespace distdoctor::testing
