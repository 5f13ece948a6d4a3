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

TEST_CASE("NCCL's version by its own text") {
  CHECK(version_of_bytes("\x7f\x45LF..NCCL version 2.28.9+cuda13.0\n") == "2.28.9");
  CHECK(version_of_bytes("NCCL version mismatch ... NCCL version 2.14.3 compiled") == "2.14.3");
  CHECK(version_of_bytes("NCCL version 2.28").empty());
  CHECK(version_of_bytes("NCCL version ").empty());
  CHECK(version_of_bytes("").empty());
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
  CHECK(library_of(captured) == NcclLibrary{"/opt/lib/libnccl.so.2", "2.21.5", "LD_LIBRARY_PATH"});
}
