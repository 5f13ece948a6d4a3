// The job must say where rank 0 is, and at which port.
#include <distdoctor/check.h>

#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

bool said_anywhere(const JobSpec& job, const std::string& name) {
  return job.settings.contains(name) || job.unresolved.contains(name);
}

bool leaves_it_to_the_default(const JobSpec& job, const Launch& launch) {
  return is_torchrun(launch) && is_the_jobs_own(launch.origin.source) && launch.nnodes_max > 1 &&
         launch.master_addr.empty() && launch.rdzv_endpoint.empty() &&
         !said_anywhere(job, "PET_MASTER_ADDR") && !said_anywhere(job, "PET_RDZV_ENDPOINT");
}

Finding missing(const Case& c, std::string summary, Evidence row) {
  Finding finding = blocker("rendezvous-addr-missing", std::move(summary));
  finding.certainty = Certainty::likely;
  finding.evidence.push_back(std::move(row));
  const NodeFacts& first = c.cluster.nodes.front();
  const auto zero = rank_zero(c);
  const NodeFacts& node = zero ? *zero->node : first;
  const auto address = address_for_peers(c.cluster, node);
  finding.fix.push_back(
      set_master(c, "*", "MASTER_ADDR", address ? address->text() : node.host,
                 zero ? "rank 0 is there" : "provided that rank 0 runs on " + node.host));
  return finding;
}

void judge_torchrun_defaults(const Case& c, Judge& judge) {
  const JobSpec& job = c.cluster.job;
  const auto launch = std::ranges::find_if(
      job.launches, [&](const Launch& row) { return leaves_it_to_the_default(job, row); });
  if (launch == job.launches.end()) return;
  const NodeFacts* node = find_node(c.cluster, launch->origin.node);
  judge.report(missing(
      c,
      fmt::format("torchrun for {} nodes got neither --master_addr nor --rdzv_endpoint: each node "
                  "takes its default, itself{}",
                  launch->nnodes_max.value_or(0),
                  said_anywhere(job, "MASTER_ADDR") ? " (it ignores MASTER_ADDR)" : ""),
      {.node = node == nullptr ? c.cluster.nodes.front().host : node->host,
       .fact = "torchrun.master_addr",
       .observed = fmt::format("not given ({})", origin_text(launch->origin)),
       .expected = "an address of rank 0's node",
       .command = launch_command(*launch)}));
}

bool sets_its_own_master(const Launch& launch) {
  return launch.kind != LauncherKind::none && launch.kind != LauncherKind::python &&
         launch.kind != LauncherKind::script && launch.kind != LauncherKind::srun;
}

// The job's own command line says RANK and WORLD_SIZE, as `init_method="env://"` wants them.
bool numbered_by_hand(const JobSpec& job) {
  const auto rank = job.rank_settings.find("RANK");
  return rank != job.rank_settings.end() && rank->second.origin.source == Source::command_line &&
         job.settings.contains("WORLD_SIZE") &&
         std::ranges::none_of(job.launches, sets_its_own_master);
}

void judge_forgotten_addr(const Case& c, Judge& judge) {
  const JobSpec& job = c.cluster.job;
  if (!numbered_by_hand(job) || said_anywhere(job, "MASTER_ADDR")) return;
  const Setting& rank = job.rank_settings.at("RANK");
  judge.report(missing(c, "RANK and WORLD_SIZE are set, MASTER_ADDR is not",
                       {.node = c.cluster.nodes.front().host,
                        .fact = "MASTER_ADDR",
                        .observed = "not set beside RANK=" + setting_text(rank),
                        .expected = "an address of rank 0's node",
                        .command = setting_command("MASTER_ADDR", rank)}));
}

// torchrun and its kin have a default port, and a worker that Lightning starts chooses one itself:
// only a job that numbers its ranks by hand needs MASTER_PORT said.
void judge_forgotten_port(const Case& c, Judge& judge) {
  const JobSpec& job = c.cluster.job;
  const auto addr = job.settings.find("MASTER_ADDR");
  if (!numbered_by_hand(job) || addr == job.settings.end() || said_anywhere(job, "MASTER_PORT")) {
    return;
  }
  const NodeFacts& first = c.cluster.nodes.front();
  const Master* master = master_of(c);
  const NodeFacts* node = master == nullptr ? nullptr : find_node(c.cluster, master->node);
  const auto port = free_port(node == nullptr ? first : *node, 29499);
  Finding finding = blocker("rendezvous-port-missing",
                            "MASTER_ADDR, RANK and WORLD_SIZE are set, MASTER_PORT is not");
  finding.certainty = Certainty::likely;
  finding.symptom = Symptom::crash;
  finding.evidence.push_back(
      {.node = first.host,
       .fact = "MASTER_PORT",
       .observed = "not set beside MASTER_ADDR=" + setting_text(addr->second),
       .expected = "one port for all nodes",
       .command = setting_command("MASTER_PORT", addr->second)});
  finding.fix.push_back(set_master(c, "*", "MASTER_PORT", fmt::to_string(port.value_or(29500)),
                                   port ? "free on the master" : "the customary port"));
  judge.report(std::move(finding));
}

bool nothing_said(const Case& c) {
  const JobSpec& job = c.cluster.job;
  return master_of(c) == nullptr && job.launches.empty() && !numbered_by_hand(job) &&
         !said_anywhere(job, "MASTER_ADDR");
}

void run(const Case& c, Judge& judge) {
  if (!meets_others(c)) return;
  if (nothing_said(c)) return note_unsaid(c, judge);
  judge_torchrun_defaults(c, judge);
  judge_forgotten_addr(c, judge);
  judge_forgotten_port(c, judge);
}

constexpr std::string_view kMissing[] = {"rendezvous-addr-loopback", "rendezvous-port-missing",
                                         "rendezvous-not-up"};

constexpr Page kMissingPage{
    .meaning =
        "Nothing tells the ranks where to meet. torchrun takes neither MASTER_ADDR nor MASTER_PORT "
        "from its environment: without --master_addr or --rdzv_endpoint each node becomes a "
        "master of its own at 127.0.0.1. A script with `init_method=\"env://\"` stops with "
        "`environment variable MASTER_ADDR expected, but not set`.",
    .confirm =
        "`printenv MASTER_ADDR` in the job's own shell; torchrun's flags in the launch line.",
    .fix =
        "Give the address of the node of rank 0: `torchrun --master_addr HOST ...`, or export "
        "MASTER_ADDR where a script reads it.",
    .verify = "`distdoctor check --peers ... -- LAUNCH LINE` names one master for all nodes."};
constexpr Page kPortPage{
    .meaning =
        "A script with `init_method=\"env://\"` reads MASTER_PORT and stops without it: "
        "`environment variable MASTER_PORT expected, but not set`.",
    .confirm = "`printenv MASTER_PORT` in the job's own shell, on every node.",
    .fix = "Export one free port, the same on all nodes: 29500 is customary.",
    .verify = "`printenv MASTER_PORT` prints the same number on every node."};
constexpr std::string_view kPortCauses[] = {"rendezvous-not-up"};

constexpr Code kCodes[] = {
    {.id = "rendezvous-addr-missing",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "Nothing says where rank 0 is",
     .causes = kMissing,
     .page = kMissingPage},
    {.id = "rendezvous-port-missing",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "Nothing says at which port to meet",
     .causes = kPortCauses,
     .page = kPortPage},
};

}  // namespace

extern const Check rendezvous_master_missing{
    .title = "The job says where rank 0 is and at which port", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
