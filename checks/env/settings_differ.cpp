// NCCL variables that shape what goes over the wire have one value on all nodes.
#include <distdoctor/check.h>
#include <distdoctor/judge.h>
#include <distdoctor/setting_text.h>
#include <distdoctor/views.h>

#include "ranks.h"
#include "variables.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

using namespace env;  // NOLINT(google-build-using-namespace): the look-ups of this folder

// Read from NCCL's sources: what both ends of a connection, or all ranks of a collective, compute
// with. Interfaces, HCAs, GID indices and debug output may differ.
constexpr auto kMustAgree = std::to_array<const char*>({"NCCL_ALGO",
                                                        "NCCL_PROTO",
                                                        "NCCL_BUFFSIZE",
                                                        "NCCL_LL_BUFFSIZE",
                                                        "NCCL_LL128_BUFFSIZE",
                                                        "NCCL_CHUNK_SIZE",
                                                        "NCCL_MIN_NCHANNELS",
                                                        "NCCL_MAX_NCHANNELS",
                                                        "NCCL_MIN_NRINGS",
                                                        "NCCL_MAX_NRINGS",
                                                        "NCCL_MIN_CTAS",
                                                        "NCCL_MAX_CTAS",
                                                        "NCCL_MIN_P2P_NCHANNELS",
                                                        "NCCL_MAX_P2P_NCHANNELS",
                                                        "NCCL_NCHANNELS_PER_NET_PEER",
                                                        "NCCL_NVLS_NCHANNELS",
                                                        "NCCL_NTHREADS",
                                                        "NCCL_NET",
                                                        "NCCL_NET_PLUGIN",
                                                        "NCCL_IB_QPS_PER_CONNECTION",
                                                        "NCCL_IB_SPLIT_DATA_ON_QPS",
                                                        "NCCL_IB_MERGE_NICS",
                                                        "NCCL_IB_DATA_DIRECT",
                                                        "NCCL_IB_TC",
                                                        "NCCL_IB_SL",
                                                        "NCCL_COLLNET_ENABLE",
                                                        "NCCL_NVLS_ENABLE",
                                                        "NCCL_NVLS_CHUNKSIZE",
                                                        "NCCL_NVLSTREE_MAX_CHUNKSIZE",
                                                        "NCCL_MNNVL_ENABLE",
                                                        "NCCL_CUMEM_ENABLE",
                                                        "NCCL_PXN_DISABLE",
                                                        "NCCL_OOB_NET_ENABLE",
                                                        "NCCL_RAS_ENABLE",
                                                        "NCCL_P2P_NET_CHUNKSIZE",
                                                        "NCCL_P2P_NVL_CHUNKSIZE",
                                                        "NCCL_P2P_PCI_CHUNKSIZE",
                                                        "NCCL_P2P_LL_THRESHOLD",
                                                        "NCCL_RUNTIME_CONNECT",
                                                        "NCCL_SOCKET_NTHREADS",
                                                        "NCCL_NSOCKS_PERTHREAD",
                                                        "NCCL_SOCKET_INLINE",
                                                        "NCCL_SOCKET_MIN_TASKSIZE",
                                                        "NCCL_NET_SHARED_BUFFERS",
                                                        "NCCL_CROSS_NIC",
                                                        "NCCL_GRAPH_MIXING_SUPPORT"});
// What the ranks of one node agree on besides: how they reach each other there.
constexpr auto kInsideNode = std::to_array<const char*>(
    {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE", "NCCL_SHM_LOCALITY"});

// A node's value, and who says so. `value` none: nobody sets it there, so NCCL's default holds.
struct Said {
  const NodeFacts* node;
  std::optional<std::string> value;
  std::string origin;
  std::string command;
  // What NCCL makes of the value; none also where it does the same without it.
  std::optional<std::string> taken = {};
  bool rank = false;  // it is one rank's, not its node's
};

// Who runs: another job may have other settings, and one on a single node need agree with nobody.
struct Running {
  std::vector<Rank> job;  // the one on most nodes
  std::vector<Rank> all;

  [[nodiscard]] static const Rank* on(const std::vector<Rank>& ranks, const NodeFacts& node) {
    const auto found =
        std::ranges::find_if(ranks, [&](const Rank& rank) { return rank.node == &node; });
    return found == ranks.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool another_job_on(const NodeFacts& node) const {
    return !job.empty() && on(job, node) == nullptr && on(all, node) != nullptr;
  }
};

Running running_on(const ClusterFacts& cluster) {
  Running running;
  for (const NodeFacts& node : cluster.nodes) {
    if (node.processes.known()) add_ranks(cluster.nodes, node, running.all);
  }
  running.all = without_rests(running.all);
  for (const auto& [job, members] : jobs_of(running.all)) {
    std::map<std::string, std::vector<Rank>> by_meeting;
    for (const Rank& rank : members) by_meeting[rank.meeting()].push_back(rank);
    for (auto& [meeting, part] : by_meeting) {
      const std::size_t nodes = nodes_of(part).size();
      const bool one_node = nodes < 2 && complete(part);
      if (!one_node && nodes > nodes_of(running.job).size()) running.job = std::move(part);
    }
  }
  return running;
}

Said said_by(const Rank& rank, const std::string& name) {
  const TrainingProcess& process = *rank.process;
  const auto value = variable(process, name);
  return {.node = rank.node,
          .value = value,
          .origin = fmt::format("pid {}", process.pid),
          .command = fmt::format("tr '\\0' '\\n' < /proc/{}/environ | grep NCCL_", process.pid),
          .taken = value,
          .rank = true};
}

std::optional<Said> said_by_process(const std::vector<Rank>& job,
                                    const NodeFacts& node,
                                    const std::string& name) {
  const Rank* rank = Running::on(job, node);
  if (rank == nullptr) return std::nullopt;
  Said said = said_by(*rank, name);
  said.rank = false;
  return said;
}

// None where only a login shell says something: the job may have it there, or not.
std::optional<Said> said_on(const Case& c,
                            const Running& running,
                            const NodeFacts& node,
                            const std::string& name) {
  if (running.another_job_on(node)) return std::nullopt;
  const Prediction* prediction = find_prediction(c.cluster, node.host);
  const Setting* setting = prediction == nullptr ? nullptr : find_setting(*prediction, name);
  if (auto said = said_by_process(running.job, node, name); said && said->value) return said;
  if (prediction == nullptr || !node.settings.known()) return std::nullopt;
  if (setting != nullptr && setting->origin.source == Source::environment) return std::nullopt;
  Said said{.node = &node,
            .value = std::nullopt,
            .origin = "nowhere",
            .command = fmt::format("printenv {0}; grep {0} ~/.nccl.conf /etc/nccl.conf", name)};
  if (setting != nullptr) {
    said.value = setting->value;
    said.origin = origin_text(setting->origin);
  }
  return said;
}

// "0" and "false" are one number to NCCL, and its default is as good as unset.
Said as_nccl_reads(const Case& c, const std::string& name, Said said) {
  const Prediction* prediction = find_prediction(c.cluster, said.node->host);
  const Setting* setting = prediction == nullptr ? nullptr : find_setting(*prediction, name);
  const VariableReading* reading =
      prediction == nullptr ? nullptr : find_reading(*prediction, name);
  said.taken = said.value;
  if (reading == nullptr || setting == nullptr || setting->value != said.value) return said;
  said.taken = reading->as_default ? std::nullopt : std::optional(reading->taken_as);
  return said;
}

std::string shown(const Said& said) {
  if (!said.value) return "unset";
  return fmt::format("{} ({})", *said.value, said.origin);
}

Fix mend(const std::string& name, const std::optional<std::string>& wanted) {
  return {.node = "*",
          .kind = Fix::Kind::env,
          .env = {{name, wanted}},
          .text = "one value for all nodes; mend nccl.conf where it stands there"};
}

// Those of `all` that do not have what most have.
void report(const Case& c, const std::string& name, const std::vector<Said>& all, Judge& judge) {
  const auto usual = usual_value(all, &Said::taken);
  if (!usual) return;
  const auto odd = odd_ones_out(all, usual->value, &Said::taken);
  if (odd.empty()) return;
  const Said& typical = *std::ranges::find(all, usual->value, &Said::taken);
  const bool unset = std::ranges::any_of(all, [](const Said& said) { return !said.value; });
  const std::string wanted = typical.value.value_or("unset");
  Finding finding{
      .code = "env-settings-differ",
      .severity = c.cluster.job.nccl == Use::yes ? Severity::degraded : Severity::notice,
      // A program may set what its environment lacked at its start.
      .certainty = unset || !usual->clear ? Certainty::possible : Certainty::likely,
      .symptom = Symptom::hang,
      .summary =
          fmt::format("{} differs: {} of {} {} {}", name, odd.size(), all.size(),
                      all.front().rank ? "ranks" : "nodes",
                      typical.value ? "do not have " + wanted : "set it, where most do not")};
  for (const Said& said : odd) {
    auto& nodes = finding.subjects.nodes;
    if (nodes.empty() || nodes.back() != said.node->host) nodes.push_back(said.node->host);
    finding.evidence.push_back({.node = said.node->host,
                                .fact = name,
                                .observed = shown(said),
                                .expected = wanted,
                                .context = std::string(slug(said.node->context)),
                                .command = said.command});
  }
  finding.fix = {mend(name, typical.value)};
  judge.report(std::move(finding));
}

void judge_nodes(const Case& c, const Running& running, const std::string& name, Judge& judge) {
  std::vector<Said> all;
  for (const NodeFacts& node : c.cluster.nodes) {
    if (auto said = said_on(c, running, node, name)) {
      all.push_back(as_nccl_reads(c, name, *std::move(said)));
    }
  }
  report(c, name, all, judge);
}

// Ranks of one node whose own environments differ.
void judge_ranks(const Case& c,
                 const Running& running,
                 const NodeFacts& node,
                 const std::string& name,
                 Judge& judge) {
  std::vector<Said> all;
  for (const Rank& rank : running.job) {
    if (rank.node == &node) all.push_back(said_by(rank, name));
  }
  report(c, name, all, judge);
}

void run(const Case& c, Judge& judge) {
  if (c.cluster.job.nccl == Use::no || c.cluster.nodes.size() < 2) return;
  for (const NodeFacts& node : c.cluster.nodes) judge.see(node, "settings", node.settings);
  const Running running = running_on(c.cluster);
  for (const char* name : kMustAgree) judge_nodes(c, running, name, judge);
  for (const NodeFacts& node : c.cluster.nodes) {
    for (const char* name : kMustAgree) judge_ranks(c, running, node, name, judge);
    for (const char* name : kInsideNode) judge_ranks(c, running, node, name, judge);
  }
}

constexpr Page kPage{
    .meaning =
        "A variable that both ends of a connection compute with has different values. NCCL "
        "does not compare them: the ranks expect messages of other sizes, on other channels "
        "or transports, and hang, fail with `message truncated`, or give wrong results.",
    .confirm = "`env | grep NCCL_; cat ~/.nccl.conf /etc/nccl.conf` in the job, on every node.",
    .fix = "Set one value on all nodes, or none; a line in one node's /etc/nccl.conf counts too.",
    .verify = "The same commands print the same lines everywhere."};
constexpr std::string_view kCauses[] = {"collective-hang"};
constexpr Code kCodes[] = {{.id = "env-settings-differ",
                            .fault_class = FaultClass::nccl_env_mismatch,
                            .worst = Severity::degraded,
                            .title = "NCCL settings that must agree differ",
                            .causes = kCauses,
                            .page = kPage}};

}  // namespace

extern const Check env_settings_differ{
    .title = "NCCL settings agree on all nodes", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
