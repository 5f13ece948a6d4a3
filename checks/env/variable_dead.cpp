// The NCCL that was found reads the variables that are set.
#include <distdoctor/check.h>

#include "variables.h"

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Minor versions of NCCL 2: by its sources of 2.10.3, 2.14.3, 2.18.6, 2.20.5, 2.21.5 and on, so
// that 2.18 stands for what came before 2.20.
struct Life {
  const char* name;
  int first;  // 0: since ever
  int gone;   // 0: still read
  const char* instead;
};
constexpr int kOldest = 10;  // the first that was looked at: what was gone by then is gone for all
constexpr Life kLives[] = {
    // of NCCL 1 and the first versions of 2
    {"NCCL_IB_CUDA_SUPPORT", 0, kOldest, "NCCL_NET_GDR_LEVEL"},
    {"NCCL_LL_THRESHOLD", 0, kOldest, "NCCL_PROTO"},
    {"NCCL_TREE_THRESHOLD", 0, kOldest, "NCCL_ALGO"},
    {"NCCL_SINGLE_RING_THRESHOLD", 0, kOldest, nullptr},
    {"NCCL_RINGS", 0, kOldest, "NCCL_GRAPH_FILE"},
    // gone since
    {"NCCL_AGG_CHANNEL_SIZE", 0, 20, nullptr},
    {"NCCL_MNNVL", 0, 21, "NCCL_MNNVL_ENABLE"},
    {"NCCL_WORK_FIFO_DEPTH", 0, 22, "NCCL_WORK_FIFO_BYTES"},
    {"NCCL_PROXY_PROFILE", 0, 23, nullptr},
    // not there before, and what they say matters
    {"NCCL_IB_ROCE_VERSION_NUM", 21, 0, "NCCL_IB_GID_INDEX"},
    {"NCCL_IB_ADDR_FAMILY", 21, 0, "NCCL_IB_GID_INDEX"},
    {"NCCL_IB_ADDR_RANGE", 21, 0, "NCCL_IB_GID_INDEX"},
    {"NCCL_CONF_FILE", 23, 0, nullptr},
    {"NCCL_OOB_NET_ENABLE", 23, 0, nullptr},
    {"NCCL_OOB_NET_IFNAME", 23, 0, nullptr},
    {"NCCL_SOCKET_RETRY_CNT", 24, 0, nullptr},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", 24, 0, nullptr},
};

// 28 of "2.28.9"; none of anything else.
std::optional<int> minor_of(const NodeFacts& node) {
  if (!node.nccl_library.known()) return std::nullopt;
  const std::string& version = node.nccl_library->version;
  int minor = 0;
  if (!version.starts_with("2.")) return std::nullopt;
  const auto [end, error] =
      std::from_chars(version.data() + 2, version.data() + version.size(), minor);
  return error == std::errc() ? std::optional(minor) : std::nullopt;
}

// AMD's RCCL reads some of them.
bool may_be_rccl(const NodeFacts& node) {
  return (node.gpu.known() &&
          std::ranges::any_of(node.gpu->gpus,
                              [](const Gpu& gpu) { return gpu.vendor == GpuVendor::amd; })) ||
         (node.software.known() && !node.software->torch_hip.empty());
}

bool unread(const Life& life, const NodeFacts& node) {
  if (may_be_rccl(node)) return false;
  if (life.gone == kOldest) return true;
  const auto minor = minor_of(node);
  return minor && ((life.gone != 0 && *minor >= life.gone) || *minor < life.first);
}

std::string reader(const InForce& row, const Life& life) {
  const NodeFacts& node = *row.places.front().node;
  const std::string version = minor_of(node) ? " " + node.nccl_library->version : "";
  if (life.gone != 0) return fmt::format("NCCL{} no longer reads it", version);
  return fmt::format("NCCL{} does not read it yet: 2.{} is the first that does", version,
                     life.first);
}

void judge_row(const Case& c, const Life& life, InForce row, Judge& judge) {
  std::erase_if(row.places, [&](const Place& place) { return !unread(life, *place.node); });
  if (row.places.empty() || row.value().empty()) return;
  const std::string instead =
      life.instead == nullptr ? "" : fmt::format("; {} is what it reads", life.instead);
  Finding finding{.code = "env-variable-dead",
                  .severity = Severity::notice,
                  .certainty = Certainty::likely,
                  .symptom = Symptom::slow,
                  .subjects = {.nodes = hosts_of(row.places)},
                  .summary = fmt::format("{} {} does nothing: {}{}", row.text(),
                                         where_text(c, row.places), reader(row, life), instead)};
  add_evidence(row, "a variable that this NCCL reads", finding);
  finding.fix = mend(c, row, std::nullopt, "it changes nothing");
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no) return;
  see_settings(c, judge);
  for (const Life& life : kLives) {
    for (InForce& row : in_force(c, life.name)) judge_row(c, life, std::move(row), judge);
  }
}

constexpr Page kPage{
    .meaning =
        "NCCL passes over names that it does not know without a word. This one is a variable of an "
        "older NCCL, or of a newer one, and not of the one that was found: whoever set it believes "
        "in an effect that it does not have.",
    .confirm =
        "With NCCL_DEBUG=INFO NCCL prints `NAME set by environment to ...` for what it reads, and "
        "nothing for this name.",
    .fix = "Take it out, or set what this NCCL reads in its place.",
    .verify = "NCCL_DEBUG=INFO prints `... set by environment to` for the new name."};
constexpr Code kCodes[] = {{.id = "env-variable-dead",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::notice,
                            .title = "A variable is not one of this NCCL's",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check env_variable_dead{
    .title = "This NCCL reads the variables that are set", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
