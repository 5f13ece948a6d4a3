#include "checks/wires.h"
#include "support/fake_isolations.h"

#include <string>
#include <vector>

namespace distdoctor::testing {
namespace {

// Two nodes, two ranks on each, over NCCL's sockets; the all-reduce was run twice.
void collective(World& w, double gb_per_s, RunBackend backend = RunBackend::nccl) {
  w.cluster.nodes.resize(2);
  w.cluster.experiments = {fake_run(0, "baseline", RunOutcome::ok, gb_per_s),
                           fake_run(1, "baseline", RunOutcome::ok, gb_per_s)};
  for (Experiment& run : w.cluster.experiments) {
    run.backend = backend;
    if (backend == RunBackend::gloo) {
      run.ranks = {run.ranks[0], run.ranks[2]};
    } else {
      for (RankRun& rank : run.ranks) rank.transports = {"SHM/direct", "NET/Socket/0"};
    }
  }
}

// Alone, then beside the other.
void wires(World& w, double one, double eight) {
  const Speeds rows = {{1, one, 0.7}, {8, eight, 0.7}, {1, one, 0.7}, {8, eight, 0.7}};
  carry(w, 0, 1, rows);
  carry(w, 1, 0, rows);
}

Verdict below(const char* says, const std::vector<std::string>& evidence) {
  return {.code = "collective-below-wire",
          .severity = Severity::degraded,
          .certainty = Certainty::likely,
          .symptom = Symptom::slow,
          .says = says,
          .evidence = evidence,
          .fixes = {"*: (manual)"}};
}

Verdict gloo_below() {
  return below("reaches 0.3 GB/s in 2 runs, where plain TCP carries 1 GB/s",
               {"node0 all-reduce of 2 ranks, run 0 (baseline): works, 0.3 GB/s, not nearly 1 "
                "GB/s; distdoctor bisect -v --backend gloo --peers node0,node1",
                "node0 TCP to 10.20.0.11 by 1 stream: 1 GB/s, not about the 0.3 GB/s of the "
                "collective; iperf3 -c 10.20.0.11 -P 1"});
}

const std::vector<CheckCase> cases = {
    {"healthy, nothing run", [](World&) {}},
    {"the wire is filled",
     [](World& w) {
       collective(w, 9);
       wires(w, 3, 10);
     }},
    {"NCCL far below as many streams as it has",
     [](World& w) {
       collective(w, 2);
       wires(w, 3, 10);
     },
     {below("reaches 2 GB/s in 2 runs, where plain TCP carries 10 GB/s over its narrowest wire "
            "(node0 -> node1)",
            {"node0 all-reduce of 4 ranks, run 0 (baseline): works, 2.0 GB/s, not nearly 10 GB/s; "
             "mpirun -np 4 -H node0:2,node1:2 -x NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 256M -f 8 "
             "-g 1",
             "node0 TCP to 10.20.0.11 by 8 streams: 10 GB/s, not about the 2 GB/s of the "
             "collective; iperf3 -c 10.20.0.11 -P 8"})}},
    {"Gloo far below its one stream",
     [](World& w) {
       collective(w, 0.3, RunBackend::gloo);
       wires(w, 1, 1.2);
     },
     {gloo_below()}},

    {"near miss: two fifths of the wire",
     [](World& w) {
       collective(w, 4);
       wires(w, 3, 10);
     }},
    {"near miss: one of the runs was faster",
     [](World& w) {
       collective(w, 2);
       w.cluster.experiments[1] = fake_run(1, "baseline", RunOutcome::ok, 5);
       wires(w, 3, 10);
     }},
    {"near miss: run once",
     [](World& w) {
       collective(w, 2);
       w.cluster.experiments.pop_back();
       wires(w, 3, 10);
     }},
    {"near miss: RDMA carries the data",
     [](World& w) {
       collective(w, 2);
       wires(w, 3, 10);
       for (RankRun& rank : w.cluster.experiments[0].ranks) rank.transports = {"NET/IB/0"};
     }},
    {"near miss: slower beside the others, so that it may be a processor or the switch",
     [](World& w) {
       collective(w, 2);
       const Speeds rows = {{8, 10, 0.7}, {8, 8, 0.7}};
       carry(w, 0, 1, rows);
       carry(w, 1, 0, rows);
     }},
    {"near miss: measured one way only",
     [](World& w) {
       collective(w, 2);
       wires(w, 3, 10);
       w.pair(1, 0).paths[0].wire = Unknown{};
     }},
    {"near miss: a wire that Gloo itself cannot fill",
     [](World& w) {
       collective(w, 0.3, RunBackend::gloo);
       wires(w, 1.3, 5);
     }},
    {"near miss: several ranks of Gloo on a node",
     [](World& w) {
       collective(w, 0.3);
       for (Experiment& run : w.cluster.experiments) run.backend = RunBackend::gloo;
       wires(w, 1, 1);
     }},
    {"near miss: too little was sent to tell",
     [](World& w) {
       collective(w, 2);
       for (Experiment& run : w.cluster.experiments) {
         for (RankRun& rank : run.ranks) rank.timings[0].bytes = 1 << 20;
       }
       wires(w, 3, 10);
     }},
    {"near miss: too little was sent to tell, however short the way",
     [](World& w) {
       collective(w, 2);
       for (Experiment& run : w.cluster.experiments) {
         for (RankRun& rank : run.ranks) rank.timings[0].bytes = 32 << 20;
       }
       wires(w, 3, 10);
       for (PairFacts& pair : w.cluster.pairs) pair.paths[0].rtt_ms = Unknown{};
     }},
    {"near miss: a run has told why",
     [](World& w) {
       collective(w, 2);
       wires(w, 3, 10);
       w.cluster.isolations = {{.layer = Layer::streams, .ailment = Ailment::slow}};
     }},
    {"an isolation that knows of nothing but slowness explains nothing",
     [](World& w) {
       collective(w, 0.3, RunBackend::gloo);
       wires(w, 1, 1.2);
       w.cluster.isolations = {{.layer = Layer::none, .ailment = Ailment::slow}};
     },
     {gloo_below()}},
    {"near miss: NCCL stripes over two interfaces, and one was measured",
     [](World& w) {
       collective(w, 2);
       wires(w, 3, 10);
       World::change(w.prediction(0).nccl,
                     [](NcclChoice& nccl) { nccl.net_socket.push_back(nccl.net_socket.front()); });
     }},
};

TEST_CASE("collective/below_wire") {
  run_cases("collective/below_wire", cases);
}

}  // namespace
}  // namespace distdoctor::testing
