// All ranks must name one MASTER_PORT, which is a port, and one MASTER_ADDR.
#include <distdoctor/check.h>

#include "mend.h"

#include <charconv>
#include <map>
#include <utility>

namespace distdoctor::checks {
namespace {

// --- a port that is none ---

// As Python's int() reads it: blanks around it are dropped.
std::optional<int> number_in(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_a_port(std::string_view text) {
  const auto value = number_in(text);
  return value && *value > 0 && *value < 65536;  // 0 is one that nobody else can know
}

// The port of "host:port"; empty for the default, and for a bare IPv6 address.
std::string_view endpoint_port(std::string_view endpoint) {
  const auto colon = endpoint.rfind(':');
  const bool bare_v6 = colon != std::string_view::npos && endpoint.find(':') != colon &&
                       endpoint.find(']') == std::string_view::npos;
  if (colon == std::string_view::npos || bare_v6 || endpoint.ends_with(']')) return {};
  return endpoint.substr(colon + 1);
}

struct Said {
  std::string where;  // "MASTER_PORT", "--master_port"
  std::string value;
  std::string origin;
  std::string command;
};

std::vector<Said> ports_said(const JobSpec& job) {
  std::vector<Said> all;
  const auto setting = job.settings.find("MASTER_PORT");
  if (setting != job.settings.end() && is_the_jobs_own(setting->second.origin.source)) {
    all.push_back({"MASTER_PORT", setting->second.value, origin_text(setting->second.origin),
                   setting_command("MASTER_PORT", setting->second)});
  }
  for (const Launch& launch : job.launches) {
    if (for_one_node(launch)) continue;  // port 0 is the documented way there
    const std::string origin = origin_text(launch.origin);
    const std::string command = launch_command(launch);
    if (!launch.master_port.empty()) {
      all.push_back({"--master_port", launch.master_port, origin, command});
    }
    const auto port = endpoint_port(launch.rdzv_endpoint);
    if (!port.empty()) all.push_back({"--rdzv_endpoint", std::string(port), origin, command});
  }
  return all;
}

void judge_invalid(const Case& c, Judge& judge) {
  const auto said = ports_said(c.cluster.job);
  const auto bad = std::ranges::find_if(said, [](const Said& row) {
    return !is_a_port(row.value) && !only_the_jobs_shell_knows(row.value);
  });
  if (bad == said.end()) return;
  const NodeFacts& first = c.cluster.nodes.front();
  const auto port = free_port(first, 29499);
  Finding finding = blocker("rendezvous-port-invalid",
                            fmt::format("{} is \"{}\", which is no port", bad->where, bad->value));
  finding.symptom = Symptom::crash;
  finding.evidence.push_back({.node = first.host,
                              .fact = bad->where,
                              .observed = fmt::format("{} ({})", bad->value, bad->origin),
                              .expected = "a number from 1 to 65535",
                              .command = bad->command});
  finding.fix.push_back(set_master(c, "*", "MASTER_PORT", fmt::to_string(port.value_or(29500)),
                                   "one port for all nodes; 29500 is customary"));
  judge.report(std::move(finding));
}

// --- ranks that name different masters ---

// A process that joins a job: a rank by its environment, or a running torchrun by its flags.
struct Member {
  const NodeFacts* node;
  std::string who;  // "pid 4711"
  int pid;          // of a rank; 0 for a torchrun
  double age_s;     // likewise
  std::string job;  // what members of one job have in common, but for the master
  int index;        // rank or node rank
  int size;
  std::string addr;
  std::string port;
};

std::optional<Member> rank_member(const NodeFacts& node, const TrainingProcess& process) {
  const auto rank = number_in(variable(process, "RANK").value_or(""));
  const auto size = number_in(variable(process, "WORLD_SIZE").value_or(""));
  const auto addr = variable(process, "MASTER_ADDR");
  const auto port = variable(process, "MASTER_PORT");
  const bool worker = process.role == ProcessRole::worker && process.our_network;
  if (!worker || !rank || !size || !addr || !port) return std::nullopt;
  return Member{.node = &node,
                .who = fmt::format("pid {} (rank {})", process.pid, *rank),
                .pid = process.pid,
                .age_s = process.age_s,
                .job = fmt::format("{} ranks of {} {}", *size, process.user,
                                   variable(process, "TORCHELASTIC_RUN_ID").value_or("")),
                .index = *rank,
                .size = *size,
                .addr = *addr,
                .port = *port};
}

std::optional<Member> torchrun_member(const Case& c, const Launch& launch) {
  const NodeFacts* node = find_node(c.cluster, launch.origin.node);
  const bool fixed_master = is_torchrun(launch) && launch.origin.source == Source::process &&
                            !for_one_node(launch) && launch.rdzv_endpoint.empty() &&
                            !launch.master_addr.empty();
  if (node == nullptr || !fixed_master || !launch.node_rank || !launch.nnodes_max) {
    return std::nullopt;
  }
  return Member{
      .node = node,
      .who = fmt::format("torchrun, {} (node rank {})", launch.origin.where, *launch.node_rank),
      .pid = 0,
      .age_s = 0,
      .job = fmt::format("{} nodes {}", *launch.nnodes_max, launch.script),
      .index = *launch.node_rank,
      .size = *launch.nnodes_max,
      .addr = launch.master_addr,
      .port = launch.master_port.empty() ? "29500" : launch.master_port};
}

std::map<std::string, std::vector<Member>> members_by_job(const Case& c, Judge& judge) {
  std::map<std::string, std::vector<Member>> jobs;
  const auto add = [&](std::optional<Member> member) {
    if (member) jobs[member->job].push_back(*std::move(member));
  };
  for (const NodeFacts& node : c.cluster.nodes) {
    const auto* processes = judge.see(node, "processes", node.processes);
    if (processes == nullptr) continue;
    for (const TrainingProcess& process : *processes) add(rank_member(node, process));
  }
  for (const Launch& launch : c.cluster.job.launches) add(torchrun_member(c, launch));
  return jobs;
}

using Parts = std::map<std::string, std::vector<Member>>;  // by what they name

std::set<int> indices_of(const std::vector<Member>& members) {
  std::set<int> indices;
  for (const Member& member : members) indices.insert(member.index);
  return indices;
}

// A part with every rank is a healthy job of its own.
void drop_complete(Parts& parts) {
  std::erase_if(parts, [](const auto& part) {
    return std::ssize(indices_of(part.second)) >= part.second.front().size;
  });
}

// Parts that lack each other's ranks and were started together are one job, torn apart; parts with
// a rank in common are two jobs.
bool belong_together(const Parts& parts) {
  std::size_t members = 0;
  std::set<int> indices;
  double oldest = 0;
  double youngest = 0;
  for (const auto& [label, part] : parts) {
    const auto own = indices_of(part);
    members += own.size();
    indices.insert(own.begin(), own.end());
    const double age = std::ranges::max(part, {}, &Member::age_s).age_s;
    oldest = std::max(oldest, age);
    youngest = indices.size() == own.size() ? age : std::min(youngest, age);
  }
  return parts.size() > 1 && members == indices.size() && oldest - youngest < 600;
}

struct Torn {
  Member right;
  std::vector<Member> wrong;
};

Torn tear(const Parts& parts, const std::string& right) {
  Torn torn{.right = parts.at(right).front(), .wrong = {}};
  for (const auto& [label, part] : parts) {
    if (label != right) std::ranges::copy(part, std::back_inserter(torn.wrong));
  }
  std::ranges::stable_sort(torn.wrong, {}, &Member::index);
  return torn;
}

// The part of rank 0, else the largest.
std::string part_of_rank_zero(const Parts& parts) {
  const auto with_zero = std::ranges::find_if(
      parts, [](const auto& part) { return indices_of(part.second).contains(0); });
  if (with_zero != parts.end()) return with_zero->first;
  return std::ranges::max_element(parts, {}, [](const auto& part) { return part.second.size(); })
      ->first;
}

void accuse(const Case& c, const Torn& torn, const std::string& setting, Finding& finding) {
  const bool addr = setting == "MASTER_ADDR";
  const std::string& wanted = addr ? torn.right.addr : torn.right.port;
  for (const Member& member : torn.wrong) {
    finding.evidence.push_back(
        {.node = member.node->host,
         .fact = setting + " of " + member.who,
         .observed = addr ? member.addr : member.port,
         .expected =
             fmt::format("{}, as {} on {} has it", wanted, torn.right.who, torn.right.node->host),
         .command = member.pid == 0 ? "pgrep -af torchrun" : environ_command(member.pid, setting)});
    auto& nodes = finding.subjects.nodes;
    if (std::ranges::find(nodes, member.node->host) != nodes.end()) continue;
    nodes.push_back(member.node->host);
    finding.fix.push_back(set_master(c, member.node->host, setting, wanted, "what the others use"));
  }
}

void judge_port(const Case& c, const std::vector<Member>& members, Judge& judge) {
  Parts parts;
  for (const Member& member : members) parts[member.port].push_back(member);
  drop_complete(parts);
  if (!belong_together(parts)) return;
  const Torn torn = tear(parts, part_of_rank_zero(parts));
  Finding finding =
      blocker("rendezvous-port-differs",
              fmt::format("the ranks of one job do not all name MASTER_PORT {}", torn.right.port));
  accuse(c, torn, "MASTER_PORT", finding);
  judge.report(std::move(finding));
}

// Where a member's MASTER_ADDR leads: rank 0's node when it may, for that is where it should.
std::optional<std::string> aim(const Case& c,
                               const Member& member,
                               const std::string& zero,
                               Judge& judge) {
  const auto ends = places(c.cluster, view_from(*member.node, member.addr, judge));
  if (ends.empty()) return std::nullopt;
  return ends.contains(zero) ? zero : *ends.begin();
}

void judge_addr(const Case& c, const std::vector<Member>& members, Judge& judge) {
  const auto zero = std::ranges::find(members, 0, &Member::index);
  const bool one_text = std::ranges::all_of(
      members, [&](const Member& member) { return member.addr == members.front().addr; });
  if (zero == members.end() || one_text) return;
  Parts parts;
  for (const Member& member : members) {
    const auto end = aim(c, member, zero->node->host, judge);
    if (!end) return;
    parts[*end].push_back(member);
  }
  drop_complete(parts);
  if (!belong_together(parts) || !parts.contains(zero->node->host)) return;
  const Torn torn = tear(parts, zero->node->host);
  Finding finding = blocker(
      "rendezvous-addr-differs",
      fmt::format("the ranks of one job name different machines as MASTER_ADDR; rank 0 is on {}",
                  zero->node->host));
  accuse(c, torn, "MASTER_ADDR", finding);
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  if (!meets_others(c)) return;
  judge_invalid(c, judge);
  for (const auto& [job, members] : members_by_job(c, judge)) {
    judge_port(c, members, judge);
    judge_addr(c, members, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kInvalidCauses[] = {"rendezvous-not-up"};
constexpr std::string_view kPortCauses[] = {"rendezvous-not-up", "rendezvous-port-rejected",
                                            "rendezvous-port-dropped", "env-rank-missing"};
constexpr std::string_view kAddrCauses[] = {
    "rendezvous-addr-other-node",  "rendezvous-addr-split",    "rendezvous-not-up",
    "rendezvous-port-dropped",     "rendezvous-port-rejected", "rendezvous-port-unreachable",
    "rendezvous-addr-unresolvable"};

constexpr Page kInvalidPage{
    .meaning =
        "MASTER_PORT cannot be a TCP port, so that the job stops at once (`port must have "
        "value from 0 to 65535`), or is 0, which picks a port that nobody else knows.",
    .confirm = "`printenv MASTER_PORT` in the job's own shell.",
    .fix = "Set one number from 1024 to 65535 that is free on rank 0's node: 29500 is customary.",
    .verify = "`printenv MASTER_PORT` prints that number on every node."};
constexpr Page kPortPage{
    .meaning =
        "Ranks of one job ask at different ports. Rank 0 listens at its own and waits; the "
        "others are refused until their time-out.",
    .confirm = "`tr '\\0' '\\n' < /proc/PID/environ | grep MASTER_PORT` for a rank on each node.",
    .fix = "Set the same MASTER_PORT on all nodes and start the job again.",
    .verify = "`ss -tn dport = :MASTER_PORT` on every node shows a connection to rank 0."};
constexpr Page kAddrPage{
    .meaning = "Ranks of one job ask different machines for the store; only rank 0's node has it.",
    .confirm = "`tr '\\0' '\\n' < /proc/PID/environ | grep MASTER_ADDR` for a rank on each node.",
    .fix = "Set the same MASTER_ADDR, rank 0's node, everywhere and start the job again.",
    .verify = "`ss -tn dport = :MASTER_PORT` on every node shows a connection to rank 0."};

constexpr Code kCodes[] = {
    {.id = "rendezvous-port-invalid",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "MASTER_PORT is no port",
     .causes = kInvalidCauses,
     .page = kInvalidPage},
    {.id = "rendezvous-port-differs",
     .fault_class = FaultClass::rank_misconfig,
     .worst = Severity::blocker,
     .title = "MASTER_PORT differs between ranks",
     .causes = kPortCauses,
     .page = kPortPage},
    {.id = "rendezvous-addr-differs",
     .fault_class = FaultClass::master_addr_wrong,
     .worst = Severity::blocker,
     .title = "MASTER_ADDR differs between ranks",
     .causes = kAddrCauses,
     .page = kAddrPage},
};

}  // namespace

extern const Check rendezvous_master_port{
    .title = "All ranks name one master", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
