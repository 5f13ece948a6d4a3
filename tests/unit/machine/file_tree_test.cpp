#include "machine/file_tree.h"

#include "machine/memory_tree.h"
#include "support/temporary_folder.h"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)

namespace {

class Folder {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }

 private:
  distdoctor::testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path;
};

int error_of(const auto& result) {
  return result ? 0 : result.error().errno_value;
}

// The same files on disk and in memory.
struct BothTrees {
  Folder folder;
  std::unique_ptr<RootTree> disk;
  MemoryTree memory{{{"/etc/hosts", {.text = "127.0.0.1 localhost\n"}},
                     {"/etc/link", {.link = "hosts"}},
                     {"/etc/away", {.link = "/etc/hosts"}},
                     {"/etc/up", {.link = "../../../etc/hosts"}},
                     {"/etc/dangling", {.link = "nothing"}},
                     {"/etc/loop", {.link = "loop"}},
                     {"/fd/3", {.link = "socket:[7]"}},
                     {"/fd/4", {.link = "pipe:[8]"}}},
                    {}};

  BothTrees() {
    folder.write("etc/hosts", "127.0.0.1 localhost\n");
    const auto link = [this](const char* target, const char* name) {
      std::filesystem::create_symlink(target, folder.path() / name);
    };
    link("hosts", "etc/link");
    link("/etc/hosts", "etc/away");
    link("../../../etc/hosts", "etc/up");
    link("nothing", "etc/dangling");
    link("loop", "etc/loop");
    std::filesystem::create_directory(folder.path() / "fd");
    link("socket:[7]", "fd/3");
    link("pipe:[8]", "fd/4");
    disk = RootTree::open(folder.path().string()).value();
  }
};

struct ReadRow {
  std::string name;
  std::string path;
  std::string text;
};
const std::array<ReadRow, 6> kReads = {{
    {"a file", "/etc/hosts", "127.0.0.1 localhost\n"},
    {"a relative link", "/etc/link", "127.0.0.1 localhost\n"},
    {"an absolute link stays inside the root", "/etc/away", "127.0.0.1 localhost\n"},
    {"so does one that climbs", "/etc/up", "127.0.0.1 localhost\n"},
    {"so does a path that climbs", "/../../etc/hosts", "127.0.0.1 localhost\n"},
    {"dots and slashes", "//etc/.//hosts", "127.0.0.1 localhost\n"},
}};

}  // namespace

TEST_CASE("a tree on disk and one in memory read alike") {
  const BothTrees both;
  for (const auto& row : kReads) {
    CAPTURE(row.name);
    CHECK(both.disk->read(row.path).value_or("") == row.text);
    CHECK(both.memory.read(row.path).value_or("") == row.text);
  }
}

TEST_CASE("a tree on disk and one in memory list and follow links alike") {
  const BothTrees both;
  for (const FileTree* tree : {static_cast<const FileTree*>(both.disk.get()),
                               static_cast<const FileTree*>(&both.memory)}) {
    CHECK(tree->list("/").value() == std::vector<std::string>{"etc", "fd"});
    CHECK(tree->read_link("/etc/away").value() == "/etc/hosts");
    CHECK(error_of(tree->read_link("/etc/hosts")) == EINVAL);
    auto links = tree->links_in("/fd").value();
    std::ranges::sort(links);
    CHECK(links == Links{{"3", "socket:[7]"}, {"4", "pipe:[8]"}});
    CHECK(tree->info("/etc/link").value().size == 20);
    CHECK(tree->info("/etc").value().directory);
    CHECK(tree->word("/etc/hosts") == "127.0.0.1 localhost");
    CHECK(tree->word("/etc/nothing").empty());
  }
}

TEST_CASE("a tree on disk and one in memory refuse alike") {
  const BothTrees both;
  for (const FileTree* tree : {static_cast<const FileTree*>(both.disk.get()),
                               static_cast<const FileTree*>(&both.memory)}) {
    CHECK(error_of(tree->read("/etc/nothing")) == ENOENT);
    CHECK(error_of(tree->read("/etc/dangling")) == ENOENT);
    CHECK(error_of(tree->read("/etc")) == EISDIR);
    CHECK_FALSE(tree->read("/etc/loop").has_value());
    CHECK(error_of(tree->read("/etc/hosts", 19)) == EFBIG);
    CHECK(error_of(tree->read("/etc/hosts", 20)) == 0);
    CHECK(tree->read_head("/etc/hosts", 3).value() == "127");
    CHECK(error_of(tree->list("/nothing")) == ENOENT);
  }
}

TEST_CASE("a FIFO or a device holds nobody") {
  const Folder folder;
  REQUIRE(::mkfifo((folder.path() / "fifo").c_str(), 0600) == 0);
  const auto tree = RootTree::open(folder.path().string()).value();
  const auto read = tree->read("/fifo");
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().render() == "read /fifo: not a regular file");
  CHECK_FALSE(RootTree::open("/").value()->read("/dev/zero").has_value());
}

TEST_CASE("whether somebody has a file open, on tmpfs too") {
  const Folder folder;
  folder.write("free", "x");
  const auto tree = RootTree::open(folder.path().string()).value();
  CHECK(tree->in_use("/free").value() == false);
  {
    const std::ofstream open(folder.path() / "free", std::ios::app);
    CHECK(tree->in_use("/free").value() == true);
  }
  CHECK(tree->in_use("/free").value() == false);
  CHECK(error_of(tree->in_use("/nothing")) == ENOENT);
  const std::string segment = "/dev/shm/nccl-collect-" + std::to_string(::getpid());
  const distdoctor::Fd fd(::open(segment.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  REQUIRE(fd.valid());
  REQUIRE(::ftruncate(fd.get(), 4096) == 0);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  REQUIRE(memory != MAP_FAILED);
  ::close(::dup(fd.get()));
  CHECK(RootTree::open("/").value()->in_use(segment).value() == true);
  ::munmap(memory, 4096);
  ::unlink(segment.c_str());
}

TEST_CASE("whether a device may be used, and whether it opens") {
  const auto tree = RootTree::open("/").value();
  CHECK(tree->may_use("/dev/null").has_value());
  CHECK(tree->try_open("/dev/null").has_value());
  CHECK(error_of(tree->may_use("/dev/nothing")) == ENOENT);
  CHECK(error_of(tree->try_open("/dev/nothing")) == ENOENT);
  CHECK(error_of(tree->try_open("/dev")) == EISDIR);
  const distdoctor::machine::MemoryTree memory({{"/dev/a", {}}, {"/dev/b", {.error = EPERM}}}, {});
  CHECK(memory.may_use("/dev/a").has_value());
  CHECK(error_of(memory.try_open("/dev/b")) == EPERM);
}

TEST_CASE("a root that is not there") {
  CHECK(error_of(RootTree::open("/nothing/here")) == ENOENT);
}
