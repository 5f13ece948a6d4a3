#include "collect/libraries.h"

#include "support/ld_cache.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

TEST_CASE("the loader's cache") {
  const auto cache = testing::ld_cache(
      {{"libc.so.6", "/lib/libc.so.6"}, {"libnccl.so.2", "/opt/lib/libnccl.so.2"}});
  const std::vector<std::string> one = {"/opt/lib/libnccl.so.2"};
  CHECK(all_in_ld_cache(cache, "libnccl.so.2") == one);
  CHECK(all_in_ld_cache("ld.so-1.7.0 old part " + cache, "libnccl.so.2") == one);
  CHECK(all_in_ld_cache(cache, "libnccl.so").empty());
  for (std::size_t length = 0; length < cache.size(); ++length) {
    static_cast<void>(all_in_ld_cache(std::string_view(cache).substr(0, length), "libnccl.so.2"));
  }
  CHECK(all_in_ld_cache("", "libnccl.so.2").empty());
}

TEST_CASE("a library's version by its file name") {
  CHECK(version_after("/usr/lib/libcuda.so.550.54.15", "libcuda.so.1") == "550.54.15");
  CHECK(version_after("/usr/lib/libcuda.so.1", "libcuda.so.1") == "1");
  CHECK(version_after("/usr/lib/libcuda.so", "libcuda.so.1").empty());
  CHECK(version_after("/usr/lib/libcudart.so.12", "libcuda.so.1").empty());
  CHECK(version_after("/usr/lib/libcuda.so.1.bak", "libcuda.so.1").empty());
  CHECK(version_after("", "libcuda.so.1").empty());
}

TEST_CASE("all files that a name leads to: the variable, the cache, the usual folders, each once") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  files["/etc/ld.so.cache"].text = testing::ld_cache({{"libx.so.1", "/usr/lib64/libx.so.1"}});
  files["/usr/lib64/libx.so.1"].link = "libx.so.1.5";
  files["/usr/lib64/libx.so.1.5"].text = "ELF";
  files["/usr/lib/wsl/lib/libx.so.1"].text = "ELF";
  files["/opt/libx.so.1"].link = "/store/libx.so.1.7";
  files["/store/libx.so.1.7"].text = "ELF";
  captured.environment["LD_LIBRARY_PATH"] = "/opt:lib";
  CHECK(find_library(*machine::Machine::captured(captured), "libx.so.1") ==
        std::vector<LibraryFile>{
            {"/store/libx.so.1.7", "LD_LIBRARY_PATH", "/opt/libx.so.1"},
            {"/usr/lib64/libx.so.1.5", "ld.so.cache", "/usr/lib64/libx.so.1"},
            {"/usr/lib/wsl/lib/libx.so.1", "/usr/lib/wsl/lib", "/usr/lib/wsl/lib/libx.so.1"}});
  CHECK(find_library(*machine::Machine::captured(captured), "liby.so.1").empty());
}

TEST_CASE("an entry of the cache whose file is gone is none") {
  machine::CapturedMachine captured;
  captured.files["/etc/ld.so.cache"].text =
      testing::ld_cache({{"libx.so.1", "/usr/lib64/libx.so.1"}});
  CHECK(find_library(*machine::Machine::captured(captured), "libx.so.1").empty());
}
