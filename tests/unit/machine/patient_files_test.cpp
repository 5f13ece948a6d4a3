#include "machine/patient_files.h"

#include "machine/memory_tree.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <memory>
#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

namespace {

// Holds whoever reads a path that ends in "stuck", until let go.
class FakeHangingTree : public MemoryTree {
 public:
  explicit FakeHangingTree(std::shared_future<void> let_go)
      : MemoryTree({{"/good", {.text = "good text"}}, {"/stuck", {.text = "late"}}},
                   {{"/good", {.size = 7}}, {"/stuck", {.size = 8}}}),
        let_go_(std::move(let_go)) {}

  [[nodiscard]] Result<std::string> read_head(std::string_view path,
                                              std::size_t limit) const override {
    if (path.ends_with("stuck")) let_go_.wait();
    return MemoryTree::read_head(path, limit);
  }
  [[nodiscard]] Result<FileSystem> file_system(std::string_view path) const override {
    if (path.ends_with("stuck")) let_go_.wait();
    return MemoryTree::file_system(path);
  }

 private:
  std::shared_future<void> let_go_;
};

}  // namespace

TEST_CASE("a read that does not come back costs itself and no other") {
  std::promise<void> let_go;
  {
    const auto tree = std::make_shared<FakeHangingTree>(let_go.get_future().share());
    PatientFiles files(tree, 2s);
    CHECK(files.read_head("/good", 4).value() == "good");
    CHECK(files.read_head("/nothing", 4).error().errno_value == ENOENT);
    const auto stuck = files.read_head("/stuck", 4);
    REQUIRE_FALSE(stuck.has_value());
    CHECK(stuck.error().errno_value == ETIMEDOUT);
    CHECK(stuck.error().render() == "read /stuck: no answer in time");
    CHECK(files.read_head("/good", 9).value() == "good text");
    CHECK(files.file_system("/stuck").error().render() == "statvfs /stuck: no answer in time");
    CHECK(files.file_system("/good").value().size == 7);
  }
  let_go.set_value();  // its thread ends although tree and files are gone here
}
