#include "rules/torch/variables.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;         // NOLINT(google-build-using-namespace)
using namespace distdoctor::rules;  // NOLINT(google-build-using-namespace)

TEST_CASE("a name of PyTorch's or Gloo's that was surely meant, and none of anybody else's") {
  struct Row {
    std::string_view name;
    std::string_view meant;  // empty: none
  };
  const std::vector<Row> rows = {
      {"GLOO_SOCKET_IFNAMES", "GLOO_SOCKET_IFNAME"},
      {"GLOO_SOCKET_IF_NAME", "GLOO_SOCKET_IFNAME"},
      {"GLOO_IFNAME_SOCKET", "GLOO_SOCKET_IFNAME"},
      {"MASTER_PROT", "MASTER_PORT"},
      {"MASTER_ADDRS", "MASTER_ADDR"},
      {"TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"},
      {"TORCH_DISTRIBUTED_DEBUGG", "TORCH_DISTRIBUTED_DEBUG"},
      {"GLOO_SOCKET_IFNAME", ""},
      {"GLOO_TIMEOUT", ""},
      {"MASTER_PORT2", ""},
      {"MASTER_IP", ""},
      {"MASTER_HOST", ""},
      {"MASTER_NAME", ""},
      {"MASTER_ADDRESS", ""},  // many a script's own, handed on to --master_addr
      {"TORCH_NCCL_ENABLE_DEBUG", ""},
      {"TORCH_HOME", ""},
      {"TORCH_LOGS", ""},
      {"TORCH_CUDA_ARCH_LIST", ""},
      {"HOROVOD_GLOO_IFACE", ""},
      {"NCCL_SOCKET_IFNAMES", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    CHECK(meant_by_torch(row.name).value_or("") == row.meant);
  }
}

TEST_CASE("one whose right name is there as well is somebody's own") {
  Settings settings = {{"MASTER_PROT", {"29500", {}}}, {"MASTER_ADDR", {"a", {}}}};
  const auto found = misspelt_for_torch(settings);
  REQUIRE(found.size() == 1);
  CHECK(found[0] == VariableReading{.name = "MASTER_PROT",
                                    .taken_as = "MASTER_PORT",
                                    .trap = VariableTrap::misspelt});
  settings["MASTER_PORT"] = {"29500", {}};
  CHECK(misspelt_for_torch(settings).empty());
}
