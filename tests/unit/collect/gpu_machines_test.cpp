// Captured machines with GPUs, from their files to what all checks of GPUs say.
#include "support/gpu_machines.h"

#include "capture/capture.h"
#include "collect/collectors.h"
#include "support/check_cases.h"
#include "support/hcas.h"
#include "support/nvml_answers.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)
using namespace distdoctor::testing;  // NOLINT(google-build-using-namespace)

namespace {

using machine::CapturedMachine;

void look(const CapturedMachine& captured, NodeFacts& node) {
  const auto machine = machine::Machine::captured(captured);
  collect_pci(*machine, {}, node);
  collect_gpu(*machine, {}, node);
  collect_nvml(*machine, {}, node);
  collect_kernel_log(*machine, {}, node);
  collect_devices(*machine, {}, node);
  collect_rdma(*machine, {}, node);
  NodeFacts other;
  collect_identity(*machine, {}, other);
  testing::World::change(node.identity, [&](Identity& identity) {
    identity.container = other.identity->container;
    identity.kernel = other.identity->kernel;
  });
  if (!node.identity->container.empty()) node.context = Context::container;
}

// In the middle of a job: NVML says so, and no link saves power.
void work_hard(CapturedMachine& machine) {
  if (machine.children.contains(kAskNvml)) change_nvml(machine, be_busy);
  constexpr std::string_view kNow = "/current_link_speed";
  for (auto& [path, file] : machine.files) {
    if (!path.ends_with(kNow)) continue;
    const auto device = path.substr(0, path.size() - kNow.size());
    const auto most = machine.files.find(device + "/max_link_speed");
    if (most != machine.files.end()) file.text = most->second.text;
  }
}

// Four nodes of one kind, the second of which may be ill.
std::set<std::string> codes_on(const CapturedMachine& healthy, const CapturedMachine& ill) {
  testing::World world;
  for (std::size_t i = 0; i < world.cluster.nodes.size(); ++i) {
    look(i == 1 ? ill : healthy, world.node(i));
  }
  predict_hcas(world);
  std::set<std::string> codes;
  for (const NamedCheck& named : all_checks()) {
    Judge judge(named.check->codes);
    named.check->run({.cluster = world.cluster, .expect = world.expect}, judge);
    for (const Finding& finding : judge.findings()) codes.insert(finding.code);
  }
  return codes;
}

using Codes = std::set<std::string>;

struct Healthy {
  std::string_view name;
  CapturedMachine (*machine)();
};

const std::vector<Healthy> kHealthy = {
    {"HGX H100", fake_hgx_h100},       {"four A100 PCIe", fake_a100_pcie},
    {"cloud VM", fake_cloud_vm},       {"desktop", fake_desktop},
    {"two RTX 4090", fake_two_rtx},    {"MI300X", fake_mi300x},
    {"docker", fake_docker},           {"WSL", fake_wsl},
    {"without GPU", fake_without_gpu},
};

struct Fault {
  std::string_view name;
  CapturedMachine (*machine)();
  void (*hurt)(CapturedMachine&);
  Codes codes;
};

void say(CapturedMachine& captured, const std::string& line) {
  captured.kernel_log = *captured.kernel_log + "<4>[89990.000000] " + line + "\n";
}

const std::string kA100 = "0000:23:00.0";
const std::string kA100Folder = "/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:00.0";

// Of the second GPU.
template <class Change>
void hurt_gpu(CapturedMachine& captured, Change change) {
  change_nvml(captured, [&](Nvml& nvml) { change(nvml.gpus.at(1)); });
}

const std::vector<Fault> kFaults = {
    {"GPUs that wait for their fabric",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       hurt_gpu(m, [](NvmlGpu& gpu) { gpu.fabric_state = "in progress"; });
     },
     {"gpu-fabric-not-ready"}},
    {"a fabric that refuses one",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       hurt_gpu(m, [](NvmlGpu& gpu) { gpu.fabric_status = "insufficient resources"; });
     },
     {"gpu-fabric-not-ready"}},
    {"a hot GPU at work",
     fake_a100_pcie,
     [](CapturedMachine& m) {
       work_hard(m);
       hurt_gpu(m, [](NvmlGpu& gpu) { gpu.throttle = {"hw slowdown", "hw thermal"}; });
     },
     {"gpu-throttled"}},
    {"a GPU at work behind a bad riser",
     fake_a100_pcie,
     [](CapturedMachine& m) {
       work_hard(m);
       m.files[kA100Folder + "/" + kA100 + "/current_link_speed"].text = "8.0 GT/s PCIe\n";
     },
     {"gpu-pcie-speed"}},
    {"a row of memory that waits for a reset",
     fake_cloud_vm,
     [](CapturedMachine& m) {
       hurt_gpu(m, [](NvmlGpu& gpu) {
         gpu.ecc_uncorrected = gpu.ecc_uncorrected_ever = 1;
         gpu.remap_pending = true;
       });
     },
     {"gpu-memory-repair-pending"}},
    {"a row that cannot be replaced",
     fake_hgx_h100,
     [](CapturedMachine& m) { hurt_gpu(m, [](NvmlGpu& gpu) { gpu.remap_failed = true; }); },
     {"gpu-memory-broken"}},
    {"a GPU that does not answer its driver",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       hurt_gpu(m, [](NvmlGpu& gpu) { gpu = {.index = 1, .error = "GPU is lost"}; });
     },
     {"gpu-lost"}},
    {"NVLinks that are down",
     fake_hgx_h100,
     [](CapturedMachine& m) { hurt_gpu(m, [](NvmlGpu& gpu) { gpu.nvlinks_active = 16; }); },
     {"gpu-nvlink-down"}},
    {"a GPU split up by MIG",
     fake_a100_pcie,
     [](CapturedMachine& m) { hurt_gpu(m, [](NvmlGpu& gpu) { gpu.mig = true; }); },
     {"gpu-mig-mode"}},
    {"a GPU that may not compute",
     fake_two_rtx,
     [](CapturedMachine& m) { hurt_gpu(m, [](NvmlGpu& gpu) { gpu.compute_mode = "prohibited"; }); },
     {"gpu-compute-prohibited"}},
    {"a container without the driver's management library",
     fake_docker,
     [](CapturedMachine& m) {
       answer_nvml(
           m, {.error = "libnvidia-ml.so.1: cannot open shared object file", .error_code = 12});
     },
     {"gpu-nvml-missing"}},
    {"a driver that was updated under its module, as NVML tells it",
     fake_cloud_vm,
     [](CapturedMachine& m) {
       answer_nvml(m, {.error = "driver/library version mismatch", .error_code = 18});
     },
     {"gpu-driver-mismatch"}},
    {"a driver in trouble",
     fake_two_rtx,
     [](CapturedMachine& m) { answer_nvml(m, {.error = "unknown error", .error_code = 999}); },
     {"gpu-driver-fails"}},
    {"a GPU of eight fell off the bus",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       say(m, "NVRM: Xid (PCI:0000:23:00): 79, pid=1, GPU has fallen off the bus.");
     },
     {"gpu-xid"}},
    {"an illegal access of a program",
     fake_hgx_h100,
     [](CapturedMachine& m) { say(m, "NVRM: Xid (PCI:0000:23:00): 31, pid=7, MMU Fault"); },
     {"gpu-program-fault"}},
    {"a GPU that the driver let go",
     fake_hgx_h100,
     [](CapturedMachine& m) { m.files.erase("/proc/driver/nvidia/gpus/0000:23:00.0/information"); },
     {"gpu-missing", "gpu-count-differs"}},
    {"the libraries were updated, the module was not",
     fake_cloud_vm,
     [](CapturedMachine& m) {
       m.files["/usr/lib/x86_64-linux-gnu/libcuda.so.1"].link = "libcuda.so.560.35.03";
       m.files["/usr/lib/x86_64-linux-gnu/libcuda.so.560.35.03"].text = "ELF";
     },
     {"gpu-driver-mismatch"}},
    {"nothing lets RDMA cards reach the GPUs",
     fake_a100_pcie,
     [](CapturedMachine& m) { m.files.erase("/sys/module/nvidia_peermem/version"); },
     {"gpu-gdr-disabled"}},
    {"ACS and an IOMMU that translates between GPUs and RDMA cards",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       for (int group = 10; group < 18; ++group) {
         m.files["/sys/kernel/iommu_groups/" + std::to_string(group) + "/type"].text = "DMA-FQ\n";
       }
     },
     {"gpu-gdr-acs"}},
    {"an RDMA card that may not reorder its writes",
     fake_hgx_h100,
     [](CapturedMachine& m) {
       m.files["/sys/devices/pci0000:20/0000:20:01.0/0000:21:00.0/0000:22:01.0/0000:24:00.0/config"]
           .text = fake_card_config(false);
     },
     {"rdma-relaxed-ordering-differs"}},
    {"half of the lanes",
     fake_a100_pcie,
     [](CapturedMachine& m) {
       m.files[kA100Folder + "/" + kA100 + "/current_link_width"].text = "8\n";
     },
     {"gpu-pcie-width"}},
    {"ACS, and an IOMMU that translates",
     fake_a100_pcie,
     [](CapturedMachine& m) {
       m.files["/sys/kernel/iommu_groups/10/type"].text = "DMA-FQ\n";
       m.files[kA100Folder + "/config"].text = fake_config(0x1d);
     },
     {"gpu-acs", "gpu-gdr-acs"}},
    {"the same, but nobody may read it",
     fake_a100_pcie,
     [](CapturedMachine& m) {
       m.files["/sys/kernel/iommu_groups/10/type"].text = "DMA-FQ\n";
       for (auto& [path, file] : m.files) {
         if (path.ends_with("/config")) file.text = fake_config();
       }
     },
     {}},
    {"nouveau has taken the card",
     fake_desktop,
     [](CapturedMachine& m) {
       m.files["/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/driver"].link =
           "../../../../bus/pci/drivers/nouveau";
       std::erase_if(m.files, [](const auto& entry) {
         return entry.first.find("nvidia") != std::string::npos;
       });
     },
     {"gpu-no-driver", "gpu-none"}},
    {"a container without its GPUs",
     fake_docker,
     [](CapturedMachine& m) {
       std::erase_if(m.files,
                     [](const auto& entry) { return entry.first.starts_with("/dev/nvidia"); });
     },
     {"gpu-not-visible"}},
    {"an MI300X on half of its lanes",
     fake_mi300x,
     [](CapturedMachine& m) {
       m.files["/sys/devices/pci0000:20/0000:20:01.1/0000:25:00.0/current_link_width"].text = "8\n";
     },
     {"gpu-pcie-width"}},
    {"an MI300X that amdgpu let go",
     fake_mi300x,
     [](CapturedMachine& m) {
       m.files.erase("/sys/devices/pci0000:20/0000:20:01.1/0000:25:00.0/driver");
       std::erase_if(m.files, [](const auto& entry) {
         return entry.first.find("/topology/nodes/2/") != std::string::npos ||
                entry.first == "/dev/dri/renderD136";
       });
     },
     {"gpu-count-differs"}},
    {"a user outside of the group render, in the job",
     fake_mi300x,
     [](CapturedMachine& m) {
       m.files["/dev/kfd"].error = 13;
       m.files["/.dockerenv"].text = "";
     },
     {"gpu-not-visible"}},
};

}  // namespace

TEST_CASE("healthy machines with GPUs: nobody is blamed") {
  for (const Healthy& row : kHealthy) {
    CAPTURE(row.name);
    CHECK(codes_on(row.machine(), row.machine()) == Codes{});
  }
}

TEST_CASE("healthy machines in the middle of a job: nobody is blamed") {
  for (const Healthy& row : kHealthy) {
    CAPTURE(row.name);
    auto busy = row.machine();
    work_hard(busy);
    CHECK(codes_on(busy, busy) == Codes{});
  }
}

TEST_CASE("machines with one GPU fault each") {
  for (const Fault& row : kFaults) {
    CAPTURE(row.name);
    auto ill = row.machine();
    row.hurt(ill);
    const auto found = codes_on(row.machine(), ill);
    CAPTURE(fmt::format("{}", fmt::join(found, " ")));
    CHECK(found == row.codes);
  }
}

TEST_CASE("a machine that was written down shows the same devices") {
  for (const Healthy& row : kHealthy) {
    CAPTURE(row.name);
    const auto original = machine::Machine::captured(row.machine());
    capture::Recorder recorder(*original);
    NodeFacts before;
    for (const auto collect : {collect_pci, collect_gpu, collect_nvml, collect_kernel_log}) {
      collect(recorder.machine(), {}, before);
    }
    const auto again = capture::read(capture::write(recorder.notes()), "node.json");
    REQUIRE(again.has_value());
    const auto machine = machine::Machine::captured(*again);
    NodeFacts after;
    for (const auto collect : {collect_pci, collect_gpu, collect_nvml, collect_kernel_log}) {
      collect(*machine, {}, after);
    }
    CHECK(after.pci == before.pci);
    CHECK(after.gpu == before.gpu);
    CHECK(after.nvml == before.nvml);
    CHECK(after.kernel_log.known() == before.kernel_log.known());
  }
}
