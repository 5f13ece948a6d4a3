#include "collect/job_world.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

JobWorld world_of(const machine::CapturedMachine& captured) {
  return job_world(*machine::Machine::captured(captured));
}

void add_rank(machine::CapturedMachine& captured, const std::string& environ_rest) {
  auto& files = captured.files;
  files["/proc/7/stat"].text = "7 (python3) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100";
  files["/proc/7/status"].text =
      "Name:\tpython3\nState:\tS (sleeping)\nPPid:\t1\nUid:\t0\t0\t0\t0\n";
  files["/proc/7/cmdline"].text = std::string("/opt/env/bin/python3\0train.py\0", 30);
  files["/proc/7/environ"].text =
      std::string("RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=a\0MASTER_PORT=1\0", 49) + environ_rest;
  files["/proc/7/exe"].link = "/usr/bin/python3.11";
  files["/proc/7/cwd"].link = "/users/ann/job";
  files["/proc/7/ns/mnt"].link = "mnt:[1]";
  files["/proc/self/ns/mnt"].link = "mnt:[1]";
  files["/proc/7/maps"].text =
      "7f0-7f1 r-xp 0 08:01 12 /opt/env/torch/lib/libtorch_cpu.so\n"
      "7f2-7f3 r-xp 0 08:01 12 /opt/x/libnccl.so.2\n";
}

}  // namespace

TEST_CASE("without a rank our own environment tells, and Python's as PATH finds it") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  captured.environment = {{"PATH", "/none:/venv/bin:/usr/bin"}, {"LD_LIBRARY_PATH", "/l"}};
  files["/venv/bin/python3"].text = "ELF";
  files["/venv/lib/python3.12/site-packages/a"].text = "";
  files["/usr/lib/python3/dist-packages/a"].text = "";
  files["/usr/local/lib/python3.11/dist-packages/a"].text = "";
  auto world = world_of(captured);
  CHECK(world.pid == 0);
  CHECK(world.loader.library_path == "/l");
  CHECK(world.packages == std::vector<std::string>{"/venv/lib/python3.12/site-packages"});
  CHECK(world.origin("ld.so.cache") == "ld.so.cache");
  files["/venv/pyvenv.cfg"].text = "home = /usr/bin\ninclude-system-site-packages = true\n";
  CHECK(world_of(captured).packages ==
        std::vector<std::string>{"/venv/lib/python3.12/site-packages",
                                 "/usr/local/lib/python3.11/dist-packages",
                                 "/usr/lib/python3/dist-packages"});
}

TEST_CASE("a shim on PATH tells nothing") {
  machine::CapturedMachine captured;
  captured.environment = {{"PATH", "/users/ann/.pyenv/shims:/usr/bin"}};
  captured.files["/users/ann/.pyenv/shims/python3"].text = "#!/bin/sh";
  captured.files["/usr/lib/python3/dist-packages/a"].text = "";
  CHECK(world_of(captured).packages.empty());
}

TEST_CASE("a rank that runs: its environment, its Python, what it has mapped") {
  machine::CapturedMachine captured;
  captured.environment = {{"LD_LIBRARY_PATH", "/login"}};
  captured.files["/opt/env/lib/python3.11/site-packages/a"].text = "";
  add_rank(captured, std::string("LD_LIBRARY_PATH=/job\0LD_PRELOAD=/p.so\0", 38));
  const auto world = world_of(captured);
  CHECK(world.pid == 7);
  CHECK(world.loader.library_path == "/job");
  CHECK(world.loader.preload == "/p.so");
  CHECK(world.loader.folder == "/users/ann/job");
  CHECK(world.loader.program == "/usr/bin/python3.11");
  CHECK(world.packages == std::vector<std::string>{"/opt/env/lib/python3.11/site-packages"});
  CHECK(world.torch_library == "/opt/env/torch/lib/libtorch_cpu.so");
  CHECK(world.nccl_library == "/opt/x/libnccl.so.2");
  CHECK(world.nccl_here);
  CHECK(world.origin("ld.so.cache") == "ld.so.cache, of pid 7");
}

TEST_CASE("a rank that was started as plain `python3`: the one on its own PATH") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  add_rank(captured, std::string("PATH=/bin:/opt/env/bin\0", 23));
  files["/proc/7/cmdline"].text = std::string("python3\0train.py\0", 17);
  files["/opt/env/bin/python3"].text = "ELF";
  files["/opt/env/lib/python3.11/site-packages/a"].text = "";
  files["/usr/lib/python3/dist-packages/a"].text = "";
  CHECK(world_of(captured).packages ==
        std::vector<std::string>{"/opt/env/lib/python3.11/site-packages"});
}

TEST_CASE("of a rank among other files only what it has mapped is known") {
  machine::CapturedMachine captured;
  captured.environment = {{"LD_LIBRARY_PATH", "/login"}};
  add_rank(captured, "");
  captured.files["/proc/7/ns/mnt"].link = "mnt:[2]";
  const auto world = world_of(captured);
  CHECK(world.pid == 0);
  CHECK(world.loader.library_path == "/login");
  CHECK(world.nccl_pid == 7);
  CHECK_FALSE(world.nccl_here);
}

TEST_CASE("without a rank the job's own word goes before our environment; a rank's before both") {
  machine::CapturedMachine captured;
  captured.environment = {{"LD_LIBRARY_PATH", "/login"}, {"LD_PRELOAD", "/p.so"}};
  captured.files["/job/bin/python3"].text = "ELF";
  captured.files["/job/lib/python3.12/site-packages/a"].text = "";
  const auto said = [&](const JobPlaces& places) {
    return job_world(*machine::Machine::captured(captured), places);
  };
  auto world = said({{"LD_LIBRARY_PATH", "/ofi:$LD_LIBRARY_PATH"},
                     {"PATH", "/job/bin"},
                     {"HOSTNAME", "no such variable leads to files"}});
  CHECK(world.loader.library_path == "/ofi:/login");
  CHECK(world.loader.preload == "/p.so");
  CHECK(world.packages == std::vector<std::string>{"/job/lib/python3.12/site-packages"});
  CHECK(world.origin("LD_LIBRARY_PATH") == "LD_LIBRARY_PATH, of the job");
  CHECK(world.origin("LD_PRELOAD") == "LD_PRELOAD");
  CHECK(world.lost.empty());
  CHECK(world.variable("HOSTNAME").empty());
  world = said({{"LD_LIBRARY_PATH", "$(x):/ofi"}, {"NCCL_NET_PLUGIN", "$OFI/libnccl-net.so"}});
  CHECK(world.loader.library_path == "/ofi");
  CHECK(world.lost == std::set<std::string>{"LD_LIBRARY_PATH", "NCCL_NET_PLUGIN"});
  add_rank(captured, std::string("LD_LIBRARY_PATH=/rank\0", 22));
  world = said({{"LD_LIBRARY_PATH", "/ofi"}});
  CHECK(world.loader.library_path == "/rank");
  CHECK(world.origin("LD_LIBRARY_PATH") == "LD_LIBRARY_PATH, of pid 7");
}
