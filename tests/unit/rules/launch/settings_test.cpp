#include "rules/launch/settings.h"

#include "base/text.h"
#include "support/builders.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {
namespace {

using Variables = std::map<std::string, std::string>;

Settings settings_of(const Variables& variables, Source source) {
  Settings settings;
  for (const auto& [name, value] : variables) settings[name] = {value, {.source = source}};
  return settings;
}

// What a row may set: what was said, and what was seen on two nodes.
struct World {
  Said said = {};
  std::vector<NodeFacts> nodes = {};

  void command(const Variables& variables) {
    said.command.settings = settings_of(variables, Source::command_line);
  }
  void options(const Variables& variables) {
    said.options = settings_of(variables, Source::option);
  }
  void environment(const Variables& variables) {
    said.environment = settings_of(variables, Source::environment);
  }
  void launch(Launch launch) {
    launch.origin = {.source = Source::command_line};
    said.command.launches.push_back(std::move(launch));
  }
  TrainingProcess& process(std::size_t node,
                           const Variables& variables,
                           ProcessRole role = ProcessRole::worker) {
    while (nodes.size() <= node) {
      nodes.push_back({.host = "node" + std::to_string(nodes.size()), .reached = true});
    }
    auto all =
        nodes[node].processes.known() ? *nodes[node].processes : std::vector<TrainingProcess>{};
    TrainingProcess process{.pid = 100 + static_cast<int>(all.size()), .role = role, .state = "S"};
    process.env = variables;
    all.push_back(process);
    held_ = all;
    nodes[node].processes = all;
    node_ = node;
    return held_.back();
  }
  // Writes the process of the last call back.
  void keep() { nodes[node_].processes = held_; }
  void gpus(std::size_t node, const std::vector<std::string>& names) {
    while (nodes.size() <= node) {
      nodes.push_back({.host = "node" + std::to_string(nodes.size()), .reached = true});
    }
    nodes[node].devices = Devices{.gpus = names};
  }

 private:
  std::vector<TrainingProcess> held_ = {};
  std::size_t node_ = 0;
};

// Both ranks of a job for one node, on this one.
void one_node_job(World& w, std::size_t node, const Variables& more = {}) {
  for (const char* rank : {"0", "1"}) {
    Variables all = {{"RANK", rank},
                     {"WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"},
                     {"MASTER_PORT", "29500"},
                     {"NCCL_ALGO", "Ring"}};
    all.insert(more.begin(), more.end());
    w.process(node, all);
  }
}
void torchrun_on(World& w, std::size_t node, const std::vector<std::string>& flags) {
  TrainingProcess& agent = w.process(node, {}, ProcessRole::agent);
  agent.argv = {"torchrun"};
  agent.argv.insert(agent.argv.end(), flags.begin(), flags.end());
  agent.argv.emplace_back("train.py");
  w.keep();
}

struct Row {
  std::string_view name;
  void (*change)(World&);
  std::vector<std::string> settings = {};  // "MASTER_ADDR=node0 (option)"
  std::string uses = "nccl maybe, gloo maybe";
  int ranks_per_node = 0;  // 0: unknown
  std::vector<std::string> unresolved = {};
  std::size_t launches = 0;
};

const std::vector<Row> kRows = {
    {"nothing said, nothing seen", [](World&) {}},
    {"each layer wins over the next",
     [](World& w) {
       w.command({{"NCCL_A", "command"}});
       w.options({{"NCCL_A", "option"}, {"NCCL_B", "option"}});
       w.process(0, {{"NCCL_A", "process"}, {"NCCL_B", "process"}, {"NCCL_C", "process"}});
       w.environment({{"NCCL_A", "x"}, {"NCCL_B", "x"}, {"NCCL_C", "x"}, {"NCCL_D", "mine"}});
     },
     {"NCCL_A=command (command line)", "NCCL_B=option (option)",
      "NCCL_C=process (process node0 pid 100)", "NCCL_D=mine (environment)"},
     "nccl yes, gloo maybe"},
    {"ranks, and what is not the job's, do not travel",
     [](World& w) {
       w.command({{"RANK", "1"}, {"WORLD_SIZE", "2"}});
       w.process(0, {{"LOCAL_RANK", "0"}, {"TORCHELASTIC_RUN_ID", "x"}});
       w.environment({{"NODE_RANK", "0"}, {"LD_LIBRARY_PATH", "/x"}, {"https_proxy", "x"}});
     },
     {"WORLD_SIZE=2 (command line)"}},
    {"torchrun's variables in our environment",
     [](World& w) {
       w.environment({{"TORCHELASTIC_RUN_ID", "x"},
                      {"MASTER_ADDR", "node0"},
                      {"MASTER_PORT", "29500"},
                      {"NCCL_DEBUG", "INFO"}});
     },
     {"MASTER_ADDR=node0 (launcher)", "MASTER_PORT=29500 (launcher)",
      "NCCL_DEBUG=INFO (environment)"}},
    {"the same without torchrun are a shell's",
     [](World& w) { w.environment({{"MASTER_ADDR", "node0"}}); },
     {"MASTER_ADDR=node0 (environment)"}},
    {"our environment overrules a script's own default",
     [](World& w) {
       w.said.command.fallbacks =
           settings_of({{"MASTER_PORT", "1"}, {"NCCL_ALGO", "Ring"}}, Source::command_line);
       w.environment({{"MASTER_PORT", "29500"}});
     },
     {"MASTER_PORT=29500 (environment)", "NCCL_ALGO=Ring (command line)"},
     "nccl yes, gloo maybe"},
    {"what only the script's shell knows is not filled from our environment",
     [](World& w) {
       w.said.command.unresolved =
           settings_of({{"MASTER_ADDR", "$(hostname)"}, {"RANK", "$R"}}, Source::command_line);
       w.environment({{"MASTER_ADDR", "stale"}});
     },
     {},
     "nccl maybe, gloo maybe",
     0,
     {"MASTER_ADDR=$(hostname) (command line)"}},
    {"an option answers what the script left open",
     [](World& w) {
       w.said.command.unresolved =
           settings_of({{"MASTER_ADDR", "$(hostname)"}}, Source::command_line);
       w.options({{"MASTER_ADDR", "node0"}});
     },
     {"MASTER_ADDR=node0 (option)"}},
    {"a live process answers it too",
     [](World& w) {
       w.said.command.unresolved =
           settings_of({{"MASTER_ADDR", "$(hostname)"}}, Source::command_line);
       w.process(1, {{"MASTER_ADDR", "node1"}});
     },
     {"MASTER_ADDR=node1 (process node1 pid 100)"}},
    {"of two jobs the one with more workers",
     [](World& w) {
       w.process(0, {{"MASTER_ADDR", "old"}, {"MASTER_PORT", "1"}});
       w.process(0, {{"MASTER_ADDR", "new"}, {"MASTER_PORT", "2"}});
       w.process(1, {{"MASTER_ADDR", "new"}, {"MASTER_PORT", "2"}});
     },
     {"MASTER_ADDR=new (process node0 pid 101)", "MASTER_PORT=2 (process node0 pid 101)"}},
    {"a container with a network of its own says nothing",
     [](World& w) {
       w.process(0, {{"MASTER_ADDR", "127.0.0.1"}}).our_network = false;
       w.keep();
     }},
    {"orphans and zombies say nothing",
     [](World& w) {
       w.process(0, {{"MASTER_ADDR", "old"}}).orphan = true;
       w.keep();
       w.process(1, {{"MASTER_ADDR", "old"}}).state = "Z";
       w.keep();
     }},
    {"orphans that have each other are a job that a shell left",
     [](World& w) {
       for (const std::size_t node : {0U, 1U}) {
         w.process(node, {{"MASTER_ADDR", "node0"}, {"RANK", std::to_string(node)}}).orphan = true;
         w.keep();
       }
     },
     {"MASTER_ADDR=node0 (process node0 pid 100)"},
     "nccl maybe, gloo maybe",
     1},
    {"jobs of one node each, all ranks there: nobody else's settings",
     [](World& w) {
       one_node_job(w, 0);
       one_node_job(w, 1);
     }},
    {"the same below torchrun, while one rank has not started",
     [](World& w) {
       w.process(0, {{"RANK", "0"},
                     {"WORLD_SIZE", "2"},
                     {"LOCAL_WORLD_SIZE", "2"},
                     {"MASTER_ADDR", "127.0.0.1"}});
       one_node_job(w, 1, {{"LOCAL_WORLD_SIZE", "2"}, {"GROUP_WORLD_SIZE", "1"}});
       torchrun_on(w, 0, {"--nproc_per_node=2"});
       torchrun_on(w, 1, {"--nnodes=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"});
       torchrun_on(w, 1, {"--standalone"});
     }},
    {"the same below srun and mpirun, whose programs number themselves",
     [](World& w) {
       w.process(0, {{"SLURM_PROCID", "0"},
                     {"SLURM_JOB_NUM_NODES", "1"},
                     {"MASTER_ADDR", "localhost"},
                     {"MASTER_PORT", "29500"}});
       w.process(1, {{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "8"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "8"},
                     {"MASTER_ADDR", "localhost"}});
     }},
    {"one Slurm job a node, which meet at an address",
     [](World& w) {
       for (const std::size_t node : {0U, 1U}) {
         w.process(node, {{"SLURM_JOB_NUM_NODES", "1"}, {"MASTER_ADDR", "node0"}});
       }
     },
     {"MASTER_ADDR=node0 (process node0 pid 100)"}},
    {"a job of one node beside one of two",
     [](World& w) {
       one_node_job(w, 0);
       w.process(0, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}});
       w.process(1, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "node0"}});
     },
     {"MASTER_ADDR=node0 (process node0 pid 102)", "WORLD_SIZE=2 (process node0 pid 102)"},
     "nccl maybe, gloo maybe",
     1},
    {"localhost in a job of two nodes is that job's",
     [](World& w) {
       w.process(0, {{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}});
       w.process(1, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}});
     },
     {"MASTER_ADDR=localhost (process node0 pid 100)", "WORLD_SIZE=2 (process node0 pid 100)"},
     "nccl maybe, gloo maybe",
     1},
    {"torchrun by PET_NNODES is for two nodes",
     [](World& w) {
       w.process(0, {{"PET_NNODES", "2"}, {"PET_MASTER_ADDR", "node0"}}, ProcessRole::agent)
           .argv = {"torchrun", "t.py"};
       w.keep();
       w.process(1, {});
     },
     {},
     "nccl maybe, gloo maybe",
     0,
     {},
     1},
    {"of two complete jobs with one script the one whose workers were taken",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         const std::string master = node < 2 ? "zeta" : "alpha";
         torchrun_on(w, node, {"--nnodes=2", "--master_addr=" + master});
         w.process(node, {{"RANK", node % 2 == 0 ? "0" : "1"}, {"MASTER_ADDR", master}}).parent =
             100;
         w.keep();
       }
     },
     {"MASTER_ADDR=alpha (process node2 pid 101)"},
     "nccl maybe, gloo maybe",
     1,
     {},
     2},
    {"two complete jobs that have no workers yet: the first",
     [](World& w) {
       for (const std::size_t node : {0U, 1U, 2U, 3U}) {
         torchrun_on(w, node, {"--nnodes=2", node < 2 ? "--rdzv_id=a" : "--rdzv_id=b"});
       }
     },
     {},
     "nccl maybe, gloo maybe",
     0,
     {},
     2},
    {"a job that is torn stays whole",
     [](World& w) {
       torchrun_on(w, 0, {"--nnodes=2", "--master_port=29500"});
       torchrun_on(w, 1, {"--nnodes=2", "--master_port=29501"});
     },
     {},
     "nccl maybe, gloo maybe",
     0,
     {},
     2},
    {"a job on another port is another job",
     [](World& w) {
       w.options({{"MASTER_PORT", "29500"}});
       w.process(0, {{"MASTER_PORT", "29501"}, {"NCCL_DEBUG", "INFO"}});
     },
     {"MASTER_PORT=29500 (option)"}},
    {"a live torchrun is a launch",
     [](World& w) {
       w.process(1, {{"SLURM_STEP_ID", "0"}, {"NCCL_DEBUG", "INFO"}}, ProcessRole::agent).argv = {
           "/usr/bin/python3", "/usr/bin/torchrun", "--nnodes=2", "--node_rank=1", "t.py"};
       w.keep();
     },
     {"NCCL_DEBUG=INFO (process node1 pid 100)"},
     "nccl yes, gloo maybe",
     0,
     {},
     1},
    {"a command line is the launch, whatever runs",
     [](World& w) {
       w.launch({.kind = LauncherKind::torchrun, .processes_per_node = 8});
       w.process(1, {}, ProcessRole::agent).argv = {"torchrun", "--nproc_per_node=4", "t.py"};
       w.keep();
     },
     {},
     "nccl maybe, gloo maybe",
     8,
     {},
     1},
    {"torchrun below srun starts the ranks",
     [](World& w) {
       w.launch({.kind = LauncherKind::srun, .tasks_per_node = 1});
       w.launch({.kind = LauncherKind::torchrun, .processes_per_node = 8});
     },
     {},
     "nccl maybe, gloo maybe",
     8,
     {},
     2},
    {"torchrun's own number unknown, srun's is not taken for it",
     [](World& w) {
       w.launch({.kind = LauncherKind::srun, .tasks_per_node = 1});
       w.launch({.kind = LauncherKind::torchrun});
     },
     {},
     "nccl maybe, gloo maybe",
     0,
     {},
     2},
    {"srun starts python itself",
     [](World& w) {
       w.launch({.kind = LauncherKind::srun, .tasks_per_node = 4});
       w.launch({.kind = LauncherKind::python});
     },
     {},
     "nccl maybe, gloo maybe",
     4,
     {},
     2},
    {"live workers say how many they are",
     [](World& w) { w.process(0, {{"LOCAL_WORLD_SIZE", "2"}}); },
     {},
     "nccl maybe, gloo maybe",
     2},
    {"live workers are counted",
     [](World& w) {
       w.process(0, {{"RANK", "0"}});
       w.process(1, {{"RANK", "1"}});
       w.process(1, {{"RANK", "2"}});
     },
     {},
     "nccl maybe, gloo maybe",
     2},
    {"backend said",
     [](World& w) {
       w.options({{"DISTDOCTOR_BACKEND", "gloo"}});
       w.gpus(0, {"/dev/nvidia0"});
       w.command({{"NCCL_DEBUG", "INFO"}});
     },
     {"NCCL_DEBUG=INFO (command line)"},
     "nccl no, gloo yes"},
    {"both backends said",
     [](World& w) { w.options({{"DISTDOCTOR_BACKEND", "cpu:gloo,cuda:nccl"}}); },
     {},
     "nccl yes, gloo yes"},
    {"a backend that is neither", [](World& w) { w.options({{"DISTDOCTOR_BACKEND", "mpi"}}); }},
    {"libnccl mapped",
     [](World& w) {
       w.process(0, {}).nccl_library = "/x/libnccl.so.2";
       w.keep();
     },
     {},
     "nccl yes, gloo maybe"},
    {"libnccl mapped where no GPU is",
     [](World& w) {
       w.process(0, {}).nccl_library = "/x/libnccl.so.2";
       w.keep();
       w.gpus(0, {});
     },
     {},
     "nccl maybe, gloo yes"},
    {"NCCL variables of a login shell prove nothing",
     [](World& w) {
       w.environment({{"NCCL_DEBUG", "INFO"}});
       w.gpus(0, {});
     },
     {"NCCL_DEBUG=INFO (environment)"},
     "nccl maybe, gloo yes"},
    {"GPUs", [](World& w) { w.gpus(1, {"/dev/nvidia0"}); }, {}, "nccl yes, gloo maybe"},
    {"no GPU anywhere",
     [](World& w) {
       w.gpus(1, {});
       w.gpus(0, {});
     },
     {},
     "nccl maybe, gloo yes"},
    {"one node was not looked at", [](World& w) { w.gpus(1, {}); }},
};

std::vector<std::string> lines_of(const Settings& settings) {
  std::vector<std::string> lines;
  for (const auto& [name, setting] : settings) {
    const Origin& origin = setting.origin;
    std::string line = name + "=" + setting.value + " (" + std::string(slug(origin.source));
    if (!origin.node.empty()) line += " " + origin.node + " " + origin.where;
    lines.push_back(line + ")");
  }
  return lines;
}

TEST_CASE("whose settings: what was said, seen and inherited") {
  for (const Row& row : kRows) {
    CAPTURE(std::string(row.name));
    World world;
    row.change(world);
    const JobSpec job = resolve_job(world.said, {"node0", "node1"}, world.nodes);
    CHECK(job.peers.size() == 2);
    const auto settings = lines_of(job.settings);
    CHECK_MESSAGE(settings == row.settings, join(settings, ", "));
    const std::string uses =
        "nccl " + std::string(slug(job.nccl)) + ", gloo " + std::string(slug(job.gloo));
    CHECK(uses == row.uses);
    CHECK(job.ranks_per_node.value_or(0) == row.ranks_per_node);
    CHECK(lines_of(job.unresolved) == row.unresolved);
    CHECK(job.launches.size() == row.launches);
  }
}

TEST_CASE("ranks of the command line, else of the launcher around us, stay apart") {
  World world;
  world.environment({{"TORCHELASTIC_RUN_ID", "x"}, {"RANK", "3"}, {"HOSTNAME", "h"}});
  CHECK(lines_of(resolve_job(world.said, {}, {}).rank_settings) ==
        std::vector<std::string>{"RANK=3 (launcher)"});
  world.command({{"RANK", "1"}, {"NCCL_DEBUG", "INFO"}});
  CHECK(lines_of(resolve_job(world.said, {}, {}).rank_settings) ==
        std::vector<std::string>{"RANK=1 (command line)"});
  world.said.command.settings.clear();
  world.launch({.kind = LauncherKind::torchrun});
  CHECK(resolve_job(world.said, {}, {}).rank_settings.empty());
}

TEST_CASE("a live launch tells where it was seen") {
  World world;
  world.process(1, {{"SLURM_STEP_ID", "0"}}, ProcessRole::agent).argv = {"torchrun", "--nnodes=2",
                                                                         "--node_rank=1", "t.py"};
  world.keep();
  const JobSpec job = resolve_job({}, {"node0", "node1"}, world.nodes);
  REQUIRE(job.launches.size() == 1);
  const Launch& launch = job.launches.front();
  CHECK(launch.origin == Origin{.source = Source::process, .node = "node1", .where = "pid 100"});
  CHECK(launch.node_rank == 1);
  CHECK(launch.under_srun);
}

}  // namespace
}  // namespace distdoctor::rules
