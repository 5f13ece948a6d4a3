// A process may open as many files as its part in the job needs sockets.
#include <distdoctor/workers.h>

#include "seen.h"

#include <algorithm>
#include <limits>

namespace distdoctor::checks {
namespace {

using namespace host;  // NOLINT(google-build-using-namespace): what these checks share

// --- what a process opens ---

// Python with torch and CUDA, before any socket: libraries are closed again, devices stay open.
constexpr std::int64_t kOwn = 64;
// Over sockets NCCL makes two channels at least, each with one way in and one way out in its ring
// (graph/search.cc, transport/net_socket.cc of 2.28).
constexpr std::int64_t kChannels = 2;
constexpr std::int64_t kWays = 2;
constexpr std::int64_t kMostSockets = 64;  // MAX_SOCKETS of net_socket.cc
constexpr std::int64_t kMostRanks = 1 << 20;

std::optional<std::int64_t> setting_of(const Case& c, const NodeFacts& node, const char* name) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const Setting* setting = prediction == nullptr ? nullptr : find_setting(*prediction, name);
  const auto value = setting == nullptr ? std::nullopt : number(setting->value);
  return value && *value > 0 ? std::optional<std::int64_t>(*value) : std::nullopt;
}

// Of one connection: its data sockets, by the variables or by what NCCL picks on these clouds
// (ncclNetSocketGetNsockNthread), and one for control.
std::int64_t sockets_of(const Case& c, const NodeFacts& node) {
  const std::string cloud = node.world.known() ? node.world->cloud : "";
  const std::int64_t threads = cloud == "aws" ? 2 : cloud == "gcp" ? 4 : 1;
  const std::int64_t each = cloud == "aws" ? 8 : 1;
  const auto data = setting_of(c, node, "NCCL_SOCKET_NTHREADS").value_or(threads) *
                    setting_of(c, node, "NCCL_NSOCKS_PERTHREAD").value_or(each);
  return 1 + std::min(data, kMostSockets);
}

// At least; what nobody said counts as one rank a node.
std::int64_t ranks_of(const Case& c) {
  const auto nodes = static_cast<std::int64_t>(c.cluster.nodes.size());
  std::int64_t ranks = nodes * std::max(1, c.cluster.job.ranks_per_node.value_or(1));
  const auto world = c.cluster.job.settings.find("WORLD_SIZE");
  if (world != c.cluster.job.settings.end() && is_the_jobs_own(world->second.origin.source)) {
    ranks = std::max<std::int64_t>(ranks, number(world->second.value).value_or(0));
  }
  return std::min(ranks, kMostRanks);
}

struct Need {
  std::int64_t files = 0;
  std::string what = {};
};

bool uses_sockets(const Case& c, const NodeFacts& node) {
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  return c.cluster.job.nccl == Use::yes && node.devices.known() && prediction != nullptr &&
         !rdma_carries_data(node, prediction->settings);
}

// The process that has the store takes a connection of each rank (TCPStore's clients stay).
Need store_need(const Case& c, const NodeFacts& node) {
  const auto& master = c.cluster.predicted.master;
  if (!master || master->node != node.host) return {};
  const auto ranks = ranks_of(c);
  return {kOwn + ranks, fmt::format("the store at MASTER_PORT, which keeps a connection of each of "
                                    "{} ranks,",
                                    ranks)};
}

// A rank whose neighbours in the ring are on other nodes.
Need ring_need(const Case& c, const NodeFacts& node) {
  if (!uses_sockets(c, node)) return {};
  const auto channels = std::max(setting_of(c, node, "NCCL_MIN_NCHANNELS").value_or(kChannels),
                                 setting_of(c, node, "NCCL_MIN_CTAS").value_or(kChannels));
  return {kOwn + channels * kWays * sockets_of(c, node),
          fmt::format("a rank with {} channels of {} sockets to each of two neighbours", channels,
                      sockets_of(c, node))};
}

// Only an all-to-all, or send and receive with everybody, takes that.
Need everybody_need(const Case& c, const NodeFacts& node) {
  if (!uses_sockets(c, node)) return {};
  const auto others = ranks_of(c) - c.cluster.job.ranks_per_node.value_or(1);
  return {kOwn + others * kWays * sockets_of(c, node),
          fmt::format("an all-to-all over sockets with {} ranks of other nodes", others)};
}

// --- findings ---

Fix raise(const NodeFacts& node, const Limit& limit, std::int64_t need) {
  const std::string container = container_of(node);
  if (!limit.hard || *limit.hard >= need) {
    return by_hand(node, fmt::format("run `ulimit -n {}` in the shell or script that starts the "
                                     "job; no root is needed for that",
                                     limit.hard ? fmt::to_string(*limit.hard) : "1048576"));
  }
  if (container == "kubernetes") {
    return by_hand(node, "raise LimitNOFILE of the node's container runtime (containerd, crio)");
  }
  if (!container.empty()) {
    return by_hand(node, "start the container with --ulimit nofile=1048576:1048576");
  }
  if (node.context == Context::slurm_step) {
    return by_hand(node,
                   "LimitNOFILE=1048576 in slurmd's unit, and PropagateResourceLimitsExcept=NOFILE "
                   "in slurm.conf");
  }
  return {.node = node.host,
          .kind = Fix::Kind::shell,
          .command =
              "printf '* soft nofile 1048576\\n* hard nofile 1048576\\n' > "
              "/etc/security/limits.d/99-distdoctor-nofile.conf",
          .text =
              "as root, for logins from then on; a service needs LimitNOFILE=1048576 in its "
              "unit instead"};
}

void report(const NodeFacts& node, const Limit& limit, const Need& need, bool sure, Judge& judge) {
  const std::int64_t soft = limit.soft.value_or(0);
  Finding finding{
      .code = "host-nofile",
      .severity = capped_by_context(sure ? Severity::blocker : Severity::notice, node.context),
      .certainty = sure ? Certainty::likely : Certainty::possible,
      .symptom = Symptom::crash,
      .subjects = {.nodes = {node.host}},
      .summary = fmt::format("a process on {} may open {} files{}, but {} takes {}", node.host,
                             soft, from_here(node), need.what, need.files)};
  const std::string hard = limit.hard ? fmt::to_string(*limit.hard) : "unlimited";
  finding.evidence = {seen(node, "limits.nofile", fmt::format("{} (hard limit: {})", soft, hard),
                           fmt::format("{} or more", need.files), "ulimit -Sn; ulimit -Hn")};
  finding.fix = {raise(node, limit, need.files)};
  judge.report(std::move(finding));
}

void judge_node(const Case& c, const NodeFacts& node, const Limit& limit, Judge& judge) {
  const std::int64_t soft = limit.soft.value_or(std::numeric_limits<std::int64_t>::max());
  const Need store = store_need(c, node);
  const Need ring = ring_need(c, node);
  const Need& sure = store.files > ring.files ? store : ring;
  const Need everybody = everybody_need(c, node);
  if (soft < sure.files) {
    report(node, limit, sure, true, judge);
  } else if (soft < everybody.files) {
    report(node, limit, everybody, false, judge);
  }
}

void run(const Case& c, Judge& judge) {
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* limits = judge.see(node, "limits", node.limits);
    if (limits == nullptr || c.cluster.nodes.size() < 2) continue;
    const auto nofile = limits->find("nofile");
    if (nofile != limits->end()) judge_node(c, node, nofile->second, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "Each connection is an open file. The store at MASTER_PORT keeps one of each rank; NCCL "
        "over sockets opens, for each channel and each neighbour, NCCL_SOCKET_NTHREADS x "
        "NCCL_NSOCKS_PERTHREAD and one more. Beyond the limit `accept` and `socket` fail: `Too "
        "many open files`. NCCL raises the soft limit to the hard one in rank 0's process alone.",
    .confirm =
        "`ulimit -Sn; ulimit -Hn` inside the job; `ls /proc/PID/fd | wc -l` for a rank that runs; "
        "`grep 'open files' /proc/PID/limits`.",
    .fix =
        "`ulimit -n 1048576` before the launch, as far as the hard limit allows. Docker: `--ulimit "
        "nofile=1048576:1048576`. Slurm: LimitNOFILE for slurmd. Many sockets for each peer: unset "
        "NCCL_NSOCKS_PERTHREAD and NCCL_SOCKET_NTHREADS.",
    .verify = "`ulimit -n` inside the job prints the new limit."};
constexpr Code kCodes[] = {{.id = "host-nofile",
                            .fault_class = FaultClass::nofile,
                            .worst = Severity::blocker,
                            .title = "Too few files may be open for the size of the job",
                            .causes = {},
                            .page = kPage}};

}  // namespace

extern const Check host_nofile{
    .title = "Enough files may be open for the job's size", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
