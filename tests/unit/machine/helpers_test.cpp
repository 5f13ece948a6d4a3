#include "machine/helpers.h"

#include "machine/child.h"

#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

using namespace distdoctor;           // NOLINT(google-build-using-namespace): a test of these
using namespace distdoctor::machine;  // NOLINT(google-build-using-namespace)

namespace {

namespace fs = std::filesystem;

// A file that is gone with the test.
class File {
 public:
  explicit File(const std::string& bytes) {
    path_ = fs::temp_directory_path() / ("distdoctor-helpers-" + std::to_string(::getpid()));
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { fs::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

std::string shell() {
  std::ifstream file("/bin/sh", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("helpers that came behind a program run from memory, each by its name") {
  const File file(with_helper(with_helper("the program itself", "sh", shell()), "other", "bytes"));
  const auto helpers = helpers_behind(file.path());
  REQUIRE_MESSAGE(helpers.has_value(), helpers.error().render());
  REQUIRE(helpers->size() == 2);
  const auto program = "/proc/self/fd/" + std::to_string(helpers->at("sh").get());
  const auto said = run_child({.argv = {program, "-c", "echo from memory"}},
                              Deadline::after(std::chrono::seconds(5)));
  REQUIRE_MESSAGE(said.has_value(), said.error().render());
  CHECK(said->out == "from memory\n");
}

TEST_CASE("programs without a helper behind them, or with a broken end") {
  const std::string whole = with_helper("program", "name", "helper");
  const std::string wrong_length =
      with_helper("program", "name", "").replace(whole.size() - 6 - 28, 8, 8, '\xff');
  for (const std::string& bytes : {std::string(), std::string("short"), std::string(100, 'x'),
                                   whole.substr(0, whole.size() - 1), wrong_length}) {
    CAPTURE(bytes.size());
    const File file(bytes);
    const auto helpers = helpers_behind(file.path());
    REQUIRE_MESSAGE(helpers.has_value(), helpers.error().render());
    CHECK(helpers->empty());
  }
  CHECK(helpers_behind("/nowhere").error().errno_value == ENOENT);
}

TEST_CASE("our own helper stands beside our own program") {
  const auto said = run_child({.argv = {"vendor", "about"}, .ours = true},
                              Deadline::after(std::chrono::seconds(5)));
  REQUIRE_MESSAGE(said.has_value(), said.error().render());
  CHECK(said->out.starts_with("{\"version\":"));
}
