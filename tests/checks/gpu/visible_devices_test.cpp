#include "support/check_cases.h"
#include "support/gpu_nodes.h"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace distdoctor::testing {
namespace {

using enum Severity;
using enum Certainty;

using Variables = std::map<std::string, std::string>;

// Rank `rank` on node1, a child of 500.
void add_worker(World& w, int rank, Variables env, int parent = 500) {
  env.emplace("RANK", std::to_string(rank));
  env.emplace("LOCAL_RANK", std::to_string(rank));
  env.emplace("MASTER_PORT", "29500");
  World::change(w.node(1).processes, [&](std::vector<TrainingProcess>& all) {
    TrainingProcess process{.pid = 1000 + rank, .parent = parent, .uid = 1000, .state = "S"};
    process.env = std::move(env);
    all.push_back(std::move(process));
  });
}

void add_workers(World& w, int count, const Variables& env) {
  add_gpus(w, 4);
  for (int rank = 0; rank < count; ++rank) add_worker(w, rank, env);
}

Variables torchrun(Variables more) {
  more.emplace("TORCHELASTIC_RUN_ID", "none");
  return more;
}

std::string seen(int rank, const std::string& what, const std::string& wanted) {
  const auto pid = std::to_string(1000 + rank);
  return "node1 pid " + pid + " CUDA_VISIBLE_DEVICES: " + what + ", not " + wanted +
         "; tr '\\0' '\\n' < /proc/" + pid + "/environ | grep -E '(RANK|DEVICES|GPUS)'";
}

Verdict about(const std::string& code,
              Severity severity,
              const std::string& says,
              const std::vector<std::string>& evidence) {
  return {.code = code,
          .severity = severity,
          .certainty = likely,
          .symptom = Symptom::crash,
          .says = says,
          .blamed = {"node1"},
          .evidence = evidence,
          .fixes = {"node1: (manual)"}};
}

Verdict shared(Severity severity, const std::string& list, const std::vector<int>& ranks) {
  std::vector<std::string> evidence;
  for (const int rank : ranks) evidence.push_back(seen(rank, list, "a GPU of its own"));
  return about("gpu-shared-by-ranks", severity,
               std::to_string(ranks.size()) + " ranks on node1 see one and the same GPU", evidence);
}

Verdict too_few(const std::string& code,
                const std::string& says,
                const std::string& list,
                int ranks) {
  return about(code, blocker, says,
               {seen(0, list, std::to_string(ranks) + " GPUs, one for each rank")});
}

const std::vector<CheckCase> cases = {
    {"healthy: all ranks see all GPUs", [](World& w) { add_workers(w, 4, torchrun({})); }},
    {"healthy: a list for all",
     [](World& w) { add_workers(w, 2, torchrun({{"CUDA_VISIBLE_DEVICES", "2,3"}})); }},
    {"healthy: a GPU for each rank",
     [](World& w) {
       add_gpus(w, 4);
       for (int rank = 0; rank < 4; ++rank) {
         add_worker(w, rank, {{"CUDA_VISIBLE_DEVICES", std::to_string(rank)}});
       }
     }},
    {"one GPU for all ranks",
     [](World& w) { add_workers(w, 2, torchrun({{"CUDA_VISIBLE_DEVICES", "0"}})); },
     {shared(blocker, "0", {0, 1})}},
    {"two of three",
     [](World& w) {
       add_gpus(w, 4);
       for (const int rank : {0, 1, 2}) {
         add_worker(w, rank, {{"CUDA_VISIBLE_DEVICES", rank == 2 ? "3" : "1"}});
       }
     },
     {shared(blocker, "1", {0, 1})}},
    {"one MIG instance",
     [](World& w) { add_workers(w, 2, {{"CUDA_VISIBLE_DEVICES", "MIG-5eed"}}); },
     {shared(blocker, "MIG-5eed", {0, 1})}},
    {"near miss: MIG instances of one GPU",
     [](World& w) {
       add_gpus(w, 1);
       for (const int rank : {0, 1, 2}) {
         add_worker(w, rank, {{"CUDA_VISIBLE_DEVICES", "MIG-" + std::to_string(rank)}});
       }
     }},
    {"near miss: tasks of Slurm count their own devices",
     [](World& w) {
       add_workers(w, 4,
                   {{"CUDA_VISIBLE_DEVICES", "0"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_JOB_ID", "7"},
                    {"SLURM_GPUS_ON_NODE", "4"}});
     }},
    {"near miss: and nobody says how many there are",
     [](World& w) {
       add_workers(w, 4,
                   {{"CUDA_VISIBLE_DEVICES", "0"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}});
     }},
    {"Slurm granted one GPU for four tasks",
     [](World& w) {
       add_workers(w, 4,
                   {{"CUDA_VISIBLE_DEVICES", "0"},
                    {"SLURM_PROCID", "0"},
                    {"SLURM_JOB_ID", "7"},
                    {"SLURM_GPUS_ON_NODE", "1"}});
     },
     {too_few("gpu-slurm-too-few", "4 ranks of one job on node1 have 1 GPU to share", "0", 4)}},
    {"Slurm shows torchrun's task two GPUs for four ranks",
     [](World& w) {
       add_workers(
           w, 4,
           torchrun(
               {{"CUDA_VISIBLE_DEVICES", "0,1"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}}));
     },
     {too_few("gpu-slurm-too-few", "4 ranks of one job on node1 have 2 GPUs", "0,1", 4)}},
    {"more ranks than the node has GPUs",
     [](World& w) { add_workers(w, 5, torchrun({})); },
     {too_few("gpu-too-few", "5 ranks of one job on node1 have 4 GPUs", "not set", 5)}},
    {"near miss: jobs of two parents",
     [](World& w) {
       add_gpus(w, 4);
       for (int rank = 0; rank < 6; ++rank) add_worker(w, rank, {}, 500 + rank % 2);
     }},
    {"near miss: a data loader has its worker's environment",
     [](World& w) {
       add_workers(w, 1, torchrun({{"CUDA_VISIBLE_DEVICES", "0"}}));
       add_worker(w, 0, torchrun({{"CUDA_VISIBLE_DEVICES", "0"}}), 1000);
       add_worker(w, 0, torchrun({{"CUDA_VISIBLE_DEVICES", "0"}}), 1000);
     }},
    {"near miss: no devices at all: a job for CPUs",
     [](World& w) { add_workers(w, 8, torchrun({{"CUDA_VISIBLE_DEVICES", ""}})); }},
    {"near miss: none by Slurm, none by -1",
     [](World& w) {
       add_gpus(w, 4);
       for (const int rank : {0, 1}) add_worker(w, rank, {{"CUDA_VISIBLE_DEVICES", "-1"}});
       for (const int rank : {2, 3})
         add_worker(w, rank, {{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}, 501);
     }},
    {"near miss: NCCL is told that ranks share a GPU",
     [](World& w) {
       add_workers(w, 2, {{"CUDA_VISIBLE_DEVICES", "0"}, {"NCCL_MULTI_RANK_GPU_ENABLE", "1"}});
     }},
    {"near miss: a Gloo job",
     [](World& w) {
       add_workers(w, 8, torchrun({}));
       w.cluster.job.nccl = Use::no;
     },
     {},
     {},
     "the job does not use NCCL"},
    {"nobody said that the job uses GPUs: then that is a notice",
     [](World& w) {
       add_workers(w, 2, torchrun({{"CUDA_VISIBLE_DEVICES", "0"}}));
       w.cluster.job.gloo = Use::maybe;
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
     },
     {shared(notice, "0", {0, 1})}},
    {"near miss: nodes without GPUs",
     [](World& w) {
       for (int rank = 0; rank < 8; ++rank) add_worker(w, rank, torchrun({}));
     },
     {},
     {},
     "no rank runs, and nobody says how many are to"},
    {"near miss: what is to start fits",
     [](World& w) {
       add_gpus(w, 4);
       w.cluster.job.ranks_per_node = 4;
     }},
    {"unknown facts are gaps",
     [](World& w) {
       w.node(0).gpu = Unknown{.kind = Why::timed_out};
       w.node(2).processes = Unknown{.kind = Why::denied};
     },
     {},
     {"node0 gpu", "node2 processes"},
     "no rank runs, and nobody says how many are to"},
};

TEST_CASE("gpu/visible_devices") {
  run_cases("gpu/visible_devices", cases);
}

// --- a job that is only going to start ---

// Four GPUs on node1, none elsewhere; the list is the command's own.
void plan(World& w, int ranks, const std::string& list = "") {
  add_gpus(w, 4);
  w.cluster.job.ranks_per_node = ranks;
  if (!list.empty()) {
    w.cluster.job.rank_settings["CUDA_VISIBLE_DEVICES"] = {
        list, {.source = Source::command_line, .where = "train.sh:3"}};
  }
  for (auto& node : w.cluster.nodes) {
    if (node.host != "node1") node.gpu = GpuFacts{};
  }
}

Verdict planned(Severity severity, Certainty certainty = likely) {
  auto verdict = about("gpu-too-few", severity, "8 ranks are to run on node1, which has 4 GPUs",
                       {"node1 GPUs: 4, not 8, one for each rank; nvidia-smi -L || rocm-smi"});
  verdict.certainty = certainty;
  return verdict;
}

Verdict listed(Severity severity, const std::string& list, const std::string& where) {
  return about(
      "gpu-too-few", severity,
      "4 ranks are to run on node1, but CUDA_VISIBLE_DEVICES=" + list + " shows them 2 GPUs",
      {"node1 CUDA_VISIBLE_DEVICES of " + where + ": " + list +
       ", not 4 GPUs, one for each rank; echo $CUDA_VISIBLE_DEVICES; nvidia-smi -L"});
}

Verdict listed_everywhere() {
  Verdict verdict = listed(blocker, "0,1", "train.sh:3");
  const std::string row = verdict.evidence.front().substr(std::string("node1").size());
  verdict.says = "4 ranks are to run on each of 4 nodes, but CUDA_VISIBLE_DEVICES=0,1 shows them 2";
  verdict.blamed = {"node0", "node1", "node2", "node3"};
  verdict.evidence = {"node0" + row, "node1" + row, "node2" + row, "node3" + row};
  verdict.fixes = {"*: (manual)"};
  return verdict;
}

void in_environment(World& w, Context context) {
  plan(w, 4);
  w.node(1).context = context;
  w.node(1).settings =
      Settings{{"CUDA_VISIBLE_DEVICES", {"0,1", {.where = "$CUDA_VISIBLE_DEVICES"}}}};
}

const std::vector<CheckCase> plan_cases = {
    {"more ranks than GPUs", [](World& w) { plan(w, 8); }, {planned(blocker)}},
    {"an ssh login sees what the driver drives, too",
     [](World& w) {
       plan(w, 8);
       w.node(1).context = Context::ssh;
     },
     {planned(blocker)}},
    {"but its container may not be the job's",
     [](World& w) {
       plan(w, 8);
       w.node(1).context = Context::ssh;
       World::change(w.node(1).identity, [](Identity& it) { it.container = "docker"; });
     },
     {planned(notice)}},
    {"an ssh login may not open half of them",
     [](World& w) {
       add_gpus(w, 8);
       plan(w, 8);
       w.node(1).context = Context::ssh;
       add_gpus(w, 8);
       for (auto& node : w.cluster.nodes) {
         if (node.host != "node1") node.gpu = GpuFacts{};
       }
       World::change(w.node(1).gpu, [](GpuFacts& gpu) {
         for (std::size_t i = 4; i < 8; ++i) gpu.gpus[i].node_usable = false;
       });
     },
     {planned(notice)}},
    {"instances of MIG may be enough",
     [](World& w) {
       plan(w, 8);
       w.node(1).nvml = Nvml{.gpus = {{.index = 0, .mig = true}}};
     },
     {planned(notice, possible)}},
    {"near miss: ranks may share",
     [](World& w) {
       plan(w, 8);
       w.set("NCCL_MULTI_RANK_GPU_ENABLE", "1");
     }},
    {"the script shows two GPUs to four ranks",
     [](World& w) { plan(w, 4, "0,1"); },
     {listed(blocker, "0,1", "train.sh:3")}},
    {"and on all nodes: that is said once",
     [](World& w) {
       plan(w, 4, "0,1");
       add_gpus(w, 4);
     },
     {listed_everywhere()}},
    {"what comes after a GPU that is not there does not count",
     [](World& w) { plan(w, 4, "2,3,4,5"); },
     {listed(blocker, "2,3,4,5", "train.sh:3")}},
    {"near miss: enough", [](World& w) { plan(w, 2, "2,3"); }},
    {"near miss: by UUID", [](World& w) { plan(w, 2, "GPU-0,GPU-1"); }},
    {"near miss: only the job's shell knows", [](World& w) { plan(w, 4, "$LOCAL"); }},
    {"near miss: none at all, for CPUs", [](World& w) { plan(w, 4, "-1"); }},
    {"the job's own environment shows two",
     [](World& w) { in_environment(w, Context::container); },
     {listed(blocker, "0,1", "$CUDA_VISIBLE_DEVICES")}},
    {"that of an ssh login is not the job's",
     [](World& w) { in_environment(w, Context::ssh); },
     {listed(notice, "0,1", "$CUDA_VISIBLE_DEVICES")}},
    {"near miss: Slurm set it for our own step",
     [](World& w) {
       in_environment(w, Context::slurm_step);
       World::change(w.node(1).settings,
                     [](Settings& all) { all["SLURM_JOB_ID"] = {.value = "7"}; });
     }},
    {"nobody said that it uses GPUs",
     [](World& w) {
       plan(w, 8);
       w.cluster.job.gloo = Use::maybe;
       w.cluster.job.settings.erase("NCCL_SOCKET_IFNAME");
     },
     {planned(notice, possible)}},
};

TEST_CASE("gpu/visible_devices: a job that is to start") {
  run_cases("gpu/visible_devices", plan_cases);
}

}  // namespace
}  // namespace distdoctor::testing
