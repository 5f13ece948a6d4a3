#include "checks/rendezvous/jobs.h"
#include "support/alone.h"
#include "support/check_cases.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

using Lines = std::vector<std::string>;

Verdict fault(const char* code,
              const char* says,
              const Lines& blamed,
              const Lines& evidence,
              const Lines& fixes = {"*: MASTER_ADDR=10.10.0.10"}) {
  return {.code = code,
          .severity = blocker,
          .certainty = proved,
          .symptom = Symptom::hang,
          .says = says,
          .blamed = blamed,
          .evidence = evidence,
          .fixes = fixes};
}
Verdict less_sure(Certainty certainty, Verdict verdict) {
  verdict.certainty = certainty;
  return verdict;
}
// node0 MASTER_ADDR.NAME: seen, not expected; getent ...
std::string name(int node, const char* host, const std::string& seen, const std::string& expected) {
  return "node" + std::to_string(node) + " MASTER_ADDR." + host + ": " + seen + ", not " +
         expected + "; getent ahosts " + host;
}

void nobody_answers(World& w, Outcome outcome) {
  set_master(w, "10.10.0.99");
  for (const std::size_t i : {0U, 1U, 2U, 3U}) dial_master(w, i, "", "10.10.0.99", outcome);
}
std::string no_answer(int node, const char* outcome) {
  return "node" + std::to_string(node) + " MASTER_ADDR.10.10.0.99: 10.10.0.99: " + outcome +
         ", not an address of a peer; ping -c 1 10.10.0.99; ip neigh show 10.10.0.99";
}

Verdict outside() {
  Lines rows;
  for (const int node : {0, 1, 2, 3}) {
    rows.push_back(name(node, "10.10.0.99", "10.10.0.99, no peer's", "an address of a peer"));
  }
  Verdict verdict = fault("rendezvous-addr-outside",
                          "MASTER_ADDR 10.10.0.99 is no peer's address: rank 0 has to run there",
                          {}, rows, {"*: (manual)"});
  verdict.severity = notice;
  return verdict;
}
// MASTER_ADDR as a script that srun starts on each node has it.
void each_task_says(World& w, const std::string& value) {
  w.cluster.predicted.master = {};
  const Setting said{value, {.source = Source::command_line, .where = "run.sh:3"}};
  w.cluster.job.settings.erase("MASTER_ADDR");
  w.cluster.job.unresolved["MASTER_ADDR"] = said;
  w.cluster.job.rank_settings["MASTER_ADDR"] = said;
  w.cluster.job.launches = {{.kind = LauncherKind::srun, .nnodes_max = 4}};
}
Verdict each_itself(const std::string& value) {
  return less_sure(likely,
                   fault("rendezvous-addr-split",
                         "which each task works out for itself: every node names itself", {},
                         {"node0 MASTER_ADDR: " + value +
                          " (run.sh:3), in each task, not one address for all tasks; "
                          "srun hostname"},
                         {"*: (manual)"}));
}

Verdict many(const std::string& address, const std::string& kind) {
  Lines rows;
  for (const int node : {0, 1, 2, 3}) {
    rows.push_back("node" + std::to_string(node) + " MASTER_ADDR." + address + ": " + address +
                   ", " + kind + ", not an address of rank 0's node; ip route get " + address);
  }
  Verdict made = fault("rendezvous-addr-broadcast", "is", {}, rows);
  made.says = "MASTER_ADDR " + address + " is " + kind + ": no machine has it";
  made.symptom = Symptom::crash;
  return made;
}

const std::vector<CheckCase> cases = {
    {"healthy", [](World&) {}},
    {"nothing was said", [](World& w) { w.cluster.predicted.master = {}; }, {}, {" MASTER_ADDR"}},

    {"the broadcast address of a link",
     [](World& w) {
       set_master(w, "10.10.0.255");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) {
         World::change(w.node(i).routes, [](std::vector<Route>& routes) {
           routes.push_back({.destination = addr("10.10.0.255"),
                             .prefix = 32,
                             .kind = RouteKind::broadcast,
                             .interface = "eth0",
                             .table = 255});
         });
       }
     },
     {many("10.10.0.255", "a broadcast address")}},
    {"a multicast address",
     [](World& w) { set_master(w, "239.1.2.3"); },
     {many("239.1.2.3", "a multicast address")}},

    {"one node cannot resolve the name",
     [](World& w) { resolve_to(w, 2, "node0", {}); },
     {fault("rendezvous-addr-unresolvable",
            "node2 cannot resolve MASTER_ADDR node0",
            {"node2"},
            {name(2, "node0", "no address", "10.10.0.10, as on node0")})}},
    {"a node alone cannot resolve the name",
     [](World& w) {
       resolve_to(w, 2, "node0", {});
       look_at_only(w, 2);
       w.cluster.predicted.master->addresses = {};
     },
     {fault("rendezvous-addr-unresolvable",
            "node2 cannot resolve MASTER_ADDR node0",
            {"node2"},
            {"node2 MASTER_ADDR.node0: no address, not an address of rank 0's node; getent ahosts "
             "node0"},
            {"*: (manual)"})}},
    {"near miss: a node alone, whose master is no peer", [](World& w) { look_at_only(w, 2); }},
    {"the resolver is silent",
     [](World& w) {
       World::change(w.node(2).names, [](std::vector<Resolution>& rows) {
         rows[0].all = Unknown{.kind = Why::timed_out, .text = "getent: 2 s"};
       });
     },
     {less_sure(
         likely,
         fault(
             "rendezvous-addr-unresolvable",
             "node2 cannot resolve",
             {"node2"},
             {name(
                 2, "node0", "no answer from the resolver in time", "10.10.0.10, as on node0")}))}},
    {"nobody knows the name",
     [](World& w) {
       set_master(w, "nodeX");
       for (const std::size_t i : {0U, 1U, 2U, 3U}) resolve_to(w, i, "nodeX", {});
     },
     {fault("rendezvous-addr-unresolvable",
            "node0, node1, node2, node3 cannot resolve MASTER_ADDR nodeX",
            {"node0", "node1", "node2", "node3"},
            {name(0, "nodeX", "no address", "an address of rank 0's node"),
             name(1, "nodeX", "no address", "an address of rank 0's node"),
             name(2, "nodeX", "no address", "an address of rank 0's node"),
             name(3, "nodeX", "no address", "an address of rank 0's node")})}},
    {"a resolver that could not be run is a gap",
     [](World& w) {
       World::change(w.node(2).names, [](std::vector<Resolution>& rows) {
         rows[0].all = Unknown{.kind = Why::failed, .text = "getent: not found"};
       });
     },
     {},
     {"node2 names.node0"}},
    {"a name that nobody looked up is a gap",
     [](World& w) {
       World::change(w.node(2).names, [](std::vector<Resolution>& rows) { rows.clear(); });
     },
     {},
     {"node2 names.node0"}},
    {"near miss: only the job's shell knows the name",
     [](World& w) { set_master(w, "$(hostname)"); }},

    {"the name leads one node to another peer",
     [](World& w) { resolve_to(w, 1, "node0", {"10.10.0.12"}); },
     {fault("rendezvous-addr-split",
            "node0 leads node1 to another machine",
            {"node1"},
            {name(1, "node0", "10.10.0.12 (node2)", "an address of node0")})}},
    {"the name leads one node to a stranger",
     [](World& w) { resolve_to(w, 1, "node0", {"10.10.0.99"}); },
     {fault("rendezvous-addr-split",
            "leads node1 to another",
            {"node1"},
            {name(1, "node0", "10.10.0.99 (no peer's)", "an address of node0")})}},
    {"a name of no peer: most nodes are taken to be right",
     [](World& w) {
       set_master(w, "head", "node0");
       for (const std::size_t i : {0U, 1U, 2U}) resolve_to(w, i, "head", {"10.10.0.10"});
       resolve_to(w, 3, "head", {"10.10.0.11"});
     },
     {less_sure(likely,
                fault("rendezvous-addr-split",
                      "head leads node3 to another",
                      {"node3"},
                      {name(3, "head", "10.10.0.11 (node1)", "an address of node0")}))}},
    {"a tie is settled by custom, and is only possible",
     [](World& w) {
       set_master(w, "head", "node0");
       for (const std::size_t i : {0U, 1U}) resolve_to(w, i, "head", {"10.10.0.11"});
       for (const std::size_t i : {2U, 3U}) resolve_to(w, i, "head", {"10.10.0.10"});
     },
     {less_sure(possible,
                fault("rendezvous-addr-split",
                      "head leads node0, node1 to another",
                      {"node0", "node1"},
                      {name(0, "head", "10.10.0.11 (node1)", "an address of node0"),
                       name(1, "head", "10.10.0.11 (node1)", "an address of node0")}))}},
    {"near miss: two names of one machine, eth0 and eth1",
     [](World& w) {
       resolve_to(w, 1, "node0", {"10.20.0.10"});
       resolve_to(w, 2, "node0", {"10.10.0.10", "10.20.0.10"});
     }},
    {"near miss: the master's own name is 127.0.1.1 at home",
     [](World& w) { resolve_to(w, 0, "node0", {"127.0.1.1"}); }},
    {"near miss: a translated address that answers",
     [](World& w) {
       resolve_to(w, 1, "node0", {"203.0.113.7"});
       dial_master(w, 1, "node0", "203.0.113.7", Outcome::ok);
     }},
    {"near miss: a peer whose links nobody saw may have the address",
     [](World& w) {
       resolve_to(w, 1, "node0", {"10.10.0.77"});
       w.node(3).links = Unknown{.kind = Why::timed_out, .text = "5 s"};
     },
     {},
     {"node3 net.links"}},

    {"the name is loopback on a worker",
     [](World& w) { resolve_to(w, 1, "node0", {"127.0.1.1"}); },
     {fault("rendezvous-addr-loopback",
            "on node1 MASTER_ADDR node0 means the node itself",
            {"node1"},
            {name(1, "node0", "127.0.1.1, loopback", "an address of node0")})}},
    {"localhost",
     [](World& w) { set_master(w, "localhost"); },
     {fault("rendezvous-addr-loopback",
            "on node0, node1, node2, node3 MASTER_ADDR localhost means",
            {"node0", "node1", "node2", "node3"},
            {name(0, "localhost", "127.0.0.1, loopback", "an address of node0"),
             name(1, "localhost", "127.0.0.1, loopback", "an address of node0"),
             name(2, "localhost", "127.0.0.1, loopback", "an address of node0"),
             name(3, "localhost", "127.0.0.1, loopback", "an address of node0")})}},
    {"::1 with rank 0 seen: its node is at home",
     [](World& w) {
       set_master(w, "::1");
       add_rank(w, 1, 0);
     },
     {fault("rendezvous-addr-loopback",
            "on node0, node2, node3 MASTER_ADDR ::1 means",
            {"node0", "node2", "node3"},
            {name(0, "::1", "::1, loopback", "an address of node1"),
             name(2, "::1", "::1, loopback", "an address of node1"),
             name(3, "::1", "::1, loopback", "an address of node1")},
            {"*: MASTER_ADDR=10.10.0.11"})}},
    {"near miss: localhost on one node alone",
     [](World& w) {
       set_master(w, "localhost");
       w.cluster.nodes.resize(1);
     }},
    {"near miss: --standalone",
     [](World& w) {
       set_master(w, "localhost");
       w.cluster.job.launches = {{.kind = LauncherKind::torchrun, .standalone = true}};
     }},

    {"rank 0 runs elsewhere",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_rank(w, 0, 0);
       add_rank(w, 1, 1);
     },
     {fault("rendezvous-addr-other-node",
            "MASTER_ADDR node1 leads to node1, but rank 0 is on node0",
            {"node0", "node1"},
            {"node0 rank 0: pid 4000 has RANK=0, not on node1; tr '\\0' '\\n' < "
             "/proc/4000/environ | grep ^RANK="})}},
    {"a running torchrun tells as well",
     [](World& w) {
       set_master(w, "node1", "node1");
       w.cluster.job.launches = {
           {.kind = LauncherKind::torchrun,
            .origin = {.source = Source::process, .node = "node2", .where = "pid 77"},
            .node_rank = 0,
            .master_addr = "node1"}};
     },
     {fault("rendezvous-addr-other-node",
            "rank 0 is on node2",
            {"node2", "node1"},
            {"node2 rank 0: torchrun --node_rank 0 (pid 77 on node2), not on node1; "
             "pgrep -af node_rank"},
            {"*: (manual)"})}},
    {"near miss: nothing tells where rank 0 is", [](World& w) { set_master(w, "node1", "node1"); }},
    {"near miss: the launch line in the user's hand may be another node's",
     [](World& w) {
       set_master(w, "node1", "node1");
       w.cluster.job.launches = {{.kind = LauncherKind::torchrun,
                                  .origin = {.source = Source::command_line, .where = "--"},
                                  .node_rank = 0}};
     }},
    {"near miss: two processes say that they are rank 0",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_rank(w, 0, 0);
       add_rank(w, 2, 0);
     }},
    {"near miss: rank 0 of another job",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_rank(w, 0, 0, {{"MASTER_PORT", "29511"}});
     }},
    {"near miss: rank 0 of jobs for one node, at the same port",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_one_node_job(w, 2, true);
       add_one_node_job(w, 2, false);
     }},
    {"near miss: rank 0 of a job of two other nodes, at the same port",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_rank(w, 2, 0, {{"MASTER_ADDR", "node2"}, {"WORLD_SIZE", "2"}});
       add_rank(w, 3, 1, {{"MASTER_ADDR", "node2"}, {"WORLD_SIZE", "2"}});
     }},
    {"near miss: what an earlier job left behind",
     [](World& w) {
       set_master(w, "node1", "node1");
       add_rank(w, 0, 0, {{"TORCHELASTIC_RUN_ID", "old"}},
                [](TrainingProcess& p) { p.orphan = true; });
     }},
    {"near miss: the name is 127.0.1.1 on rank 0's own node",
     [](World& w) {
       add_rank(w, 0, 0);
       resolve_to(w, 0, "node0", {"127.0.1.1"});
     }},

    {"nobody has the address",
     [](World& w) { nobody_answers(w, Outcome::host_unreachable); },
     {less_sure(likely,
                fault("rendezvous-addr-nobody",
                      "MASTER_ADDR 10.10.0.99 is no peer's address, and nothing answers there",
                      {},
                      {no_answer(0, "host unreachable"), no_answer(1, "host unreachable"),
                       no_answer(2, "host unreachable"), no_answer(3, "host unreachable")}))}},
    {"a machine is there, if none of ours",
     [](World& w) { nobody_answers(w, Outcome::refused); },
     {outside()}},
    {"somebody accepts there",
     [](World& w) {
       nobody_answers(w, Outcome::ok);
       for (PairFacts& pair : w.cluster.pairs) {
         for (Dial& dial : pair.dials) dial.ours = false;
       }
     },
     {outside()}},
    {"no peer's, and nobody tried", [](World& w) { set_master(w, "10.10.0.99"); }, {outside()}},
    {"near miss: no peer's address, but our own listener answered",
     [](World& w) {
       nobody_answers(w, Outcome::ok);
       for (PairFacts& pair : w.cluster.pairs) {
         for (Dial& dial : pair.dials) dial.ours = true;
       }
     }},
    {"each task of srun names its own node",
     [](World& w) { each_task_says(w, "$(hostname)"); },
     {each_itself("$(hostname)")},
     {" MASTER_ADDR"}},
    {"each task takes its own first address",
     [](World& w) { each_task_says(w, "$(hostname -I | awk '{print $1}')"); },
     {each_itself("$(hostname -I | awk '{print $1}')")},
     {" MASTER_ADDR"}},
    {"near miss: each task asks for the first node of all",
     [](World& w) { each_task_says(w, "$(scontrol show hostnames | head -n 1)"); },
     {},
     {" MASTER_ADDR"}},
    {"near miss: who cuts the name may get another one",
     [](World& w) { each_task_says(w, "$(hostname | sed s/[0-9]*$/0/)"); },
     {},
     {" MASTER_ADDR"}},
    {"near miss: srun starts one node only",
     [](World& w) {
       each_task_says(w, "$(hostname)");
       w.cluster.job.launches[0].nnodes_max = 1;
     },
     {},
     {" MASTER_ADDR"}},
    {"near miss: the shell above srun names the node it runs on",
     [](World& w) {
       each_task_says(w, "$(hostname)");
       w.cluster.job.rank_settings.erase("MASTER_ADDR");
     },
     {},
     {" MASTER_ADDR"}},
    {"near miss: an unreached peer may have it",
     [](World& w) {
       nobody_answers(w, Outcome::timed_out);
       w.node(3).links = Unknown{.text = "not reached"};
     },
     {},
     {"node3 net.links"}},

    {"0.0.0.0",
     [](World& w) { set_master(w, "0.0.0.0"); },
     {fault("rendezvous-addr-wildcard",
            "MASTER_ADDR is 0.0.0.0: every node takes that for itself",
            {},
            {name(0, "0.0.0.0", "0.0.0.0", "an address of rank 0's node")})}},
    {"::",
     [](World& w) { set_master(w, "::"); },
     {fault("rendezvous-addr-wildcard",
            "is :::",
            {},
            {name(0, "::", "::", "an address of rank 0's node")})}},

    {"near miss: torchrun's endpoint decides for itself who hosts",
     [](World& w) {
       set_master(w, "localhost");
       w.cluster.predicted.master->endpoint = true;
     }},
};

TEST_CASE("rendezvous/master_addr") {
  run_cases("rendezvous/master_addr", cases);
}

}  // namespace
}  // namespace distdoctor::testing
