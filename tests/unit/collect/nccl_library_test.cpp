#include "collect/nccl_library.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

void append_word(std::string& bytes, std::uint32_t word) {
  std::array<char, sizeof word> raw{};
  std::memcpy(raw.data(), &word, sizeof word);
  bytes.append(raw.data(), raw.size());
}

// A cache as ldconfig writes it: header, entries, texts.
std::string ld_cache(const std::vector<std::pair<std::string, std::string>>& libraries) {
  std::string texts;
  std::string entries;
  const auto start = static_cast<std::uint32_t>(48 + 24 * libraries.size());
  for (const auto& [name, path] : libraries) {
    append_word(entries, 0x0303);
    append_word(entries, start + static_cast<std::uint32_t>(texts.size()));
    texts += name + '\0';
    append_word(entries, start + static_cast<std::uint32_t>(texts.size()));
    texts += path + '\0';
    entries.append(12, '\0');
  }
  std::string cache = "glibc-ld.so.cache1.1";
  append_word(cache, static_cast<std::uint32_t>(libraries.size()));
  append_word(cache, static_cast<std::uint32_t>(texts.size()));
  cache.resize(48, '\0');
  return cache + entries + texts;
}

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

TEST_CASE("the loader's cache") {
  const auto cache =
      ld_cache({{"libc.so.6", "/lib/libc.so.6"}, {"libnccl.so.2", "/opt/lib/libnccl.so.2"}});
  CHECK(find_in_ld_cache(cache, "libnccl.so.2") == "/opt/lib/libnccl.so.2");
  CHECK(find_in_ld_cache("ld.so-1.7.0 old part " + cache, "libnccl.so.2") ==
        "/opt/lib/libnccl.so.2");
  CHECK(find_in_ld_cache(cache, "libnccl.so").empty());
  for (std::size_t length = 0; length < cache.size(); ++length) {
    static_cast<void>(find_in_ld_cache(std::string_view(cache).substr(0, length), "libnccl.so.2"));
  }
  CHECK(find_in_ld_cache("", "libnccl.so.2").empty());
}

TEST_CASE("which library a program would load: LD_LIBRARY_PATH before the cache, links followed") {
  machine::CapturedMachine captured;
  auto& files = captured.files;
  CHECK(library_of(captured) == NcclLibrary{});
  files["/etc/ld.so.cache"].text = ld_cache({{"libnccl.so.2", "/usr/lib/libnccl.so.2"}});
  files["/usr/lib/libnccl.so.2"].link = "libnccl.so.2.28.9";
  files["/usr/lib/libnccl.so.2.28.9"].text = "ELF";
  CHECK(library_of(captured) == NcclLibrary{"/usr/lib/libnccl.so.2.28.9", "2.28.9", "ld.so.cache"});
  captured.environment["LD_LIBRARY_PATH"] = "/none:relative::/opt/lib";
  files["/opt/lib/libnccl.so.2"].text = "ELF NCCL version 2.21.5+cuda12.4";
  CHECK(library_of(captured) == NcclLibrary{"/opt/lib/libnccl.so.2", "2.21.5", "LD_LIBRARY_PATH"});
}
