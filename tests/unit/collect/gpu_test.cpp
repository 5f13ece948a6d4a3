#include "collect/gpu.h"

#include "collect/collectors.h"
#include "machine/memory_tree.h"
#include "support/gpu_machines.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

GpuFacts gpus_of(const machine::CapturedMachine& captured) {
  NodeFacts node;
  collect_gpu(*machine::Machine::captured(captured), {}, node);
  return *node.gpu;
}

// Opening a GPU's device node initialises the GPU.
class NobodyOpensDevices : public machine::MemoryTree {
 public:
  using MemoryTree::MemoryTree;
  [[nodiscard]] Result<std::string> read_head(std::string_view path,
                                              std::size_t limit) const override {
    CHECK_FALSE(path.starts_with("/dev/"));
    return MemoryTree::read_head(path, limit);
  }
  [[nodiscard]] Result<void> try_open(std::string_view path) const override {
    FAIL_CHECK("opened ", path);
    return {};
  }
};

}  // namespace

TEST_CASE("no device is opened") {
  for (const auto make : {fake_hgx_h100, fake_mi300x}) {
    auto captured = make();
    auto files = std::make_unique<NobodyOpensDevices>(captured.files, captured.file_systems);
    NodeFacts node;
    collect_gpu(*machine::Machine::captured(std::move(captured), std::move(files)), {}, node);
    CHECK(node.gpu->gpus.size() == 8);
  }
}

TEST_CASE("the NVIDIA module's version") {
  CHECK(
      parse_nvidia_version("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 "
                           "22:23:56 UTC 2024\nGCC version:  gcc version 12.3.0\n") ==
      NvidiaModule{"550.54.15", false});
  CHECK(parse_nvidia_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  "
                             "Release Build  (dvs-builder@U16)  Thu Jan 23\n") ==
        NvidiaModule{"570.86.15", true});
  CHECK(parse_nvidia_version(
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  560.35.03 x\n") ==
        NvidiaModule{"560.35.03", true});
  for (const std::string_view text : {"", "NVRM version:", "NVRM version: Kernel Module x y",
                                      "GCC version: Kernel Module 550.54.15"}) {
    CHECK_FALSE(parse_nvidia_version(text).has_value());
  }
}

TEST_CASE("rows of an information file, and of KFD's properties") {
  const auto rows = parse_information("Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-1:2\nno row\n");
  CHECK(rows.size() == 2);
  CHECK(rows.at("Model") == "NVIDIA A100");
  CHECK(rows.at("GPU UUID") == "GPU-1:2");
  const auto values =
      parse_kfd_properties("vendor_id 4098\nhive_id 18446744073709551615\nbad x\n\n");
  CHECK(values.size() == 2);
  CHECK(values.at("hive_id") == 18446744073709551615U);
  CHECK(kfd_pci_address(0, 0xc500) == "0000:c5:00.0");
  CHECK(kfd_pci_address(1, 0x05e1) == "0001:05:1c.1");
}

TEST_CASE("an HGX machine's GPUs") {
  const auto gpu = gpus_of(fake_hgx_h100());
  CHECK(gpu.nvidia_driver == "550.54.15");
  CHECK(gpu.nvidia_open);
  CHECK(gpu.nvidia_library == "550.54.15");
  CHECK(gpu.peermem);
  CHECK(gpu.control_node);
  CHECK(gpu.uvm_node);
  REQUIRE(gpu.gpus.size() == 8);
  CHECK(gpu.gpus[1] == Gpu{.pci = "0000:23:00.0",
                           .vendor = GpuVendor::nvidia,
                           .model = "NVIDIA H100 80GB HBM3",
                           .uuid = "GPU-5eed0000-0000-4000-8000-000000000001",
                           .minor = 1,
                           .device_node = "/dev/nvidia1",
                           .node_there = true,
                           .node_usable = true});
}

TEST_CASE("device nodes that are not there, or not for us") {
  auto captured = fake_hgx_h100();
  captured.files.erase("/dev/nvidia0");
  captured.files["/dev/nvidia1"].error = 13;
  captured.files["/proc/driver/nvidia/gpus/0000:33:00.0/information"].text =
      "Model: \t NVIDIA H100\nGPU UUID: \t GPU-???\n";
  const auto gpu = gpus_of(captured);
  CHECK_FALSE(gpu.gpus[0].node_there);
  CHECK_FALSE(gpu.gpus[0].node_usable);
  CHECK(gpu.gpus[1].node_there);
  CHECK_FALSE(gpu.gpus[1].node_usable);
  CHECK(gpu.gpus[2].uuid.empty());
  CHECK_FALSE(gpu.gpus[2].minor.has_value());
  CHECK(gpu.gpus[2].device_node.empty());
}

TEST_CASE("a compatibility library is not the driver's, nor is one without a version") {
  auto captured = fake_hgx_h100();
  captured.environment["LD_LIBRARY_PATH"] = "/usr/local/cuda/compat/lib";
  captured.files["/usr/local/cuda/compat/lib/libcuda.so.1"].link = "libcuda.so.570.86.15";
  captured.files["/usr/local/cuda/compat/lib/libcuda.so.570.86.15"].text = "ELF";
  CHECK(gpus_of(captured).nvidia_library == "550.54.15");
  captured.environment["LD_LIBRARY_PATH"] = "/opt/new";
  captured.files["/opt/new/libcuda.so.1"].link = "libcuda.so.555.42.02";
  captured.files["/opt/new/libcuda.so.555.42.02"].text = "ELF";
  CHECK(gpus_of(captured).nvidia_library == "555.42.02");
  CHECK(gpus_of(fake_wsl()) == GpuFacts{});
}

TEST_CASE("AMD GPUs by KFD's topology; its CPUs are none") {
  const auto gpu = gpus_of(fake_mi300x());
  CHECK(gpu.amd_driver == "6.8.5");
  CHECK(gpu.nvidia_driver.empty());
  REQUIRE(gpu.gpus.size() == 8);
  CHECK(gpu.gpus[1].pci == "0000:25:00.0");
  CHECK(gpu.gpus[1].vendor == GpuVendor::amd);
  CHECK(gpu.gpus[1].device_node == "/dev/dri/renderD136");
  CHECK(gpu.gpus[1].node_usable);
  CHECK(gpu.gpus[1].xgmi_hive == "690117034a0");
  auto without_kfd = fake_mi300x();
  without_kfd.files.erase("/dev/kfd");
  without_kfd.files.erase("/sys/module/amdgpu/version");
  without_kfd.files["/sys/module/amdgpu/refcnt"].text = "0\n";
  CHECK_FALSE(gpus_of(without_kfd).gpus[0].node_usable);
  CHECK(gpus_of(without_kfd).amd_driver == "in kernel 6.8.0-45-generic");
  CHECK(gpus_of(fake_without_gpu()) == GpuFacts{});
}
