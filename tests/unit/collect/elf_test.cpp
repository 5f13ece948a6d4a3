#include "collect/elf.h"

#include "collect/loader.h"
#include "support/elf_image.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

ReadPart parts(const std::string& bytes) {
  return [bytes](std::uint64_t offset, std::size_t limit) {
    return offset < bytes.size() ? bytes.substr(offset, limit) : "";
  };
}

std::string constants(const ReadPart& part) {
  const auto section = find_section(part, ".rodata");
  return section ? part(section->offset, section->size) : "none";
}

}  // namespace

TEST_CASE("what a library says about itself") {
  const auto part = parts(testing::elf_image({.soname = "liba.so.1",
                                              .needed = {"libb.so.2", "libc.so.6"},
                                              .rpath = "$ORIGIN/../lib",
                                              .runpath = "",
                                              .symbols = {"ncclNetPlugin_v8", "other"},
                                              .constants = "NCCL version 2.28.9+cuda13.0"}));
  const auto elf = read_elf(part);
  REQUIRE(elf.has_value());
  CHECK(elf->kind == ElfKind{62, true});
  CHECK(elf->soname == "liba.so.1");
  CHECK(elf->needed == std::vector<std::string>{"libb.so.2", "libc.so.6"});
  CHECK(elf->rpath == "$ORIGIN/../lib");
  CHECK(elf->runpath == "");
  CHECK(exported_symbols(part, "ncclNet") == std::vector<std::string>{"ncclNetPlugin_v8"});
  CHECK(constants(part) == "NCCL version 2.28.9+cuda13.0");
}

TEST_CASE("cut anywhere, a library tells less and nothing breaks") {
  const auto whole =
      testing::elf_image({.soname = "liba.so.1", .needed = {"libb.so.2"}, .symbols = {"a"}});
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    const auto part = parts(whole.substr(0, length));
    CHECK(read_elf(part).has_value() == (length >= 64));
    static_cast<void>(exported_symbols(part, ""));
    static_cast<void>(find_section(part, ".rodata"));
  }
  CHECK_FALSE(read_elf(parts("#!/bin/sh\n")).has_value());
  CHECK_FALSE(elf_kind("\x7f"
                       "ELF")
                  .has_value());
}

TEST_CASE("this very program and its C library") {
  const auto files = machine::RootTree::open("/");
  REQUIRE(files.has_value());
  const auto program = (*files)->read_link("/proc/self/exe");
  REQUIRE(program.has_value());
  const auto self = read_elf(parts_of(**files, *program));
  REQUIRE(self.has_value());
  const auto& needed = self->needed;
  if (needed.empty()) return;  // a static build
  CHECK(std::ranges::find(needed, "libc.so.6") != needed.end());
  const auto libc = loader_order(**files, {}, {}, "libc.so.6");
  REQUIRE_FALSE(libc.empty());
  const auto part = parts_of(**files, libc.front().path);
  CHECK(read_elf(part)->soname == "libc.so.6");
  const auto found = exported_symbols(part, "getaddrinfo");
  CHECK(std::ranges::find(found, "getaddrinfo") != found.end());
}
