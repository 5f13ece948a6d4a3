// The real helper, as a real child, on the FAKE libibverbs of tests/differential: there is no RDMA
// device here. tests/run rdma asks real ones.
#include <distdoctor/facts/verbs.h>

#include "codec/read.h"
#include "machine/child.h"
#include "probe/probe.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

using namespace distdoctor;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

// Two devices, mlx5_0 and mlx5_1, and what the fake is to do with them.
class Fake {
 public:
  explicit Fake(Variables variables = {}) : variables_(std::move(variables)) {
    root_ = fs::temp_directory_path() / ("distdoctor-fake-ibverbs-" + std::to_string(::getpid()));
    for (const std::string number : {"0", "1"}) add(number);
    variables_["FAKE_IBVERBS_ROOT"] = root_;
    variables_["LD_LIBRARY_PATH"] = FAKE_IBVERBS;
    for (const auto& [name, value] : variables_) ::setenv(name.c_str(), value.c_str(), 1);
  }
  Fake(const Fake&) = delete;
  Fake& operator=(const Fake&) = delete;
  ~Fake() {
    for (const auto& [name, value] : variables_) ::unsetenv(name.c_str());
    fs::remove_all(root_);
  }
  void hide(const std::string& node) const { fs::remove(root_ / "dev/infiniband" / node); }

 private:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  void add(const std::string& number) const {
    const fs::path port = "sys/class/infiniband/mlx5_" + number + "/ports/1";
    write("sys/class/infiniband_verbs/uverbs" + number + "/ibdev", "mlx5_" + number);
    write("dev/infiniband/uverbs" + number, "");
    write(port / "state", "4: ACTIVE");
    write(port / "link_layer", "Ethernet");
    write(port / "gids/0", "0000:0000:0000:0000:0000:ffff:c0a8:000" + number);
  }
  Variables variables_;
  fs::path root_;
};

Verbs look() {
  const auto output =
      machine::run_child({.argv = {"vendor", "verbs"}, .ours = true}, Deadline::after(20s));
  REQUIRE(output.has_value());
  Verbs verbs;
  REQUIRE(codec::read_json(output->out, verbs, "read Verbs").has_value());
  return verbs;
}

RdmaAnswer ask(probe::QueuePairs& pairs, const RdmaRequest& request) {
  const auto answer = pairs.act(request, Deadline::after(20s));
  REQUIRE(answer.has_value());
  return *answer;
}
RdmaRequest request_of(const std::string& id, const std::string& device, bool sends) {
  return {.id = id,
          .device = device,
          .gid_index = 0,
          .sends = sends,
          .sizes = {64, 4096},
          .timeout_ms = 2000};
}

}  // namespace

TEST_CASE("vendor verbs opens each device and prepares memory") {
  const Fake fake;
  const Verbs verbs = look();
  CHECK(verbs.library.starts_with(FAKE_IBVERBS));
  REQUIRE(verbs.devices.size() == 2);
  CHECK(verbs.devices[0] ==
        VerbsDevice{.name = "mlx5_0", .registered_bytes = 4 << 20, .active_ports = {1}});
}

TEST_CASE("vendor verbs names the step that fails, and why a device does not open") {
  const Fake fake(Variables{{"FAKE_IBVERBS_FAILS", "reg_mr 4194304"}});
  fake.hide("uverbs1");
  const Verbs verbs = look();
  REQUIRE(verbs.devices.size() == 2);
  CHECK(verbs.devices[0] == VerbsDevice{.name = "mlx5_0",
                                        .step_error = "ibv_reg_mr of 4 MiB: ENOMEM",
                                        .step_error_code = ENOMEM,
                                        .registered_bytes = 64 << 10,
                                        .active_ports = {1}});
  CHECK(verbs.devices[1] ==
        VerbsDevice{.name = "mlx5_1", .error = "ibv_open_device: ENOENT", .error_code = ENOENT});
}

TEST_CASE("two ends meet, send and receive") {
  const Fake fake;
  probe::QueuePairs pairs;
  const RdmaRequest sends = request_of("a", "mlx5_0", true);
  const RdmaRequest receives = request_of("b", "mlx5_1", false);
  const RdmaAnswer a = ask(pairs, sends);
  const RdmaAnswer b = ask(pairs, receives);
  CHECK(a.error.empty());
  CHECK(a.end.queue_pair == 17);
  CHECK(a.end.gid == "0000:0000:0000:0000:0000:ffff:c0a8:0000");
  CHECK(a.end.mtu == 4096);
  RdmaRequest second = sends;
  second.other = b.end;
  const RdmaAnswer sent = ask(pairs, second);
  CHECK(sent.error.empty());
  REQUIRE(sent.messages.size() == 2);
  CHECK(sent.messages[1].arrived);
  CHECK(sent.messages[1].bytes == 4096);
  second = receives;
  second.other = a.end;
  CHECK(ask(pairs, second).messages.size() == 2);
  CHECK_FALSE(pairs.act(second, Deadline::after(20s)).has_value());  // it is used up
}

struct Row {
  std::string name;
  Variables fake;
  std::string error;
  int messages = 0;
  std::string status = {};
};
const std::vector<Row> kRows = {
    {"no way to the other", {{"FAKE_IBVERBS_RTR", "101"}}, "ibv_modify_qp to RTR: ENETUNREACH"},
    {"retries used up", {{"FAKE_IBVERBS_STATUS", "12"}}, "", 1, "transport retry counter exceeded"},
    {"no completion", {{"FAKE_IBVERBS_STATUS", "-1"}}, "", 1, ""},
};

TEST_CASE("what an end says when it does not go well") {
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const Fake fake(row.fake);
    probe::QueuePairs pairs;
    RdmaRequest request = request_of("a", "mlx5_0", true);
    request.timeout_ms = 300;
    request.other = ask(pairs, request).end;
    const RdmaAnswer answer = ask(pairs, request);
    CHECK(answer.error == row.error);
    REQUIRE(static_cast<int>(answer.messages.size()) == row.messages);
    if (row.messages == 0) continue;
    CHECK_FALSE(answer.messages[0].arrived);
    CHECK(answer.messages[0].status == row.status);
  }
}

TEST_CASE("a device that does not open is an answer") {
  const Fake fake(Variables{{"FAKE_IBVERBS_FAILS", "create_qp"}});
  probe::QueuePairs pairs;
  CHECK(ask(pairs, request_of("a", "mlx5_0", true)).error == "ibv_create_qp: ENOMEM");
  CHECK(ask(pairs, request_of("b", "mlx5_7", true)).error_code == ENODEV);
}
