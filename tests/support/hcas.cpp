#include "support/hcas.h"

#include "collect/collectors.h"
#include "machine/machine.h"
#include "rules/nccl/hcas.h"
#include "support/rdma_machines.h"

#include <cstddef>
#include <string>

namespace distdoctor::testing {
namespace {

std::string card_address(int number) {  // each port is on a card of its own
  return "0000:1" + std::to_string(8 + number) + ":00.0";
}

template <class MakeHca>
void give(World& world, MakeHca make) {
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) {
    machine::CapturedMachine machine;
    add_verbs(machine, {"mlx5"});
    for (int number = 0; number < 2; ++number) add_hca(machine, make(static_cast<int>(i), number));
    collect::collect_rdma(*machine::Machine::captured(machine), {}, world.node(i));
  }
  predict_hcas(world);
}

}  // namespace

void give_infiniband(World& world) {
  give(world, [](int /*node*/, int number) {
    return FakeHca{
        .name = "mlx5_" + std::to_string(number), .uverbs = number, .pci = card_address(number)};
  });
}

void give_roce(World& world) {
  give(world, [](int node, int number) {
    const std::string digit = std::to_string(number);
    return FakeHca{.name = "mlx5_" + digit,
                   .uverbs = number,
                   .pci = card_address(number),
                   .layer = "Ethernet",
                   .rate = "100 Gb/sec (4X EDR)",
                   .lid = "0x0",
                   .sm_lid = "0x0",
                   .gids = roce_gids("rdma" + digit,
                                     "192.168." + digit + "." + std::to_string(10 + node), node)};
  });
}

void predict_hcas(World& world) {
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) {
    const NodeFacts& node = world.node(i);
    const std::string version = node.nccl_library.known() ? node.nccl_library->version : "";
    world.prediction(i).hcas = rules::nccl_hcas(node, world.prediction(i).settings, version);
  }
}

void set_and_predict(World& world, const std::string& name, const std::string& value) {
  world.set(name, value);
  predict_hcas(world);
}

}  // namespace distdoctor::testing
