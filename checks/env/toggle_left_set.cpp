// No switch for debugging is left on: each of them turns a fast path off, or checks at every call.
// What keeps NCCL from RDMA is told by rdma/socket_fallback.
#include <distdoctor/check.h>

#include "hardware.h"
#include "variables.h"

#include <array>

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// --- the switches ---

bool never(const NodeFacts& /*node*/) {
  return false;
}

constexpr std::string_view kAny = "*";

struct Toggle {
  const char* name;
  // As NCCL takes it; "<=N": a number up to N and above 0; kAny: whatever it is, but empty.
  std::string_view value;
  bool (*costs)(const NodeFacts&);  // the facts show what is lost: degraded
  std::string_view effect;
  Symptom symptom = Symptom::slow;
  std::string_view code = "env-toggle-left-set";
};

constexpr auto kToggles = std::to_array<Toggle>({
    {"NCCL_P2P_DISABLE", "1", has_nvlink,
     "GPUs of a node do not reach each other's memory, neither by NVLink nor by PCIe"},
    {"NCCL_P2P_LEVEL", "LOC", has_nvlink,
     "GPUs of a node do not reach each other's memory, neither by NVLink nor by PCIe",
     Symptom::slow, "env-path-level"},
    {"NCCL_NET_GDR_LEVEL", "LOC", direct_rdma_works,
     "no GPU is near enough to a NIC for GPUDirect RDMA: data goes through host memory",
     Symptom::slow, "env-path-level"},
    {"NCCL_SHM_DISABLE", "1", never,
     "GPUs of a node that cannot reach each other directly use the network"},
    {"NCCL_CUMEM_ENABLE", "0", never,
     "legacy IPC and pools in /dev/shm instead of cuMem allocations"},
    {"NCCL_NVLS_ENABLE", "0", never, "no reduction in the NVSwitch (NVLink SHARP)"},
    {"NCCL_DMABUF_ENABLE", "0", never, "GPUDirect RDMA needs nvidia_peermem then"},
    {"NCCL_CHECK_POINTERS", "1", never, "each call looks its pointers up in the driver"},
    {"NCCL_DEBUG", "TRACE", never, "one line and more for every call"},
    {"CUDA_LAUNCH_BLOCKING", "1", has_gpus, "every kernel is waited for, so that nothing overlaps"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", never,
     "each collective is compared over all ranks before it runs"},
    {"NCCL_LAUNCH_MODE", "GROUP", never, "an obsolete way to start kernels"},
    {"NCCL_MAX_NCHANNELS", "<=2", never, "so few channels do not fill a fast link"},
    {"NCCL_MAX_CTAS", "<=2", never, "so few channels do not fill a fast link"},
    {"NCCL_NTHREADS", "<=64", never, "so few threads do not fill a fast link"},
    {"NCCL_BUFFSIZE", "<=524288", never, "so small a buffer does not fill a fast link"},
    {"NCCL_COMM_BLOCKING", kAny, never,
     "whether a call waits is no longer what PyTorch asked for: it may take an error for an "
     "answer, or wait for ever",
     Symptom::hang},
    {"NCCL_NET_FORCE_MERGE", kAny, never,
     "NICs become one device, whether they can be or not: unsupported, and data may be wrong",
     Symptom::wrong_result},
    {"NCCL_GDR_FLUSH_DISABLE", "1", never, "a kernel may read what the NIC has not yet written",
     Symptom::wrong_result},
    {"NCCL_IGNORE_DISABLED_P2P", "1", never, "GPUs whose NVLink is down are used as if it was up",
     Symptom::wrong_result},
});

// What is misread is told by env/variable_misread.
bool is_on(const Toggle& toggle, const InForce& row) {
  if (row.reading != nullptr && row.reading->trap != VariableTrap::none) return false;
  if (toggle.value == kAny) return !row.value().empty();
  if (!toggle.value.starts_with("<=")) {
    const auto number = number_of(row);
    const bool nonzero = toggle.value == "1" && number && *number != 0;
    return nonzero || same_text(row.taken(), toggle.value);
  }
  long long most = 0;
  std::from_chars(toggle.value.data() + 2, toggle.value.data() + toggle.value.size(), most);
  const auto number = number_of(row);
  return number && *number > 0 && *number <= most;
}

void judge_toggle(const Case& c, const Toggle& toggle, InForce row, Judge& judge) {
  if (toggle.costs == never) {
    std::erase_if(row.places, [&](const Place& place) { return follows_a_recipe(c, place); });
  }
  if (row.places.empty()) return;
  const bool costs = std::ranges::any_of(
      row.places, [&](const Place& place) { return toggle.costs(*place.node); });
  Finding finding{
      .code = std::string(toggle.code),
      .severity = capped(c, row, costs ? Severity::degraded : Severity::notice),
      .certainty = Certainty::likely,
      .symptom = toggle.symptom,
      .subjects = {.nodes = hosts_of(row.places)},
      .summary = fmt::format("{} {}: {}", row.text(), where_text(c, row.places), toggle.effect)};
  add_evidence(row, "unset, unless there is a reason", finding);
  finding.fix = mend(c, row, std::nullopt, "keep it only where the job fails without it");
  judge.report(std::move(finding));
}

// Torch's and CUDA's own count in Gloo jobs, too.
bool read_without_nccl(std::string_view name) {
  return !name.starts_with("NCCL_");
}

void run(const Case& c, Judge& judge) {
  see_settings(c, judge);
  for (const Toggle& toggle : kToggles) {
    if (c.cluster.job.nccl == Use::no && !read_without_nccl(toggle.name)) continue;
    for (InForce& row : in_force(c, toggle.name)) {
      if (is_on(toggle, row)) judge_toggle(c, toggle, std::move(row), judge);
    }
  }
}

// --- the catalogue ---

constexpr std::string_view kConfirm =
    "`env | grep -E '^(NCCL|CUDA|TORCH)_'` in the job, `cat ~/.nccl.conf /etc/nccl.conf`.";
constexpr std::string_view kFix =
    "Unset it and run the job once more. Where it fails then, the switch hides the fault that "
    "`distdoctor check` is for.";
constexpr Page kTogglePage{
    .meaning =
        "The switch was set to find a fault, or to get around one, and turns off what makes NCCL "
        "fast, or checks at each call. The job works, and pays for it. On consumer GPUs "
        "NCCL_P2P_DISABLE=1 may be right, and some frameworks set NCCL_CUMEM_ENABLE=0 and "
        "NCCL_NVLS_ENABLE=0 themselves.",
    .confirm = kConfirm,
    .fix = kFix,
    .verify = "NCCL_DEBUG=INFO no longer prints `... set by environment to` for it."};
constexpr Page kLevelPage{
    .meaning =
        "LOC is the smallest distance there is: no two GPUs, or no GPU and NIC, are so near, and "
        "the fast path between them is never used.",
    .confirm =
        "NCCL_DEBUG=INFO prints channels `via SHM` or `via NET` where `via P2P` is possible, and "
        "`GPU Direct RDMA Disabled`.",
    .fix = kFix,
    .verify = "The same lines say `via P2P` or `/GDRDMA`."};
constexpr Code kCodes[] = {{.id = "env-toggle-left-set",
                            .fault_class = FaultClass::toggle_left_set,
                            .worst = Severity::degraded,
                            .title = "A switch for debugging is still set",
                            .causes = {},
                            .page = kTogglePage},
                           {.id = "env-path-level",
                            .fault_class = FaultClass::p2p_level,
                            .worst = Severity::degraded,
                            .title = "A level keeps fast paths off",
                            .causes = {},
                            .page = kLevelPage}};

}  // namespace

extern const Check env_toggle_left_set{
    .title = "No switch for debugging is left on", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
