// The real helper, as a real child with a deadline, on a SIMULATED management library: there is no
// GPU here.
#include "collect/nvml.h"

#include "collect/collectors.h"
#include "machine/machine.h"
#include "support/gpu_machines.h"

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace): a test of these
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

// The environment of the child: which library, and what it answers.
class Simulated {
 public:
  explicit Simulated(const std::string& script, const char* folder = SIM_NVML) {
    script_ = fs::temp_directory_path() / ("distdoctor-sim-nvml-" + std::to_string(::getpid()));
    std::ofstream(script_) << script;
    ::setenv("DISTDOCTOR_SIM_NVML", script_.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", folder, 1);
  }
  Simulated(const Simulated&) = delete;
  Simulated& operator=(const Simulated&) = delete;
  ~Simulated() {
    ::unsetenv("DISTDOCTOR_SIM_NVML");
    ::unsetenv("LD_LIBRARY_PATH");
    fs::remove(script_);
  }

 private:
  fs::path script_;
};

Observed<Nvml> ask(std::chrono::milliseconds patience = 20s) {
  const auto machine = machine::Machine::live();
  REQUIRE(machine.has_value());
  return ask_nvml(**machine, Deadline::after(patience));
}

const std::string kHealthy =
    "gpus 2\ngpu * capability 9\ngpu * compute_mode 0\ngpu * mig 0\ngpu * throttle 4\n"
    "gpu * busy 97\ngpu * state 0\n"
    "gpu * ecc 0\ngpu * ecc_ever 0\ngpu * remap_pending 0\ngpu * fabric 3\n"
    "gpu * temperature 41\ngpu * memory_used 17\ngpu * links 18\ngpu * p2p_nvlink 0\n"
    "gpu * p2p_read 0\ngpu * p2p_write 0\ngpu * level 40\n";

NvmlGpu healthy_gpu(int i) {
  return {.index = i,
          .pci = i == 0 ? "0000:10:00.0" : "0000:20:00.0",
          .uuid = "GPU-SIMULATED-" + std::to_string(i),
          .name = "SIMULATED H100",
          .capability = "9.0",
          .compute_mode = "default",
          .mig = false,
          .throttle = {"sw power cap"},
          .busy_percent = 97,
          .performance_state = 0,
          .ecc_uncorrected = 0,
          .ecc_uncorrected_ever = 0,
          .remap_pending = false,
          .remap_failed = false,
          .fabric_state = "completed",
          .fabric_status = "success",
          .nvlinks = 18,
          .nvlinks_active = 18,
          .temperature_c = 41,
          .memory_bytes = 80,
          .memory_used_bytes = 17};
}

}  // namespace

TEST_CASE("NVML: all that a healthy machine says") {
  const Simulated library(kHealthy);
  const auto nvml = ask();
  REQUIRE_MESSAGE(nvml.known(), nvml.why().text);
  CHECK(nvml->library == SIM_NVML "/libnvidia-ml.so.1");
  CHECK(nvml->driver == "550.54.15-SIMULATED");
  CHECK(nvml->cuda == "12.4");
  CHECK(nvml->error == "");
  REQUIRE(nvml->gpus.size() == 2);
  CHECK(nvml->gpus[0] == healthy_gpu(0));
  CHECK(nvml->gpus[1] == healthy_gpu(1));
  CHECK(nvml->pairs == std::vector<NvmlPair>{
                           {.a = 0, .b = 1, .p2p_read = "ok", .p2p_write = "ok", .path = "NV18"}});
}

TEST_CASE("NVML: faults of single GPUs") {
  const Simulated library(
      kHealthy +
      "gpus 8\ngpu 1 error 15\ngpu 2 lost_later 15\ngpu 3 ecc 5\ngpu 3 remap_pending 1\n"
      "gpu 4 remap_failed 1\ngpu 5 throttle 72\ngpu 5 briefly 32\ngpu 6 fabric_status 999\n"
      "gpu 6 cluster 7\ngpu 7 links_active 16\ngpu 7 mig 1\ngpu 7 compute_mode 3\ngpu 7 pid 4711\n"
      "gpu 7 fabric 2\ngpu 4 state 32\ngpu 4 busy 101\ngpu 5 p2p_read 4\ngpu 5 p2p_nvlink 5\n");
  const auto nvml = ask();
  REQUIRE_MESSAGE(nvml.known(), nvml.why().text);
  const auto& gpus = nvml->gpus;
  REQUIRE(gpus.size() == 8);
  CHECK(gpus[0] == healthy_gpu(0));
  CHECK(gpus[1] == NvmlGpu{.index = 1, .error = "GPU is lost"});
  CHECK(gpus[2] == NvmlGpu{.index = 2, .pci = "0000:30:00.0", .error = "GPU is lost"});
  CHECK(gpus[3].ecc_uncorrected == 5);
  CHECK(gpus[3].remap_pending == true);
  CHECK(gpus[4].remap_failed == true);
  CHECK_FALSE(gpus[4].performance_state.has_value());  // NVML_PSTATE_UNKNOWN
  CHECK_FALSE(gpus[4].busy_percent.has_value());
  CHECK(gpus[5].throttle == std::vector<std::string>{"hw slowdown", "hw thermal"});
  CHECK(gpus[6].fabric_status == "unknown error");
  CHECK(gpus[6].fabric_cluster == "00000000000000000000000000000007.0");
  CHECK(gpus[7].nvlinks_active == 16);
  CHECK(gpus[7].mig == true);
  CHECK(gpus[7].compute_mode == "exclusive process");
  CHECK(gpus[7].processes == std::vector<NvmlProcess>{{.pid = 4711, .memory_bytes = 1000},
                                                      {.pid = 4712, .memory_bytes = 1001}});
  CHECK(gpus[7].fabric_state == "in progress");
  CHECK(gpus[7].fabric_status == "");
  // Pairs only of GPUs that answer.
  CHECK(nvml->pairs.size() == 15);
  const auto off = std::ranges::find_if(
      nvml->pairs, [](const NvmlPair& pair) { return pair.a == 5 && pair.b == 6; });
  REQUIRE(off != nvml->pairs.end());
  CHECK(off->p2p_read == "disabled by regkey");
  CHECK(off->path == "NODE");
}

TEST_CASE("NVML: drivers whose list of processes has longer entries") {
  const Simulated library(kHealthy + "stride 32\ngpu 0 pid 4711\n");
  const auto nvml = ask();
  REQUIRE(nvml.known());
  CHECK(nvml->gpus.at(0).processes ==
        std::vector<NvmlProcess>{{.pid = 4711, .memory_bytes = 1000},
                                 {.pid = 4712, .memory_bytes = 1001}});
}

TEST_CASE("NVML: an old library lacks functions, and tells the rest") {
  const Simulated library(kHealthy, SIM_NVML_OLD);
  const auto nvml = ask();
  REQUIRE_MESSAGE(nvml.known(), nvml.why().text);
  CHECK(nvml->cuda == "12.4");
  auto expected = healthy_gpu(0);
  expected.mig.reset();
  expected.remap_pending.reset();
  expected.remap_failed.reset();
  expected.fabric_state = expected.fabric_status = "";
  CHECK(nvml->gpus.at(0) == expected);
  CHECK(nvml->pairs.at(0).path == "NV18");
}

TEST_CASE("NVML: errors of its start are answers") {
  for (const auto& [code, words] :
       std::vector<std::pair<int, std::string>>{{18, "driver/library version mismatch"},
                                                {9, "driver not loaded"},
                                                {4, "insufficient permissions"},
                                                {15, "GPU is lost"},
                                                {77, "error 77"}}) {
    CAPTURE(code);
    const Simulated library("init " + std::to_string(code) + "\n");
    const auto nvml = ask();
    REQUIRE_MESSAGE(nvml.known(), nvml.why().text);
    CHECK(nvml->error == words);
    CHECK(nvml->error_code == code);
    CHECK(nvml->gpus.empty());
  }
}

TEST_CASE("NVML: no library at all is an answer") {
  const Simulated library("", "/nowhere");
  const auto nvml = ask();
  REQUIRE_MESSAGE(nvml.known(), nvml.why().text);
  if (nvml->library.empty()) {  // a machine with a driver has one elsewhere
    CHECK(nvml->error_code == 12);
    CHECK(nvml->error.find("libnvidia-ml.so.1") != std::string::npos);
  }
}

TEST_CASE("NVML: a library that hangs costs its deadline, one that crashes costs the helper") {
  {
    const Simulated library("hang\n");
    const auto begin = std::chrono::steady_clock::now();
    const auto nvml = ask(700ms);
    REQUIRE_FALSE(nvml.known());
    CHECK(nvml.why().kind == Why::timed_out);
    CHECK(nvml.why().text == "run vendor nvml: it did not end in time");
    CHECK(std::chrono::steady_clock::now() - begin < 5s);
  }
  const Simulated library("crash\n");
  const auto nvml = ask();
  REQUIRE_FALSE(nvml.known());
  CHECK(nvml.why().kind == Why::failed);
  CHECK(nvml.why().text == "run vendor nvml: signal 11");
}

TEST_CASE("NVML: a machine without NVIDIA's driver is not asked") {
  NodeFacts node;
  const auto plain = machine::Machine::captured(testing::fake_without_gpu());
  collect_nvml(*plain, {}, node);
  CHECK(node.nvml.why().kind == Why::not_collected);
  CHECK(node.nvml.why().text == "no NVIDIA driver is loaded");

  const auto gpus = machine::Machine::captured(testing::fake_hgx_h100());
  collect_nvml(*gpus, {}, node);
  CHECK(node.nvml.known());

  auto none = testing::fake_hgx_h100();
  none.children.clear();
  const auto no_helper = machine::Machine::captured(none);
  collect_nvml(*no_helper, {}, node);
  CHECK(node.nvml.why().text == "run vendor nvml: No such file or directory");

  none.children["vendor nvml"] = {.out = "{\"gpus\": 7}"};
  const auto rubbish = machine::Machine::captured(none);
  collect_nvml(*rubbish, {}, node);
  CHECK(node.nvml.why().kind == Why::failed);
  CHECK(node.nvml.why().text.find("gpus") != std::string::npos);
}
