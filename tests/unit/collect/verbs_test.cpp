#include "collect/verbs.h"

#include "machine/machine.h"
#include "support/rdma_machines.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>

namespace distdoctor::testing {
namespace {

Observed<Verbs> collect_from(machine::CapturedMachine captured) {
  const auto machine = machine::Machine::captured(std::move(captured));
  NodeFacts node;
  collect::collect_verbs(*machine, {}, node);
  return node.verbs;
}

machine::CapturedMachine with_hca() {
  machine::CapturedMachine captured;
  add_hca(captured, {});
  return captured;
}

TEST_CASE("verbs: what the helper says of a machine with RDMA devices") {
  auto captured = with_hca();
  captured.children["vendor verbs"] = {
      .out =
          R"({"library": "/usr/lib/libibverbs.so.1", "error": "", "devices": [{"name": "mlx5_0",)"
          R"( "error": "ibv_open_device: EACCES", "error_code": 13}], "warnings": ["a"]})"};
  const auto verbs = collect_from(captured);
  REQUIRE(verbs.known());
  CHECK(*verbs ==
        Verbs{.library = "/usr/lib/libibverbs.so.1",
              .devices = {{.name = "mlx5_0", .error = "ibv_open_device: EACCES", .error_code = 13}},
              .warnings = {"a"}});
}

TEST_CASE("verbs: nobody is asked where the kernel knows no device") {
  const auto verbs = collect_from({});
  REQUIRE_FALSE(verbs.known());
  CHECK(verbs.why() == Unknown{Why::not_collected, "the kernel knows no RDMA device"});
}

TEST_CASE("verbs: a helper that is missing, died or told no JSON is a gap") {
  CHECK(collect_from(with_hca()).why().kind == Why::failed);
  auto died = with_hca();
  died.children["vendor verbs"] = {.exit_code = 139};
  CHECK(collect_from(died).why().text == "run vendor verbs: signal 11");
  auto rubbish = with_hca();
  rubbish.children["vendor verbs"] = {.out = "Segmentation fault"};
  CHECK(collect_from(rubbish).why().kind == Why::failed);
}

}  // namespace
}  // namespace distdoctor::testing
