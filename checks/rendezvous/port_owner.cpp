// MASTER_PORT on the master must be free, or rank 0's (torchrun's agent's) own.
#include <distdoctor/ages.h>
#include <distdoctor/check.h>

#include "mend.h"

#include <utility>

namespace distdoctor::checks {
namespace {

struct Place {
  const NodeFacts& node;  // the master
  const SocketFacts& sockets;
  std::uint16_t port;
};

std::string owner_text(const std::optional<Owner>& owner) {
  if (!owner) return "a process that this user may not see";
  return fmt::format("pid {}, {} (user {}, for {})", owner->pid, owner->command, owner->user,
                     age_text(owner->age_s));
}

// --- whose is it? ---

enum class Whose : std::uint8_t { the_jobs, left_over, a_store, strange, hidden };

const TrainingProcess* process_of(const NodeFacts& node, const Owner& owner) {
  if (!node.processes.known()) return nullptr;
  const auto found = std::ranges::find(*node.processes, owner.pid, &TrainingProcess::pid);
  return found == node.processes->end() ? nullptr : &*found;
}

// A rank other than 0 may hold the port by chance: as one of its own, of another job.
bool may_be_rank_zero(const TrainingProcess& process) {
  return process.role == ProcessRole::agent || variable(process, "RANK").value_or("0") == "0";
}

bool is_ourselves(const Owner& owner) {
  const auto program = owner.command.substr(0, owner.command.find(' '));
  return program == "distdoctor" || program.ends_with("/distdoctor");
}

// A script that starts its ranks itself (mp.spawn, Lightning) sets RANK too late for us to see it.
// Its store betrays it: who opens a TCPStore is its own first client (TCPStore.cpp, 1.13 to 2.x).
bool is_a_store(const Place& place, const Owner& owner) {
  const bool spawned = owner.command.find("--multiprocessing-fork") != std::string::npos;
  const bool own_client =
      std::ranges::any_of(place.sockets.connections, [&](const Connection& row) {
        return row.remote_port == place.port && row.state == TcpState::established &&
               row.owner.has_value() && row.owner->pid == owner.pid;
      });
  const bool may_be = place.sockets.truncated && owner.command.find("python") != std::string::npos;
  return spawned || own_client || may_be;
}

Whose whose(const Case& c, const Place& place, const std::optional<Owner>& owner) {
  if (!owner) return Whose::hidden;
  if (is_ourselves(*owner)) return Whose::the_jobs;
  const TrainingProcess* process = process_of(place.node, *owner);
  if (process == nullptr) return is_a_store(place, *owner) ? Whose::a_store : Whose::strange;
  if (!may_be_rank_zero(*process)) return Whose::strange;
  const bool rest = process->role == ProcessRole::worker && left_over(c, {&place.node, process});
  return rest ? Whose::left_over : Whose::the_jobs;
}

// Somebody elsewhere talks with it.
bool has_clients(const Place& place) {
  return std::ranges::any_of(place.sockets.connections, [&](const Connection& row) {
    return row.local_port == place.port && row.state == TcpState::established &&
           !row.remote.loopback() && !has_address(place.node, row.remote);
  });
}

// An owner that we may not see is taken for the job's own while the job, or somebody's, lives
// there.
bool in_good_use(const Case& c, const Place& place) {
  const bool ranks_there = std::ranges::any_of(
      ranks_of_the_job(c), [&](const Rank& rank) { return rank.node == &place.node; });
  return ranks_there || place.sockets.truncated || has_clients(place);
}

// --- findings ---

Finding about(const Place& place, std::string code, std::string summary) {
  Finding finding = blocker(std::move(code), std::move(summary));
  finding.symptom = Symptom::crash;
  finding.subjects.nodes = {place.node.host};
  return finding;
}

Evidence holder(const Place& place, const std::string& observed) {
  return {.node = place.node.host,
          .fact = fmt::format("port {}", place.port),
          .observed = observed,
          .expected = "free, or rank 0's own",
          .command = fmt::format("ss -ltnp sport = :{}", place.port)};
}

Fix another_port(const Case& c, const Place& place) {
  const auto port = free_port(place.node, place.port);
  if (port) {
    return set_master(c, "*", "MASTER_PORT", fmt::to_string(*port),
                      fmt::format("nobody holds it on {}", place.node.host));
  }
  return {.node = "*",
          .kind = Fix::Kind::manual,
          .text = fmt::format("choose another MASTER_PORT that is free on {}", place.node.host)};
}

// TcpExt: a SYN to a full accept queue is dropped without a word (tcp_conn_request).
bool queue_is_full(const Case& c, const Place& place, const Listener& listener) {
  if (listener.queued <= 0 || listener.queued < listener.backlog) return false;
  if (listener.queued > listener.backlog) return true;
  return std::ranges::any_of(c.cluster.pairs, [&](const PairFacts& pair) {
    return pair.to == place.node.host && std::ranges::any_of(pair.dials, [&](const Dial& dial) {
             return dial.port == place.port && dial.outcome == Outcome::timed_out;
           });
  });
}

// None: not counted, or nobody was.
std::optional<Evidence> turned_away_by(const Place& place) {
  if (!place.node.kernel.known()) return std::nullopt;
  const KernelNet& kernel = *place.node.kernel;
  if (kernel.listen_overflows.value_or(0) == 0) return std::nullopt;
  return Evidence{.node = place.node.host,
                  .fact = "TcpExt ListenOverflows",
                  .observed = fmt::format("{} connections found a full queue since the start; "
                                          "net.core.somaxconn is {}",
                                          *kernel.listen_overflows, kernel.somaxconn),
                  .expected = "none",
                  .command = "nstat -az TcpExtListenOverflows; sysctl net.core.somaxconn"};
}

void accuse_queue(const Case& c, const Place& place, const Listener& listener, Judge& judge) {
  Finding finding =
      about(place, "rendezvous-accept-queue-full",
            fmt::format("the listener at MASTER_PORT {} on {} accepts nobody, and its "
                        "queue is full",
                        place.port, place.node.host));
  finding.symptom = Symptom::hang;
  finding.evidence.push_back(
      {.node = place.node.host,
       .fact = fmt::format("port {} accept queue", place.port),
       .observed = fmt::format("{} waiting at most {}, held by {}", listener.queued,
                               listener.backlog, owner_text(listener.owner)),
       .expected = "room for more",
       .command = fmt::format("ss -ltnp sport = :{}", place.port)});
  if (const auto turned_away = turned_away_by(place)) finding.evidence.push_back(*turned_away);
  if (listener.owner && whose(c, place, listener.owner) == Whose::the_jobs) {
    finding.fix.push_back(
        {.node = place.node.host,
         .kind = Fix::Kind::manual,
         .text = fmt::format("rank 0 does not call accept(): see what it does (py-spy dump --pid "
                             "{}) and start the job again; for thousands of ranks raise "
                             "net.core.somaxconn before",
                             listener.owner->pid)});
  } else {
    finding.fix.push_back(another_port(c, place));
  }
  judge.report(std::move(finding));
}

void accuse_stale(const Place& place, const Owner& owner, Judge& judge) {
  Finding finding =
      about(place, "rendezvous-port-stale",
            fmt::format("an earlier job's rank 0 still holds MASTER_PORT {} on {}: {}", place.port,
                        place.node.host, owner_text(owner)));
  finding.certainty = Certainty::likely;
  finding.evidence.push_back(
      holder(place, owner_text(owner) + ", its launcher is gone, no rank is connected"));
  finding.fix.push_back({.node = place.node.host,
                         .kind = Fix::Kind::shell,
                         .command = fmt::format("ps -o pid,ppid,lstart,args -p {}", owner.pid),
                         .text = "look first: if you have just started it by hand, start the other "
                                 "ranks instead"});
  finding.fix.push_back({.node = place.node.host,
                         .kind = Fix::Kind::shell,
                         .command = fmt::format("kill {}", owner.pid),
                         .text = owner.user == "root" ? std::string("as root")
                                                      : fmt::format("as {} or root", owner.user)});
  judge.report(std::move(finding));
}

Finding held(const Case& c, const Place& place, const std::optional<Owner>& owner) {
  Finding finding = about(place, "rendezvous-port-in-use",
                          fmt::format("MASTER_PORT {} on {} is held by {}", place.port,
                                      place.node.host, owner_text(owner)));
  finding.evidence.push_back(holder(place, "held by " + owner_text(owner)));
  finding.fix.push_back(another_port(c, place));
  return finding;
}

void accuse_holder(const Case& c,
                   const Place& place,
                   const std::optional<Owner>& owner,
                   Judge& judge) {
  Finding finding = held(c, place, owner);
  if (!owner) finding.certainty = Certainty::likely;
  judge.report(std::move(finding));
}

void mention_holder(const Case& c,
                    const Place& place,
                    const std::optional<Owner>& owner,
                    Judge& judge) {
  Finding finding = held(c, place, owner);
  finding.severity = Severity::notice;
  finding.certainty = Certainty::possible;
  finding.summary += ": as it should be if that is rank 0 of this job";
  judge.report(std::move(finding));
}

void note_hidden(const Place& place, Judge& judge) {
  static const Observed<bool> hidden =
      Unknown{.kind = Why::denied, .text = "whose socket this is, only root can see"};
  judge.see(place.node, fmt::format("sockets.{}.owner", place.port), hidden);
}

void judge_owner(const Case& c,
                 const Place& place,
                 const std::optional<Owner>& owner,
                 Judge& judge) {
  switch (whose(c, place, owner)) {
    case Whose::the_jobs:
      return;
    case Whose::left_over:
      if (owner) accuse_stale(place, *owner, judge);
      return;
    case Whose::a_store:
      return mention_holder(c, place, owner, judge);
    case Whose::hidden:
      return in_good_use(c, place) ? note_hidden(place, judge)
                                   : accuse_holder(c, place, owner, judge);
    case Whose::strange:
      return has_clients(place) ? mention_holder(c, place, owner, judge)
                                : accuse_holder(c, place, owner, judge);
  }
}

void judge_listener(const Case& c, const Place& place, const Listener& listener, Judge& judge) {
  if (queue_is_full(c, place, listener)) return accuse_queue(c, place, listener, judge);
  judge_owner(c, place, listener.owner, judge);
}

// A client whose own port this is keeps bind() from it, as TIME_WAIT and a dying server's rest do
// not: they had set SO_REUSEADDR.
bool sits_on_it(const Place& place, const Connection& row) {
  const bool alive = row.state == TcpState::established || row.state == TcpState::syn_sent;
  const bool a_ranks = row.owner && process_of(place.node, *row.owner) != nullptr;
  return row.local_port == place.port && alive && !a_ranks;
}

void judge_outgoing(const Case& c, const Place& place, Judge& judge) {
  static const Observed<bool> cut_off = Unknown{.text = "not all sockets were seen"};
  if (place.sockets.truncated) {  // a server may be what was left out
    judge.see(place.node, fmt::format("sockets.{}", place.port), cut_off);
    return;
  }
  const auto row = std::ranges::find_if(
      place.sockets.connections, [&](const Connection& other) { return sits_on_it(place, other); });
  if (row == place.sockets.connections.end()) return;
  Finding finding = about(place, "rendezvous-port-outgoing",
                          fmt::format("an outgoing connection sits on MASTER_PORT {} of {}: {}",
                                      place.port, place.node.host, owner_text(row->owner)));
  finding.evidence.push_back(
      holder(place, fmt::format("a connection to {} port {} by {}", row->remote.text(),
                                row->remote_port, owner_text(row->owner))));
  finding.evidence.back().command = fmt::format("ss -tnp sport = :{}", place.port);
  finding.fix.push_back(another_port(c, place));
  judge.report(std::move(finding));
}

void run(const Case& c, Judge& judge) {
  const Master* master = master_of(c);
  const NodeFacts* node = master == nullptr ? nullptr : find_node(c.cluster, master->node);
  if (node == nullptr || !master->port) return;
  const auto* sockets = judge.see(*node, "sockets", node->sockets);
  if (sockets == nullptr || judge.see(*node, "processes", node->processes) == nullptr) return;
  const Place place{.node = *node, .sockets = *sockets, .port = *master->port};
  const auto held = std::ranges::find(sockets->listeners, place.port, &Listener::port);
  if (held != sockets->listeners.end()) {
    judge_listener(c, place, *held, judge);
  } else {
    judge_outgoing(c, place, judge);
  }
}

// --- the catalogue ---

constexpr std::string_view kHeldCauses[] = {"rendezvous-wrong-service", "rendezvous-not-up",
                                            "rendezvous-port-rejected"};
constexpr std::string_view kQueueCauses[] = {"rendezvous-port-dropped",
                                             "rendezvous-port-unreachable", "rendezvous-not-up"};

constexpr Page kInUsePage{
    .meaning =
        "Rank 0 (or torchrun's agent) cannot bind MASTER_PORT: `The server socket has failed "
        "to bind to [::]:P (errno: 98 - Address already in use)`. The other ranks connect to "
        "the stranger and hang without a word.",
    .confirm = "`ss -ltnp sport = :MASTER_PORT` on the master, as root to see whose it is.",
    .fix =
        "Take another MASTER_PORT, the same on all nodes. End the other process only if it is "
        "yours.",
    .verify = "`ss -ltn sport = :MASTER_PORT` on the master prints no line before the job starts."};
constexpr Page kStalePage{
    .meaning =
        "A rank of an earlier job outlived its launcher and still listens: the new rank 0 "
        "cannot bind, and new ranks join a job that is dead.",
    .confirm =
        "`ss -ltnp sport = :MASTER_PORT` names it; `ps -o pid,ppid,etime,args -p PID` shows "
        "that its parent is 1; `ss -tn sport = :MASTER_PORT` shows nobody connected.",
    .fix =
        "Take another MASTER_PORT; or look whose it is, and `kill PID` (`kill -9` when it does "
        "not react).",
    .verify = "`ss -ltn sport = :MASTER_PORT` prints no line."};
constexpr Page kOutgoingPage{
    .meaning =
        "A client of something else was given MASTER_PORT as its own port, because the port "
        "lies in net.ipv4.ip_local_port_range; rank 0 cannot bind while it lasts.",
    .confirm = "`ss -tnp sport = :MASTER_PORT` on the master.",
    .fix =
        "Take a MASTER_PORT outside `sysctl net.ipv4.ip_local_port_range`, or reserve yours: "
        "`sysctl -w net.ipv4.ip_local_reserved_ports=29500`.",
    .verify = "`ss -tn sport = :MASTER_PORT` on the master prints no line."};
constexpr Page kQueuePage{
    .meaning =
        "Whoever listens at MASTER_PORT has stopped to accept. The kernel drops each further "
        "SYN in silence, which looks like a firewall.",
    .confirm =
        "`ss -ltn sport = :MASTER_PORT`: Recv-Q is above Send-Q. `nstat -az "
        "TcpExtListenOverflows` counts.",
    .fix =
        "A stranger's: take another MASTER_PORT. Rank 0's own: see what it does and start the "
        "job again; with thousands of ranks raise net.core.somaxconn.",
    .verify = "Recv-Q falls to 0."};

constexpr Code kCodes[] = {
    {.id = "rendezvous-port-in-use",
     .fault_class = FaultClass::port_in_use,
     .worst = Severity::blocker,
     .title = "MASTER_PORT is in use",
     .causes = kHeldCauses,
     .page = kInUsePage},
    {.id = "rendezvous-port-stale",
     .fault_class = FaultClass::port_in_use,
     .worst = Severity::blocker,
     .title = "An earlier job still holds MASTER_PORT",
     .causes = kHeldCauses,
     .page = kStalePage},
    {.id = "rendezvous-port-outgoing",
     .fault_class = FaultClass::port_in_use,
     .worst = Severity::blocker,
     .title = "An outgoing connection sits on MASTER_PORT",
     .causes = kHeldCauses,
     .page = kOutgoingPage},
    {.id = "rendezvous-accept-queue-full",
     .fault_class = FaultClass::master_unreachable,
     .worst = Severity::blocker,
     .title = "The listener at MASTER_PORT accepts nobody",
     .causes = kQueueCauses,
     .page = kQueuePage},
};

}  // namespace

extern const Check rendezvous_port_owner{
    .title = "MASTER_PORT is free, or rank 0's own", .codes = kCodes, .run = run};

}  // namespace distdoctor::checks
