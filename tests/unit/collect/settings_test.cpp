#include "collect/settings.h"

#include <doctest/doctest.h>

#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

machine::CapturedMachine with_files() {
  machine::CapturedMachine captured{.uid = 1000};
  captured.environment = {{"NCCL_DEBUG", "INFO"},
                          {"NCCL_ALGO", ""},
                          {"WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"},
                          {"HOME", "/elsewhere"}};
  auto& files = captured.files;
  files["/etc/passwd"].text = "ann:x:1000:1000::/users/ann:/bin/bash\n";
  files["/users/ann/.nccl.conf"].text = "# mine\nNCCL_SOCKET_IFNAME=eth1\nNCCL_DEBUG=WARN\n";
  files["/elsewhere/.nccl.conf"].text = "NCCL_SOCKET_IFNAME=wrong\n";
  files["/etc/nccl.conf"].text =
      "NCCL_SOCKET_IFNAME=eth0\nNCCL_IB_HCA=mlx5\nNCCL_ALGO=Ring\nHF_TOKEN=hf_x\n";
  return captured;
}

Settings settings_of(const machine::CapturedMachine& captured) {
  return read_settings(*machine::Machine::captured(captured));
}

}  // namespace

TEST_CASE("settings: environment, even empty, over the user's file over the system's") {
  const auto settings = settings_of(with_files());
  REQUIRE(settings.size() == 4);
  const auto check = [&](const std::string& name, const std::string& value, Source source,
                         const std::string& where) {
    CAPTURE(name);
    CHECK(settings.at(name) == Setting{value, {.source = source, .where = where}});
  };
  check("NCCL_DEBUG", "INFO", Source::environment, "$NCCL_DEBUG");
  check("NCCL_ALGO", "", Source::environment, "$NCCL_ALGO");
  check("NCCL_SOCKET_IFNAME", "eth1", Source::user_config, "/users/ann/.nccl.conf:2");
  check("NCCL_IB_HCA", "mlx5", Source::system_config, "/etc/nccl.conf:2");
}

TEST_CASE("NCCL_CONF_FILE comes instead of the file at home") {
  auto captured = with_files();
  captured.environment["NCCL_CONF_FILE"] = "/opt/nccl.conf";
  captured.files["/opt/nccl.conf"].text = "NCCL_IB_HCA=mlx5_2\n";
  const auto settings = settings_of(captured);
  CHECK(settings.at("NCCL_IB_HCA").origin.where == "/opt/nccl.conf:1");
  CHECK(settings.at("NCCL_SOCKET_IFNAME").origin.where == "/etc/nccl.conf:1");
  captured.environment["NCCL_CONF_FILE"] = "";
  CHECK(settings_of(captured).at("NCCL_SOCKET_IFNAME").origin.where == "/users/ann/.nccl.conf:2");
  captured.environment["NCCL_CONF_FILE"] = "/nothing";
  CHECK(settings_of(captured).at("NCCL_IB_HCA").origin.where == "/etc/nccl.conf:2");
}

TEST_CASE(
    "the job's NCCL_CONF_FILE goes before our own; one that only its shell knows is no file") {
  auto captured = with_files();
  captured.environment["NCCL_CONF_FILE"] = "/nothing";
  captured.files["/opt/job.conf"].text = "NCCL_IB_HCA=mlx5_2\n";
  const auto machine = machine::Machine::captured(captured);
  const auto settings = read_settings(*machine, {{"NCCL_CONF_FILE", "/opt/job.conf"}});
  CHECK(settings.at("NCCL_IB_HCA").origin.where == "/opt/job.conf:1");
  CHECK(user_config(*machine, {{"NCCL_CONF_FILE", "$X/job.conf"}}).path.empty());
  CHECK(user_config(*machine, {{"NCCL_CONF_FILE", ""}}).path == "/users/ann/.nccl.conf");
  CHECK(user_config(*machine).path == "/nothing");
}

TEST_CASE("what a launcher set, by its name or by the company it keeps") {
  const machine::Environment torchrun = {{"TORCHELASTIC_RUN_ID", "x"}, {"RANK", "0"}};
  CHECK(source_of("RANK", torchrun) == Source::launcher);
  CHECK(source_of("TORCHELASTIC_RUN_ID", torchrun) == Source::launcher);
  CHECK(source_of("NCCL_DEBUG", torchrun) == Source::environment);
  CHECK(source_of("RANK", {{"RANK", "0"}}) == Source::environment);
  CHECK(source_of("SLURM_PROCID", {}) == Source::launcher);
  CHECK(source_of("OMPI_COMM_WORLD_RANK", {}) == Source::launcher);
}
