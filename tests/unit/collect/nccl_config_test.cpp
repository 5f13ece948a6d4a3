#include <distdoctor/facts.h>

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

machine::CapturedMachine someone() {
  machine::CapturedMachine captured{.uid = 1000};
  captured.files["/etc/passwd"].text = "ann:x:1000:1000::/users/ann:/bin/bash\n";
  return captured;
}

std::vector<NcclConfigFile> files_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_nccl_config(*machine::Machine::captured(captured), {}, node);
  REQUIRE(node.nccl_config.known());
  return *node.nccl_config;
}

}  // namespace

TEST_CASE("nccl_config: no file is an absent file") {
  const auto files = files_of(someone());
  REQUIRE(files.size() == 2);
  CHECK(files[0] == NcclConfigFile{.path = "/users/ann/.nccl.conf", .source = Source::user_config});
  CHECK(files[1] == NcclConfigFile{.path = "/etc/nccl.conf", .source = Source::system_config});
}

TEST_CASE("nccl_config: lines as NCCL reads them, with their numbers, the repeated ones too") {
  auto captured = someone();
  captured.files["/etc/nccl.conf"].text =
      "# site\r\nexport NCCL_IB_HCA=mlx5\r\nNCCL_SOCKET_IFNAME = \"eth0\" # data\nPATH=/bin\n"
      "NCCL_DEBUG=INFO\nNCCL_DEBUG=WARN\n NCCL_ALGO\n";
  const auto system = files_of(captured).at(1);
  CHECK(system.there);
  CHECK(system.readable);
  CHECK(system.entries ==
        std::vector<NcclConfigEntry>{{2, "export NCCL_IB_HCA", "mlx5\r"},
                                     {3, "NCCL_SOCKET_IFNAME ", " \"eth0\" # data"},
                                     {5, "NCCL_DEBUG", "INFO"},
                                     {6, "NCCL_DEBUG", "WARN"}});
}

TEST_CASE("nccl_config: NCCL_CONF_FILE comes instead of the file at home, empty it does not") {
  auto captured = someone();
  captured.files["/users/ann/.nccl.conf"].text = "NCCL_DEBUG=INFO\n";
  captured.environment["NCCL_CONF_FILE"] = "/nothing";
  const auto named = files_of(captured).front();
  CHECK(named.path == "/nothing");
  CHECK(named.named);
  CHECK_FALSE(named.there);
  captured.environment["NCCL_CONF_FILE"] = "";
  const auto own = files_of(captured).front();
  CHECK(own.path == "/users/ann/.nccl.conf");
  CHECK_FALSE(own.named);
  CHECK(own.entries.size() == 1);
}

TEST_CASE("nccl_config: a file that we may not read is there") {
  auto captured = someone();
  captured.files["/etc/nccl.conf"].error = EACCES;
  const auto system = files_of(captured).at(1);
  CHECK(system.there);
  CHECK_FALSE(system.readable);
  CHECK(system.entries.empty());
}

TEST_CASE("nccl_config: secrets stay") {
  auto captured = someone();
  captured.files["/etc/nccl.conf"].text =
      "HF_TOKEN=hf_abcdefghijklmnopqrstuvwx\nNCCL_HTTP_TOKEN=hunter2\n"
      "NCCL_PROXY_URL=http://ann:pw@proxy:3128\n";
  const auto system = files_of(captured).at(1);
  CHECK(system.entries ==
        std::vector<NcclConfigEntry>{{2, "NCCL_HTTP_TOKEN", "***"},
                                     {3, "NCCL_PROXY_URL", "http://ann:***@proxy:3128"}});
}

TEST_CASE("nccl_config: a file of any size gives so many entries") {
  auto captured = someone();
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "NCCL_X" + std::to_string(i) + "=1\n";
  captured.files["/etc/nccl.conf"].text = text;
  CHECK(files_of(captured).at(1).entries.size() == 500);
}
