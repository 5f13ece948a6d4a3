#include "render/explain.h"

#include "render/environment.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>

namespace distdoctor::render {
namespace {

TEST_CASE("every code has a page with its four parts") {
  for (const std::string_view code : all_codes(all_checks())) {
    std::ostringstream out;
    REQUIRE(explain(code, all_checks(), out));
    for (const char* part : {"# ", "## What it means", "## How to confirm by hand", "## How to fix",
                             "## How to verify the fix"}) {
      CHECK(out.str().find(part) != std::string::npos);
    }
  }
  std::ostringstream out;
  CHECK_FALSE(explain("no-such-code", all_checks(), out));
  CHECK(out.str().empty());
}

TEST_CASE("the catalogue names every check") {
  std::ostringstream out;
  catalogue(all_checks(), out);
  for (const NamedCheck& check : all_checks()) {
    CHECK(out.str().find("  " + std::string(check.name) + ": ") != std::string::npos);
  }
}

std::string exports(const Recommended& recommended, std::string_view node) {
  std::ostringstream out;
  environment(recommended, node, out);
  return out.str();
}

TEST_CASE("env prints what a shell can eval, the reasons as comments") {
  CHECK(exports({}, "") == "# nothing needs to be set\n");
  const Recommended one{.env = {{"*", {{"NCCL_SOCKET_IFNAME", "=eth1"}}}},
                        .reasons = {{"NCCL_SOCKET_IFNAME", "why\nso"}}};
  CHECK(exports(one, "") == "# why\n# so\nexport NCCL_SOCKET_IFNAME='=eth1'\n");
  const Recommended listed{.env = {{"*", {{"NCCL_IB_HCA", "^=mlx5_0:1"}, {"UCX_TLS", "a:=b"}}}}};
  CHECK(exports(listed, "") == "export NCCL_IB_HCA=^=mlx5_0:1\nexport UCX_TLS='a:=b'\n");
  const Recommended each{.env = {{"node0", {{"GLOO_SOCKET_IFNAME", "eth0"}}},
                                 {"node1", {{"GLOO_SOCKET_IFNAME", "$(rm)"}}}},
                         .reasons = {{"GLOO_SOCKET_IFNAME", "r"}}};
  CHECK(exports(each, "node1") == "# r\nexport GLOO_SOCKET_IFNAME='$(rm)'\n");
  CHECK(exports(each, "") ==
        "# r\n# on node0:\n#   export GLOO_SOCKET_IFNAME=eth0\n"
        "# on node1:\n#   export GLOO_SOCKET_IFNAME='$(rm)'\n");
}

}  // namespace
}  // namespace distdoctor::render
