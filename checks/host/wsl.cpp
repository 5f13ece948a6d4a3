// Windows Subsystem for Linux: NCCL works in it from 2.11 on, and WSL 1 has no GPU.
#include "seen.h"

#include <charconv>

namespace distdoctor::checks {
namespace {

using namespace host;  // NOLINT(google-build-using-namespace): what these checks share

constexpr int kFirstMinor = 11;  // of NCCL 2: 2.8 to 2.10 fail there (NVIDIA/nccl#442, #511)

// "4.4.0-19041-Microsoft"; that of WSL 2 ends in "-microsoft-standard-WSL2".
bool is_wsl_1(const NodeFacts& node) {
  return node.identity.known() && node.identity->kernel.ends_with("-Microsoft");
}

// 8 of "2.8.3".
std::optional<int> minor_of(std::string_view version) {
  if (!version.starts_with("2.")) return std::nullopt;
  int minor = 0;
  const char* const begin = version.data() + 2;
  const auto [end, error] = std::from_chars(begin, version.data() + version.size(), minor);
  return error == std::errc() && end != begin ? std::optional(minor) : std::nullopt;
}

bool is_too_old(const NodeFacts& node) {
  const auto minor =
      node.nccl_library.known() ? minor_of(node.nccl_library->version) : std::nullopt;
  return minor && *minor < kFirstMinor;
}

void report(const Case& c, const NodeFacts& node, Evidence evidence, Fix fix, Judge& judge) {
  const bool one = is_wsl_1(node);
  // The library of a login may be another than the job's.
  const bool sure = one || is_the_jobs_context(node.context) ||
                    node.nccl_library->origin.starts_with("mapped by pid");
  const bool blocks = c.cluster.job.nccl == Use::yes && sure;
  Finding finding{.code = "host-wsl",
                  .severity = blocks ? Severity::blocker : Severity::notice,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::crash,
                  .subjects = {.nodes = {node.host}},
                  .summary = ""};
  finding.summary = one ? fmt::format("{} runs in WSL 1, which has no GPU", node.host)
                        : fmt::format("{} runs in WSL 2, and NCCL {} cannot work there", node.host,
                                      node.nccl_library->version);
  finding.evidence = {std::move(evidence)};
  finding.fix = {std::move(fix)};
  judge.report(std::move(finding));
}

void judge_node(const Case& c, const NodeFacts& node, Judge& judge) {
  if (is_wsl_1(node)) {
    report(c, node,
           seen(node, "kernel", node.identity->kernel, "...-microsoft-standard-WSL2", "uname -r"),
           by_hand(node, "in Windows: `wsl --set-version NAME 2`, NAME as `wsl --list` says it"),
           judge);
  } else if (is_too_old(node)) {
    report(c, node,
           seen(node, "NCCL", node.nccl_library->version, "2.11 or later",
                "strings " + shell_quote(node.nccl_library->path) + " | grep 'NCCL version'"),
           by_hand(node, "a newer NCCL: with torch it comes as `pip install -U torch`"), judge);
  }
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  for (const NodeFacts& node : c.cluster.nodes) {
    const World* world = judge.see(node, "world", node.world);
    if (world == nullptr || world->platform != "wsl") continue;
    judge.see(node, "nccl_library", node.nccl_library);
    judge_node(c, node, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "WSL shows no PCI tree and no NVIDIA devices as Linux has them. NCCL before 2.11 ends with "
        "`Could not find real path of /sys/class/pci_bus/...`, unhandled system error; later ones "
        "work in WSL 2. WSL 1 has no GPU at all.",
    .confirm = "`uname -r` names Microsoft; NCCL_DEBUG=VERSION prints NCCL's version.",
    .fix =
        "WSL 2 with NCCL 2.11 or later (`pip install -U torch`). Several machines: Windows' "
        "networkingMode=mirrored in .wslconfig, or nobody outside reaches WSL's own network.",
    .verify = "`nvidia-smi` works inside WSL, and NCCL_DEBUG=INFO gets to `Init COMPLETE`."};
constexpr Code kCodes[] = {{.id = "host-wsl",
                            .fault_class = FaultClass::wsl_unsupported,
                            .worst = Severity::blocker,
                            .title = "This NCCL does not work in this WSL",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check host_wsl{.title = "NCCL can work on this platform", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
