#include "checks/rendezvous/jobs.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

Owner owner(int pid, const char* command, const char* user = "bob") {
  return {.pid = pid, .command = command, .user = user, .uid = 1001, .age_s = 7300};
}
Listener listener(std::optional<Owner> owner, int queued = 0, int backlog = 128) {
  return {.address = addr("::"),
          .port = 29500,
          .queued = queued,
          .backlog = backlog,
          .owner = std::move(owner)};
}
void listen(World& w, const Listener& row) {
  World::change(w.node(0).sockets, [&](SocketFacts& s) { s.listeners.push_back(row); });
}
void connected(World& w, const Connection& row) {
  World::change(w.node(0).sockets, [&](SocketFacts& s) { s.connections.push_back(row); });
}
Connection client(TcpState state, std::optional<Owner> owner = {}) {
  return {.state = state,
          .local = addr("10.10.0.10"),
          .local_port = 29500,
          .remote = addr("10.10.0.12"),
          .remote_port = 22,
          .owner = std::move(owner)};
}
void left_behind(TrainingProcess& process) {
  process.orphan = true;
  process.age_s = 7300;
}
// Who opens a TCPStore connects to it.
Connection own_client(const Owner& owner) {
  return {.state = TcpState::established,
          .local = addr("10.10.0.10"),
          .local_port = 40000,
          .remote = addr("10.10.0.10"),
          .remote_port = 29500,
          .owner = owner};
}

const std::string kMovedOn = "*: MASTER_PORT=29501";
const std::string kHttp = "pid 77, python3 -m http.server 29500 (user bob, for 2 h)";

Verdict held(const char* code,
             const std::string& says,
             const std::string& fix,
             Certainty certainty = proved,
             const char* more = "",
             const char* ss = "ss -ltnp") {
  return {.code = code,
          .severity = blocker,
          .certainty = certainty,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node0"},
          .evidence = {"node0 port 29500: " + std::string(more) + ", not free, or rank 0's own; " +
                       ss + " sport = :29500"},
          .fixes = {fix}};
}
Verdict perhaps(const std::string& who, const std::string& fix = kMovedOn) {
  Verdict verdict = held("rendezvous-port-in-use",
                         "held by " + who + ": as it should be if that is rank 0 of this job", fix,
                         possible, ("held by " + who).c_str());
  verdict.severity = notice;
  return verdict;
}
Verdict stale() {
  Verdict verdict =
      held("rendezvous-port-stale", "an earlier job's rank 0 still holds MASTER_PORT 29500",
           "node0: ps -o pid,ppid,lstart,args -p 4000", likely,
           "pid 4000, python3 train.py (user ann, for 2 h), its launcher is gone, "
           "no rank is connected");
  verdict.fixes.push_back("node0: kill 4000");
  return verdict;
}
Verdict full(const std::string& seen, const std::string& fix) {
  return {.code = "rendezvous-accept-queue-full",
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = "accepts nobody",
          .blamed = {"node0"},
          .evidence = {"node0 port 29500 accept queue: " + seen +
                       ", not room for more; ss -ltnp sport = :29500"},
          .fixes = {fix}};
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing was said", [](World& w) { w.cluster.predicted.master = {}; }},
    {"the master is no peer", [](World& w) { w.cluster.predicted.master->node = ""; }},

    {"a stranger listens",
     [](World& w) { listen(w, listener(owner(77, "python3 -m http.server 29500"))); },
     {held("rendezvous-port-in-use",
           "MASTER_PORT 29500 on node0 is held by " + kHttp,
           kMovedOn,
           proved,
           ("held by " + kHttp).c_str())}},
    {"a script that starts its ranks itself: its store has its own client",
     [](World& w) {
       listen(w, listener(owner(77, "python3 train.py")));
       connected(w, own_client(owner(77, "python3 train.py")));
     },
     {perhaps("pid 77, python3 train.py (user bob, for 2 h)")}},
    {"a rank that torch's own mp.spawn started",
     [](World& w) { listen(w, listener(owner(77, "python3 -c x --multiprocessing-fork"))); },
     {perhaps("pid 77, python3 -c x --multiprocessing-fork (user bob, for 2 h)")}},
    {"another program's connection to it makes no store",
     [](World& w) {
       listen(w, listener(owner(77, "python3 -m http.server 29500")));
       connected(w, own_client(owner(78, "curl")));
     },
     {held("rendezvous-port-in-use",
           "MASTER_PORT 29500 on node0 is held by " + kHttp,
           kMovedOn,
           proved,
           ("held by " + kHttp).c_str())}},
    {"a stranger that another node talks with, perhaps a proxy of the job",
     [](World& w) {
       listen(w, listener(owner(77, "docker-proxy")));
       connected(w, client(TcpState::established));
     },
     {perhaps("pid 77, docker-proxy (user bob, for 2 h)")}},
    {"python, and its connections were cut off",
     [](World& w) {
       listen(w, listener(owner(77, "python3 train.py")));
       World::change(w.node(0).sockets, [](SocketFacts& s) { s.truncated = true; });
     },
     {perhaps("pid 77, python3 train.py (user bob, for 2 h)", "*: (manual)")}},
    {"hidden, and its connections were cut off",
     [](World& w) {
       listen(w, listener({}));
       World::change(w.node(0).sockets, [](SocketFacts& s) { s.truncated = true; });
     },
     {},
     {"node0 sockets.29500.owner"}},
    {"the next free port: not 29501, and none of the ephemeral ones",
     [](World& w) {
       listen(w, listener(owner(77, "nc -l 29500")));
       World::change(w.node(0).kernel, [](KernelNet& k) { k.port_low = 29502; });
       Listener next = listener({});
       next.port = 29501;
       listen(w, next);
     },
     {held("rendezvous-port-in-use",
           "held by pid 77, nc -l 29500",
           "*: MASTER_PORT=61000",
           proved,
           "held by pid 77, nc -l 29500 (user bob, for 2 h)")}},
    {"a rank of another job, by chance",
     [](World& w) {
       add_rank(w, 0, 3, {{"MASTER_PORT", "29511"}});
       listen(w, listener(owner(4003, "python3 train.py", "ann")));
     },
     {held("rendezvous-port-in-use",
           "held by pid 4003",
           kMovedOn,
           proved,
           "held by pid 4003, python3 train.py (user ann, for 2 h)")}},
    {"somebody whom we may not see, and no job is about",
     [](World& w) { listen(w, listener({})); },
     {held("rendezvous-port-in-use",
           "held by a process that this user may not see",
           kMovedOn,
           likely,
           "held by a process that this user may not see")}},
    {"near miss: hidden, but its peers are connected",
     [](World& w) {
       listen(w, listener({}));
       connected(w, client(TcpState::established));
     },
     {},
     {"node0 sockets.29500.owner"}},
    {"near miss: hidden, but ranks of the job are on this node",
     [](World& w) {
       listen(w, listener({}));
       add_rank(w, 0, 1);
     },
     {},
     {"node0 sockets.29500.owner"}},
    {"near miss: rank 0 of the running job",
     [](World& w) {
       add_rank(w, 0, 0);
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
       connected(w, client(TcpState::established, owner(4000, "python3 train.py", "ann")));
     }},
    {"near miss: rank 0 whose environment nobody may read",
     [](World& w) {
       add_rank(w, 0, 0, {}, [](TrainingProcess& p) {
         p.env = Unknown{.kind = Why::denied, .text = "environ: EACCES"};
       });
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     }},
    {"near miss: torchrun's agent",
     [](World& w) {
       add_rank(w, 0, 0, {}, [](TrainingProcess& p) {
         p.role = ProcessRole::agent;
         p.env = std::map<std::string, std::string>{};
       });
       listen(w, listener(owner(4000, "torchrun --nnodes 4 train.py", "ann")));
     }},
    {"near miss: ourselves, from another terminal",
     [](World& w) { listen(w, listener(owner(9, "/usr/bin/distdoctor agent", "ann"))); }},
    {"near miss: a stranger on another port, or on another node",
     [](World& w) {
       Listener row = listener(owner(77, "nc -l"));
       row.port = 29501;
       listen(w, row);
       row.port = 29500;
       World::change(w.node(1).sockets, [&](SocketFacts& s) { s.listeners.push_back(row); });
     }},

    {"an earlier job's rank 0",
     [](World& w) {
       add_rank(w, 0, 0, {}, left_behind);
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     },
     {stale()}},
    {"the same a moment after its torchrun died",
     [](World& w) {
       add_rank(w, 0, 0, {{"TORCHELASTIC_RUN_ID", "old"}},
                [](TrainingProcess& p) { p.orphan = true; });
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     },
     {stale()}},
    {"near miss: started two minutes ago, by a shell that has ended",
     [](World& w) {
       add_rank(w, 0, 0, {}, [](TrainingProcess& p) { p.orphan = true; });
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     }},
    {"near miss: orphaned, but another rank of its job waits elsewhere",
     [](World& w) {
       add_rank(w, 0, 0, {}, left_behind);
       add_rank(w, 1, 1, {}, left_behind);
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     }},
    {"near miss: orphaned, but somebody is connected",
     [](World& w) {
       add_rank(w, 0, 0, {}, [](TrainingProcess& p) {
         p.orphan = true;
         p.has_established_peer = true;
       });
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
     }},
    {"near miss: another user's, who may have a reason",
     [](World& w) {
       add_rank(w, 0, 0, {}, [](TrainingProcess& p) {
         p.orphan = true;
         p.uid = 1001;
       });
       listen(w, listener(owner(4000, "python3 train.py")));
     }},

    {"an outgoing connection",
     [](World& w) { connected(w, client(TcpState::established, owner(88, "ssh node2", "ann"))); },
     {held("rendezvous-port-outgoing",
           "an outgoing connection sits on MASTER_PORT 29500",
           kMovedOn,
           proved,
           "a connection to 10.10.0.12 port 22 by pid 88, ssh node2 (user ann, for 2 h)",
           "ss -tnp")}},
    {"near miss: the server may be among what was cut off",
     [](World& w) {
       connected(w, client(TcpState::established, owner(88, "ssh node2", "ann")));
       World::change(w.node(0).sockets, [](SocketFacts& s) { s.truncated = true; });
     },
     {},
     {"node0 sockets.29500"}},
    {"near miss: what is left of closed connections",
     [](World& w) {
       connected(w, client(TcpState::time_wait));
       connected(w, client(TcpState::close_wait));
     }},
    {"near miss: to our port, not from it",
     [](World& w) {
       Connection row = client(TcpState::established);
       std::swap(row.local_port, row.remote_port);
       connected(w, row);
     }},

    {"a stranger's queue is full",
     [](World& w) { listen(w, listener(owner(77, "sleepy"), 2, 1)); },
     {full("2 waiting at most 1, held by pid 77, sleepy (user bob, for 2 h)", kMovedOn)}},
    {"a stranger's queue is full, and the kernel has counted whom it turned away",
     [](World& w) {
       listen(w, listener(owner(77, "sleepy"), 2, 1));
       World::change(w.node(0).kernel, [](KernelNet& kernel) { kernel.listen_overflows = 9; });
     },
     {[] {
       Verdict verdict =
           full("2 waiting at most 1, held by pid 77, sleepy (user bob, for 2 h)", kMovedOn);
       verdict.evidence.push_back(
           "node0 TcpExt ListenOverflows: 9 connections found a full queue since the start; "
           "net.core.somaxconn is 4096, not none; nstat -az TcpExtListenOverflows; sysctl "
           "net.core.somaxconn");
       return verdict;
     }()}},
    {"rank 0 does not accept",
     [](World& w) {
       add_rank(w, 0, 0);
       listen(w, listener(owner(4000, "python3 train.py", "ann"), 129, 128));
     },
     {full("129 waiting at most 128, held by pid 4000, python3 train.py (user ann, for 2 h)",
           "node0: (manual)")}},
    {"as many as it holds, and a dial was dropped",
     [](World& w) {
       listen(w, listener(owner(77, "sleepy"), 1, 1));
       w.pair(1, 0).dials[0].outcome = Outcome::timed_out;
     },
     {full("1 waiting at most 1, held by pid 77, sleepy (user bob, for 2 h)", kMovedOn)}},
    {"near miss: a few wait, as when all ranks start at once",
     [](World& w) {
       add_rank(w, 0, 0);
       listen(w, listener(owner(4000, "python3 train.py", "ann"), 128, 128));
     }},

    {"sockets that could not be read are a gap",
     [](World& w) {
       w.node(0).sockets = Unknown{.kind = Why::unsupported, .text = "sock_diag: ENOENT"};
     },
     {},
     {"node0 sockets"}},
    {"so are processes: the holder might be rank 0",
     [](World& w) {
       listen(w, listener(owner(4000, "python3 train.py", "ann")));
       w.node(0).processes = Unknown{.kind = Why::timed_out, .text = "5 s"};
     },
     {},
     {"node0 processes"}},
};

TEST_CASE("rendezvous/port_owner") {
  run_cases("rendezvous/port_owner", cases);
}

}  // namespace
}  // namespace distdoctor::testing
