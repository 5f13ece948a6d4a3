#include "collect/nccl_library.h"

#include "collect/collectors.h"
#include "support/ld_cache.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

NcclLibrary library_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_nccl_library(*machine::Machine::captured(captured), {}, node);
  return *node.nccl_library;
}

}  // namespace

TEST_CASE("NCCL's version by file name") {
  CHECK(version_of_file_name("/usr/lib/libnccl.so.2.28.9") == "2.28.9");
  CHECK(version_of_file_name("/usr/lib/libnccl.so.2").empty());
  CHECK(version_of_file_name("/usr/lib/libnccl-net.so.2.1.0").empty());
  CHECK(version_of_file_name("").empty());
}

TEST_CASE("NCCL's version and CUDA by its own text") {
  CHECK(build_of_bytes("\x7f\x45LF..NCCL version 2.28.9+cuda13.0\n") ==
        NcclBuild{"2.28.9", "13.0"});
  CHECK(build_of_bytes("NCCL version mismatch ... NCCL version 2.14.3 compiled") ==
        NcclBuild{"2.14.3", ""});
  CHECK(build_of_bytes("NCCL version 2.28") == NcclBuild{});
  CHECK(build_of_bytes("NCCL version ") == NcclBuild{});
  CHECK(build_of_bytes("") == NcclBuild{});
}

TEST_CASE("the wheel of a virtual environment goes before LD_LIBRARY_PATH") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  captured.environment = {{"LD_LIBRARY_PATH", "/opt/lib"}, {"VIRTUAL_ENV", "/venv"}};
  files["/opt/lib/libnccl.so.2"].text = "ELF NCCL version 2.18.3+cuda12.1";
  CHECK(library_of(captured).origin == "LD_LIBRARY_PATH");
  const std::string packages = "/venv/lib/python3.12/site-packages";
  files[packages + "/nvidia/nccl/lib/libnccl.so.2"].text = "ELF NCCL version 2.21.5+cuda12.4";
  CHECK(library_of(captured) == NcclLibrary{packages + "/nvidia/nccl/lib/libnccl.so.2", "2.21.5",
                                            "wheel in " + packages, "12.4"});
  files[packages + "/nvidia_nccl_cu12-2.27.3.dist-info/METADATA"].text = "Name: nvidia-nccl-cu12";
  CHECK(library_of(captured).version == "2.27.3");
  CHECK(library_of(captured).cuda == "12");
}

TEST_CASE("the wheel that a running rank's Python would take") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/proc/7/stat"].text = "7 (python3) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100";
  files["/proc/7/status"].text =
      "Name:\tpython3\nState:\tS (sleeping)\nPPid:\t1\nUid:\t0\t0\t0\t0\n";
  files["/proc/7/cmdline"].text = std::string("/opt/env/bin/python3\0train.py\0", 30);
  files["/proc/7/environ"].text =
      std::string("RANK=0\0WORLD_SIZE=2\0MASTER_ADDR=a\0MASTER_PORT=1\0", 52);
  files["/proc/7/ns/mnt"].link = "mnt:[1]";
  files["/proc/self/ns/mnt"].link = "mnt:[1]";
  files["/opt/env/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2"].text = "ELF";
  files["/opt/env/lib/python3.11/site-packages/nvidia_nccl_cu12-2.20.5.dist-info/RECORD"].text = "";
  CHECK(library_of(captured).version == "2.20.5");
  CHECK(library_of(captured).origin == "wheel in /opt/env/lib/python3.11/site-packages, of pid 7");
  files["/proc/7/ns/mnt"].link = "mnt:[2]";
  CHECK(library_of(captured) == NcclLibrary{});
}

TEST_CASE("which library a program would load: LD_LIBRARY_PATH before the cache, links followed") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  CHECK(library_of(captured) == NcclLibrary{});
  files["/etc/ld.so.cache"].text = testing::ld_cache({{"libnccl.so.2", "/usr/lib/libnccl.so.2"}});
  files["/usr/lib/libnccl.so.2"].link = "libnccl.so.2.28.9";
  files["/usr/lib/libnccl.so.2.28.9"].text = "ELF";
  CHECK(library_of(captured) == NcclLibrary{"/usr/lib/libnccl.so.2.28.9", "2.28.9", "ld.so.cache"});
  captured.environment["LD_LIBRARY_PATH"] = "/none:relative::/opt/lib";
  files["/opt/lib/libnccl.so.2"].text = "ELF NCCL version 2.21.5+cuda12.4";
  CHECK(library_of(captured) ==
        NcclLibrary{"/opt/lib/libnccl.so.2", "2.21.5", "LD_LIBRARY_PATH", "12.4"});
}
