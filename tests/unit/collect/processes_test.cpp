#include "collect/processes.h"

#include "collect/collectors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

using namespace distdoctor;           // NOLINT(google-build-using-namespace)
using namespace distdoctor::collect;  // NOLINT(google-build-using-namespace)

namespace {

using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

const Variables kRank0 = {{"RANK", "0"},
                          {"LOCAL_RANK", "0"},
                          {"WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "node0"},
                          {"MASTER_PORT", "29500"}};

struct RoleRow {
  std::string name;
  Words argv;
  Variables environment;
  bool library;
  std::optional<ProcessRole> role;
};

const std::vector<RoleRow> kRoles = {
    {"torchrun", {"/usr/bin/python3", "/usr/bin/torchrun", "x.py"}, {}, false, ProcessRole::agent},
    {"torchrun by itself", {"torchrun", "x.py"}, {}, false, ProcessRole::agent},
    {"its module",
     {"python3", "-u", "-m", "torch.distributed.run", "x.py"},
     {},
     false,
     ProcessRole::agent},
    {"the old module",
     {"python", "-m", "torch.distributed.launch", "x.py"},
     {},
     false,
     ProcessRole::agent},
    {"torchrun in a pod that sets RANK", {"torchrun", "x.py"}, kRank0, true, ProcessRole::agent},
    {"srun", {"srun", "-N2", "python", "x.py"}, {}, false, ProcessRole::launcher},
    {"mpirun", {"/opt/ompi/bin/mpirun", "-np", "2", "x"}, {}, false, ProcessRole::launcher},
    {"accelerate",
     {"python3", "/usr/bin/accelerate", "launch", "x.py"},
     {},
     false,
     ProcessRole::launcher},
    {"a worker", {"/usr/bin/python3.11", "-u", "train.py"}, kRank0, false, ProcessRole::worker},
    {"a worker that is a module", {"python3", "-m", "train"}, kRank0, false, ProcessRole::worker},
    {"a worker that is no Python", {"./all_reduce_perf"}, kRank0, true, ProcessRole::worker},
    {"a rank of Slurm that will be RANK",
     {"python3", "train.py"},
     {{"SLURM_PROCID", "3"}},
     true,
     ProcessRole::worker},
    {"other Python of a Slurm step",
     {"python3", "x.py"},
     {{"SLURM_PROCID", "3"}},
     false,
     std::nullopt},
    {"a shell below an export", {"bash"}, kRank0, false, std::nullopt},
    {"a tail below an export", {"tail", "-f", "rank0.log"}, kRank0, false, std::nullopt},
    {"Python without a job", {"python3", "train.py"}, {{"RANK", "0"}}, false, std::nullopt},
    {"a thread of the kernel", {}, {}, false, std::nullopt},
    {"an argument vector that was wiped", {""}, kRank0, true, std::nullopt},
    {"grep for torchrun", {"grep", "torchrun"}, {}, false, std::nullopt},
    {"Python alone", {"python3"}, {}, false, std::nullopt},
};

machine::Process process(int pid, int parent, Words argv, Variables environment = {}) {
  machine::Process made{.pid = pid, .parent = parent, .state = "S", .argv = std::move(argv)};
  made.environment = std::move(environment);
  if (!made.argv.empty()) made.name = made.argv[0];
  return made;
}

Variables with(Variables base, const std::string& name, const std::string& value) {
  base[name] = value;
  return base;
}

struct OrphanRow {
  std::string name;
  std::string init;
  machine::Process parent;
  machine::Process worker;
  bool meant_to_stay;
  bool orphan;
};

const Variables kElastic = with(kRank0, "TORCHELASTIC_RUN_ID", "job");
const Variables kSlurm = with(kRank0, "SLURM_PROCID", "0");

const std::vector<OrphanRow> kOrphans = {
    {"below its torchrun", "systemd", process(5, 1, {"torchrun"}),
     process(9, 5, {"python3"}, kElastic), false, false},
    {"its torchrun is gone", "systemd", process(5, 1, {"sshd"}),
     process(9, 1, {"python3"}, kElastic), false, true},
    {"its torchrun is gone, a user's systemd took it", "systemd", process(5, 1, {"systemd"}),
     process(9, 5, {"python3"}, kElastic), false, true},
    {"a shell that ssh left", "systemd", process(5, 1, {"sshd"}),
     process(9, 1, {"python3"}, kRank0), false, true},
    {"a unit that systemd started, or left with nohup", "systemd", process(5, 1, {"sshd"}),
     process(9, 1, {"python3"}, kRank0), true, false},
    {"below a shell", "systemd", process(5, 1, {"bash"}), process(9, 5, {"python3"}, kRank0), false,
     false},
    {"the container's own program", "tini", process(5, 1, {"sh"}),
     process(9, 1, {"python3"}, kRank0), false, false},
    {"a pod's pause container took it", "pause", process(5, 1, {"sh"}),
     process(9, 1, {"python3"}, kRank0), false, true},
    {"below slurmstepd", "systemd", process(5, 1, {"slurmstepd: [7.0]"}),
     process(9, 5, {"python3"}, kSlurm), false, false},
    {"its Slurm step is gone", "systemd", process(5, 1, {"sshd"}),
     process(9, 1, {"python3"}, kSlurm), false, true},
};

// /proc entries of one process, as text.
void add_process(machine::CapturedMachine& captured, const machine::Process& process) {
  const auto folder = "/proc/" + std::to_string(process.pid);
  auto& files = captured.files;
  files[folder + "/stat"].text = std::to_string(process.pid) + " (" + process.name + ") S " +
                                 std::to_string(process.parent) +
                                 " 7 7 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 100 1";
  files[folder + "/status"].text = "Uid:\t1000\t1000\nSigIgn:\t0000000001001000\n";
  for (const auto& argument : process.argv) files[folder + "/cmdline"].text += argument + '\0';
  for (const auto& [name, value] : *process.environment) {
    files[folder + "/environ"].text += name + "=" + value + '\0';
  }
  files[folder + "/ns/net"].link = "net:[1]";
}

machine::CapturedMachine training_node() {
  machine::CapturedMachine captured{.uptime_s = 100};
  captured.files["/etc/passwd"].text = "ann:x:1000:1000::/home/ann:/bin/bash\n";
  captured.files["/proc/self"].link = "50";
  add_process(captured, process(1, 0, {"systemd"}));
  add_process(captured, process(5, 1, {"torchrun", "--token", "s3cret", "x.py"}));
  add_process(captured,
              process(9, 5, {"python3", "x.py"}, with(kElastic, "HF_TOKEN", "hf_s3cret")));
  add_process(captured, process(10, 9, {"python3", "x.py"}, kElastic));  // a data loader
  add_process(captured, process(40, 1, {"python3", "harness.py"}, kRank0));
  add_process(captured, process(50, 40, {"distdoctor", "agent"}, kRank0));
  captured.files["/proc/9/maps"].text =
      "7f00-7f10 r-xp 00000000 08:01 11   /venv/nvidia/nccl/lib/libnccl.so.2\n";
  captured.files["/proc/5/ns/net"].link = "net:[2]";  // in a pod of its own
  captured.files["/proc/9/fd/4"].link = "socket:[77]";
  captured.sockets = std::vector<machine::SocketRow>{{.state = TcpState::established,
                                                      .local = *Address::parse("10.0.0.1"),
                                                      .remote = *Address::parse("10.0.0.2"),
                                                      .inode = 77}};
  return captured;
}

}  // namespace

TEST_CASE("which processes belong to a job, and as what") {
  for (const auto& row : kRoles) {
    CAPTURE(row.name);
    const auto library = [&](const machine::Process& /*process*/) { return row.library; };
    CHECK(role_of(process(9, 1, row.argv, row.environment), library) == row.role);
  }
}

TEST_CASE("whose launcher is gone") {
  for (const auto& row : kOrphans) {
    CAPTURE(row.name);
    const machine::Processes processes{.all = {process(1, 0, {row.init}), row.parent, row.worker},
                                       .whole_machine = true};
    CHECK(is_orphan(row.worker, ProcessRole::worker, processes, row.meant_to_stay) == row.orphan);
  }
}

TEST_CASE("inside a container nobody can tell that slurmstepd is gone") {
  const auto worker = process(9, 1, {"python3"}, kSlurm);
  const machine::Processes processes{.all = {process(1, 0, {"tini"}), worker}};
  CHECK_FALSE(is_orphan(worker, ProcessRole::worker, processes, false));
}

TEST_CASE("libraries in a memory map") {
  constexpr std::string_view kMaps =
      "7f00-7f10 r-xp 00000000 08:01 11 /lib/libnccl-net.so\n"
      "7f20-7f30 r-xp 00000000 08:01 12 /opt/my libs/libnccl.so.2.28.9\n";
  CHECK(mapped_library(kMaps, "libnccl.so") == "/opt/my libs/libnccl.so.2.28.9");
  CHECK(mapped_library("7f20-7f30 r-xp 0 08:01 12 /x/libnccl.so.2 (deleted)\n", "libnccl.so") ==
        "/x/libnccl.so.2");
  CHECK(mapped_library("7f00-7f10 rw-p 00000000 00:00 0\n", "libnccl.so").empty());
  CHECK(maps_training_library(kMaps));
  CHECK_FALSE(maps_training_library("7f00-7f10 r-xp 0 08:01 11 /lib/libc.so.6\n"));
  CHECK(parse_ignores_hangup("SigIgn:\t0000000000000001\n"));
  CHECK_FALSE(parse_ignores_hangup("SigIgn:\t0000000001001000\n"));
  CHECK_FALSE(parse_ignores_hangup(""));
  CHECK(parse_session("9 (a b) c) S 1 7 8 0 -1") == 8);
  CHECK_FALSE(parse_session("9 (python3) S 1").has_value());
  CHECK_FALSE(parse_session("").has_value());
}

TEST_CASE("a rank that init took is a rest, unless it leads its own session as a unit does") {
  for (const int session : {7, 40}) {
    CAPTURE(session);
    auto captured = training_node();
    add_process(captured, process(40, 1, {"python3", "train.py"}, kRank0));
    captured.files["/proc/self"].link = "5";
    auto& stat = captured.files["/proc/40/stat"].text;
    stat.replace(stat.find(" 7 7 "), 5, " 7 " + std::to_string(session) + " ");
    NodeFacts node;
    collect_processes(*machine::Machine::captured(captured), {}, node);
    REQUIRE(node.processes.known());
    const auto rank = std::ranges::find(*node.processes, 40, &TrainingProcess::pid);
    REQUIRE(rank != node.processes->end());
    CHECK(rank->orphan == (session == 7));
  }
}

TEST_CASE("the training processes of a captured node, without us, ours and data loaders") {
  NodeFacts node;
  collect_processes(*machine::Machine::captured(training_node()), {}, node);
  REQUIRE(node.processes.known());
  REQUIRE(node.processes->size() == 2);
  const auto& agent = node.processes->at(0);
  CHECK(agent.pid == 5);
  CHECK_FALSE(agent.our_network);
  CHECK(agent.role == ProcessRole::agent);
  CHECK(agent.argv == Words{"torchrun", "--token", "***", "x.py"});
  const auto& worker = node.processes->at(1);
  CHECK(worker.pid == 9);
  CHECK(worker.parent == 5);
  CHECK(worker.user == "ann");
  CHECK(worker.age_s == doctest::Approx(99));
  CHECK(worker.env->at("RANK") == "0");
  CHECK_FALSE(worker.env->contains("HF_TOKEN"));
  CHECK(worker.has_established_peer);
  CHECK(worker.our_network);
  CHECK_FALSE(worker.orphan);
  CHECK(worker.nccl_library == "/venv/nvidia/nccl/lib/libnccl.so.2");
}
