#include "collect/loader.h"

#include "machine/machine.h"
#include "support/elf_image.h"
#include "support/ld_cache.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

// A machine with copies of libx.so.1, and who asks for one. (That the order is the real loader's
// is shown by tests/differential/loader_order.py.)
struct Search {
  machine::CapturedMachine captured = {};
  LoaderView view = {};
  std::vector<std::string> asks = {};

  void put(const std::string& path, const testing::ElfImage& image) {
    captured.files[path].text = testing::elf_image(image);
  }
  void copy(const std::string& path) { put(path, {.soname = "libx.so.1"}); }

  [[nodiscard]] std::vector<std::string> origins() const {
    const auto machine = machine::Machine::captured(captured);
    std::vector<Loaded> chain;
    for (const auto& path : asks) {
      if (auto object = loaded(machine->files(), path)) chain.push_back(*object);
    }
    std::vector<std::string> all;
    for (const auto& file : loader_order(machine->files(), view, chain, "libx.so.1")) {
      all.push_back(file.path + " by " + file.origin);
    }
    return all;
  }
};

using Origins = std::vector<std::string>;

}  // namespace

TEST_CASE("DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, the cache") {
  Search search;
  for (const auto* path : {"/r/libx.so.1", "/u/libx.so.1", "/l/libx.so.1", "/c/libx.so.1"}) {
    search.copy(path);
  }
  search.captured.files["/etc/ld.so.cache"].text =
      testing::ld_cache({{"libx.so.1", "/c/libx.so.1"}});
  search.view.library_path = "/l";
  search.put("/app/liba.so", {.needed = {"libx.so.1"}, .rpath = "$ORIGIN/../r"});
  search.put("/app/libb.so", {.needed = {"libx.so.1"}, .rpath = "/r", .runpath = "/u"});
  search.asks = {"/app/liba.so"};
  CHECK(search.origins() == Origins{"/r/libx.so.1 by DT_RPATH of liba.so",
                                    "/l/libx.so.1 by LD_LIBRARY_PATH",
                                    "/c/libx.so.1 by ld.so.cache"});
  search.put("/bin/program", {.rpath = "/r"});
  search.asks = {"/app/libb.so", "/bin/program"};
  CHECK(search.origins() == Origins{"/l/libx.so.1 by LD_LIBRARY_PATH",
                                    "/u/libx.so.1 by DT_RUNPATH of libb.so",
                                    "/c/libx.so.1 by ld.so.cache"});
  search.asks = {"/app/libc.so", "/app/liba.so"};  // the first cannot be read
  CHECK(search.origins().front() == "/r/libx.so.1 by DT_RPATH of liba.so");
}

TEST_CASE("LD_PRELOAD wins by the library's own name, and by what it needs itself") {
  Search search;
  search.copy("/l/libx.so.1");
  search.view.library_path = "/l";
  search.copy("/p/odd.so");
  search.put("/p/libx.so.1", {.soname = "libelse.so"});
  search.put("/p/shim.so", {.needed = {"libx.so.1"}, .runpath = "/s"});
  search.copy("/s/libx.so.1");
  search.view.preload = "/p/odd.so";
  CHECK(search.origins().front() == "/p/odd.so by LD_PRELOAD");
  search.view.preload = "/gone.so:/p/libx.so.1";
  CHECK(search.origins() == Origins{"/l/libx.so.1 by LD_LIBRARY_PATH"});
  search.view = {.preload = "/p/shim.so"};
  CHECK(search.origins() == Origins{"/s/libx.so.1 by DT_RUNPATH of shim.so"});
}

TEST_CASE("libraries of another kind of machine are passed over") {
  Search search;
  search.put("/l/libx.so.1", {.machine = EM_AARCH64});
  search.copy("/m/libx.so.1");
  search.put("/app/liba.so", {});
  search.asks = {"/app/liba.so"};
  search.view.library_path = "/l:/m";
  CHECK(search.origins() == Origins{"/m/libx.so.1 by LD_LIBRARY_PATH"});
}

TEST_CASE("tokens make no path longer than the kernel takes") {
  Search search;
  std::string deep;
  for (int i = 0; i < 400; ++i) deep += "/folder-xx";
  search.copy("/l/libx.so.1");
  search.put(deep + "/liba.so", {.needed = {"libx.so.1"}});
  search.asks = {deep + "/liba.so"};
  search.view.program = deep + "/program";
  // 7 bytes each, which would become 4,000: a third of a gigabyte.
  for (int i = 0; i < 100'000; ++i) search.view.library_path += "$ORIGIN";
  search.view.library_path += ":/l";
  CHECK(search.origins() == Origins{"/l/libx.so.1 by LD_LIBRARY_PATH"});
}

TEST_CASE("relative folders are the process's own") {
  Search search;
  search.copy("/site/lib/libx.so.1");
  search.view.library_path = "lib";
  CHECK(search.origins().empty());
  search.view.folder = "/site";
  CHECK(search.origins() == Origins{"/site/lib/libx.so.1 by LD_LIBRARY_PATH"});
}

TEST_CASE("entries of LD_PRELOAD and of /etc/ld.so.preload") {
  CHECK(preload_entries("a.so:/b.so  c.so") == std::vector<std::string>{"a.so", "/b.so", "c.so"});
  CHECK(preload_entries("# all\n/b.so # mine\n\n") == std::vector<std::string>{"/b.so"});
  CHECK(preload_entries("").empty());
}
