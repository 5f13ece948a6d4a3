// A collective starts: the libraries load, GPUs have a driver, ranks find each other.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>

#include "isolations.h"

#include <fmt/format.h>

#include <array>

namespace distdoctor::checks {
namespace {

using namespace collective;  // NOLINT(google-build-using-namespace): the words of this folder

// What a library says (init.cc, bootstrap.cc of NCCL; the CUDA driver API; dlopen(3)), and what it
// means. The first that fits counts.
struct Words {
  std::string_view words;
  const char* code;
  std::string_view meaning;
  std::string_view fix;
};

constexpr std::string_view kReach =
    "`distdoctor check` on the same nodes tests the interfaces, ports and filters between them";
constexpr std::string_view kFabric = "the GPUs wait for the NVSwitch fabric (CUDA error 802)";
constexpr std::array<Words, 14> kWords = {
    {{kNoFabric, "collective-fabric-not-ready", kFabric, kStartFabric},
     {kNoFabricName, "collective-fabric-not-ready", kFabric, kStartFabric},
     {"Duplicate GPU detected", "collective-duplicate-gpu", "two ranks use one GPU",
      "each rank takes the GPU of its LOCAL_RANK, and no more ranks than GPUs are started"},
     {"Multiple Ranks are using the same GPU", "collective-duplicate-gpu", "two ranks use one GPU",
      "each rank takes the GPU of its LOCAL_RANK, and no more ranks than GPUs are started"},
     {"mismatch in rank", "collective-world-size", "the ranks disagree about their number",
      "the same number of nodes and of processes on each in every launch line"},
     {"mismatch in info from procs", "collective-world-size",
      "the ranks disagree about their number",
      "the same number of nodes and of processes on each in every launch line"},
     {"driver version is insufficient", "collective-driver-old",
      "the NVIDIA driver is too old for this NCCL's CUDA, or none is loaded",
      "a driver as new as the CUDA version needs, or a build for an older CUDA"},
     {"libcuda.so", "collective-no-driver", "there is no NVIDIA driver",
      "install the driver; start the container with --gpus all"},
     {"no CUDA-capable device", "collective-no-driver", "no GPU can be used",
      "`nvidia-smi` on the node; the GPUs of the container, CUDA_VISIBLE_DEVICES"},
     {"no NVIDIA driver", "collective-no-driver", "there is no NVIDIA driver",
      "install the driver; start the container with --gpus all"},
     {"libnccl", "collective-nccl-not-loaded", "NCCL's library cannot be loaded",
      "--nccl with the path of the job's own libnccl.so.2"},
     {"no socket interface found", "collective-bootstrap",
      "NCCL finds no interface to meet its peers by", kReach},
     {"socketPollConnect", "collective-bootstrap", "the ranks do not reach each other", kReach},
     {"Connection refused", "collective-bootstrap", "the ranks do not reach each other", kReach}}};

struct Heard {
  const Words* words;
  const RankRun* rank;
};

std::optional<Heard> heard_in(const Experiment& run) {
  for (const Words& words : kWords) {
    for (const RankRun& rank : run.ranks) {
      if (rank.error.find(words.words) != std::string::npos) return Heard{&words, &rank};
    }
  }
  return std::nullopt;
}

std::string what_to_look_at(const Experiment& run) {
  if (run.backend == RunBackend::gloo) {
    return "what Gloo says in the runs above; `distdoctor check` on the same nodes";
  }
  return "NCCL_DEBUG=INFO of a single rank tells where it stops";
}

void report(const Case& c, const Isolation& found, Judge& judge) {
  const Experiment* run = proof_run(c, found, 0);
  if (run == nullptr) return;
  const auto heard = heard_in(*run);
  Finding finding =
      about(c, found, heard ? heard->words->code : "collective-no-start",
            heard ? fmt::format("no collective starts: {} ({})", heard->words->meaning,
                                heard->rank->error.substr(0, 200))
                  : "no collective starts, not even one rank alone");
  finding.certainty = heard ? finding.certainty : Certainty::likely;
  if (!add_proof(c, found, finding)) return;
  finding.fix = {by_hand("*", heard ? std::string(heard->words->fix) : what_to_look_at(*run))};
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  for (const Isolation* found : isolations_of(c, {Layer::setup})) report(c, *found, judge);
}

// --- the catalogue ---

constexpr std::string_view kConfirm = "NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 8 -g 1 on the node.";
constexpr std::string_view kVerify = "The all-reduce of one rank works on every node.";

constexpr Code code(const char* id,
                    FaultClass fault_class,
                    const char* title,
                    std::string_view meaning,
                    std::string_view fix) {
  return {.id = id,
          .fault_class = fault_class,
          .worst = Severity::blocker,
          .title = title,
          .causes = {},
          .page = {.meaning = meaning, .confirm = kConfirm, .fix = fix, .verify = kVerify}};
}

constexpr Code kCodes[] = {
    code("collective-nccl-not-loaded",
         FaultClass::tool_trouble,
         "NCCL cannot be loaded",
         "The library libnccl.so.2 was not found, is of another architecture, or lacks what it "
         "needs itself. A job may bring its own copy, which we did not find.",
         "`distdoctor facts` shows which copies there are; --nccl takes another one."),
    code("collective-no-driver",
         FaultClass::driver_mismatch,
         "There is no NVIDIA driver",
         "libcuda.so.1 cannot be loaded, or finds no device: no driver on the host, or a container "
         "that was started without its GPUs.",
         "Install the driver; `docker run --gpus all`."),
    code("collective-driver-old",
         FaultClass::driver_mismatch,
         "The NVIDIA driver is too old",
         "The CUDA version that this NCCL was built with needs a newer driver than the one that is "
         "loaded, or no driver is loaded.",
         "A newer driver, or NCCL and torch built for an older CUDA."),
    code("collective-fabric-not-ready",
         FaultClass::fabric_manager,
         "GPUs wait for the NVSwitch fabric",
         "CUDA does not start: error 802, `system not yet initialized`, which PyTorch prints from "
         "cudaGetDeviceCount and NCCL as a Cuda failure. On a machine with NVSwitches that means "
         "that the fabric manager has not let the GPUs into the fabric: it does not run, is of "
         "another version than the driver, or met a fault.",
         "nvidia-fabricmanager of exactly the driver's version, started on the drained node."),
    code("collective-duplicate-gpu",
         FaultClass::dup_gpu,
         "Two ranks use one GPU",
         "NCCL refuses two ranks on one GPU. LOCAL_RANK is not used, CUDA_VISIBLE_DEVICES is the "
         "same for all, or more ranks were started than there are GPUs.",
         "torch.cuda.set_device(LOCAL_RANK); as many processes per node as GPUs."),
    code("collective-world-size",
         FaultClass::world_size_mismatch,
         "Ranks disagree about their number",
         "The root of the communicator hears of another number of ranks from some of them.",
         "The same --nnodes and --nproc-per-node everywhere."),
    code("collective-bootstrap",
         FaultClass::unknown_connect,
         "Ranks do not reach each other",
         "The ranks meet over TCP before anything else, and did not.",
         "`distdoctor check` names the interface, port or filter."),
    code("collective-no-start",
         FaultClass::unknown_hang,
         "No collective starts",
         "Not even a single rank alone gets through, on any node, in two rounds.",
         "NCCL_DEBUG=INFO of a single rank; `distdoctor check`.")};

}  // namespace

extern const Check collective_setup{
    .title = "A collective starts", .codes = kCodes, .run = run, .needs = Needs::runs};

}  // namespace distdoctor::checks
