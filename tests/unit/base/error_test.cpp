#include "base/error.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string_view>

using namespace distdoctor;  // NOLINT(google-build-using-namespace): a test of this namespace

namespace {

Result<std::unique_ptr<int>> boxed(bool well) {
  if (!well) return failure("box 7", "no boxes left", "line 3");
  return std::make_unique<int>(7);
}

Result<void> looked(bool well) {
  if (!well) return failure("look", "too dark");
  return {};
}

Result<int> both(bool first, bool second) {
  DD_TRY(looked(first));
  DD_TRY(auto box, boxed(second));
  DD_TRY(box, boxed(second));
  return *box;
}

struct KindRow {
  std::string_view name;
  int errno_value;
  Why kind;
};

constexpr std::array<KindRow, 6> kKinds = {{
    {"no right", EACCES, Why::denied},
    {"no right, as the capabilities say it", EPERM, Why::denied},
    {"too late", ETIMEDOUT, Why::timed_out},
    {"an older kernel", ENOSYS, Why::unsupported},
    {"no such thing", ENOENT, Why::failed},
    {"not from the kernel", 0, Why::failed},
}};

}  // namespace

TEST_CASE("DD_TRY hands on values, even those that only move, and the first failure") {
  CHECK(both(true, true).value() == 7);
  CHECK(both(false, false).error().render() == "look: too dark");
  CHECK(both(true, false).error().render() == "box 7: no boxes left (line 3)");
}

TEST_CASE("an error of the kernel says what was tried and what came back, in one safe line") {
  CHECK(errno_error("open", "/proc/7/environ", EACCES).render() ==
        "open /proc/7/environ: Permission denied");
  CHECK(errno_error("open", "x", 4095).render() == "open x: errno 4095");
  CHECK(errno_error("open", "a\x1b[2J\nb", ENOENT).render() ==
        "open a\\x1b[2J\\nb: No such file or directory");
}

TEST_CASE("an error becomes an unknown fact of the right kind") {
  for (const KindRow& row : kKinds) {
    CAPTURE(row.name);
    const Unknown unknown = unknown_because(errno_error("open", "x", row.errno_value));
    CHECK(unknown.kind == row.kind);
    CHECK(unknown.text.starts_with("open x: "));
  }
}

TEST_CASE("a result becomes an observed fact") {
  CHECK(*observed(Result<int>(7)) == 7);
  CHECK(observed(Result<int>(failure("count", "nobody there"))).why() ==
        Unknown{Why::failed, "count: nobody there"});
}
