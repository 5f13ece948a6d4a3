#include "rules/launch/command_line.h"

#include "base/text.h"

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace distdoctor::rules {
namespace {

using Lines = std::vector<std::string>;

void say(std::string& line, std::string_view what, const std::optional<int>& value) {
  if (value) line += " " + std::string(what) + "=" + std::to_string(*value);
}
void say(std::string& line, std::string_view what, const std::string& value) {
  if (!value.empty()) line += " " + std::string(what) + "=" + value;
}

// "torchrun nodes=2 per_node=8 rank=0 endpoint=node0:29400 script=train.py in batch"
std::string line_of(const Launch& launch) {
  std::string line(slug(launch.kind));
  say(line, "nodes", launch.nnodes_min);
  if (launch.nnodes_max != launch.nnodes_min) say(line, "to", launch.nnodes_max);
  say(line, "per_node", launch.processes_per_node);
  say(line, "rank", launch.node_rank);
  if (!launch.node_rank) say(line, "rank", launch.node_rank_text);
  say(line, "backend", launch.rdzv_backend);
  say(line, "endpoint", launch.rdzv_endpoint);
  say(line, "id", launch.rdzv_id);
  if (launch.rdzv_is_host) line += *launch.rdzv_is_host ? " host" : " no host";
  say(line, "addr", launch.master_addr);
  say(line, "port", launch.master_port);
  say(line, "tasks", launch.tasks);
  say(line, "tasks_per_node", launch.tasks_per_node);
  say(line, "script", launch.script);
  if (launch.standalone) line += " standalone";
  if (launch.in_batch_script) line += " in batch";
  if (launch.under_srun) line += " under srun";
  if (launch.expanded_by_outer_shell) line += " expanded outside";
  return line;
}

void add_settings(const Settings& settings, std::string_view mark, Lines& lines) {
  for (const auto& [name, setting] : settings) {
    CHECK(setting.origin.source == Source::command_line);
    lines.push_back(name + std::string(mark) + setting.value + " @ " + setting.origin.where);
  }
}

// Launches, settings ("="), fallbacks (":="), unresolved ("?="), notes ("note: ").
Lines lines_of(const CommandReading& reading) {
  Lines lines;
  for (const Launch& launch : reading.launches) lines.push_back(line_of(launch));
  add_settings(reading.settings, "=", lines);
  add_settings(reading.fallbacks, ":=", lines);
  add_settings(reading.unresolved, "?=", lines);
  for (const std::string& note : reading.notes) lines.push_back("note: " + note);
  return lines;
}

using Files = std::map<std::string, std::string>;

ScriptReader reader_of(const Files& files) {
  return [files](const std::string& path) -> std::optional<std::string> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
}

void check_lines(const Lines& seen, const Lines& expected) {
  CHECK_MESSAGE(seen == expected, join(seen, "\n"));
}

struct CommandRow {
  std::string_view name;
  Lines argv;
  Lines expected;
};

const std::vector<CommandRow> kCommands = {
    {"torchrun, values behind the equals sign",
     {"torchrun", "--nnodes=2", "--nproc_per_node=8", "--node_rank=1", "--master_addr=node0",
      "--master_port=29501", "train.py", "--nnodes=7"},
     {"torchrun nodes=2 per_node=8 rank=1 addr=node0 port=29501 script=train.py",
      "MASTER_ADDR=node0 @ command line", "MASTER_PORT=29501 @ command line"}},
    {"torchrun, values apart and dashes",
     {"/opt/bin/torchrun", "--nnodes", "2", "--nproc-per-node", "8", "--node-rank", "0",
      "--master-addr", "10.0.0.1", "train.py"},
     {"torchrun nodes=2 per_node=8 rank=0 addr=10.0.0.1 script=train.py",
      "MASTER_ADDR=10.0.0.1 @ command line", "MASTER_PORT=29500 @ command line (default)"}},
    {"torchrun, its defaults",
     {"torchrun", "train.py"},
     {"torchrun nodes=1 per_node=1 script=train.py"}},
    {"torchrun on two nodes without an address takes loopback",
     {"torchrun", "--nnodes=2", "--node_rank=0", "t.py"},
     {"torchrun nodes=2 per_node=1 rank=0 script=t.py",
      "MASTER_ADDR=127.0.0.1 @ command line (torchrun's default: no --master_addr)",
      "MASTER_PORT=29500 @ command line (default)"}},
    {"torchrun elastic",
     {"torchrun", "--nnodes=1:4", "--nproc_per_node=gpu", "--rdzv_backend=c10d",
      "--rdzv_endpoint=node0:29400", "--rdzv_id", "job7", "--rdzv-conf", "is_host=true,timeout=900",
      "-m", "pkg.train"},
     {"torchrun nodes=1 to=4 backend=c10d endpoint=node0:29400 id=job7 host script=pkg.train"}},
    {"torchrun, not the host",
     {"torchrun", "--rdzv_conf=timeout=9,is_host=0", "--rdzv_backend=c10d", "t.py"},
     {"torchrun nodes=1 per_node=1 backend=c10d no host script=t.py"}},
    {"torchrun standalone",
     {"torchrun", "--standalone", "--nproc_per_node=2", "t.py"},
     {"torchrun nodes=1 per_node=2 script=t.py standalone"}},
    {"static with an endpoint",
     {"torchrun", "--nnodes=2", "--rdzv_endpoint=[fd00::1]:29400", "--node_rank=0", "t.py"},
     {"torchrun nodes=2 per_node=1 rank=0 endpoint=[fd00::1]:29400 script=t.py",
      "MASTER_ADDR=fd00::1 @ command line", "MASTER_PORT=29400 @ command line"}},
    {"no numbers",
     {"torchrun", "--nnodes=two", "--nproc_per_node=-1", "t.py"},
     {"torchrun script=t.py"}},
    {"the log flags of torchrun take values",
     {"torchrun", "-r", "9:1", "-t", "9:1", "--nnodes=2", "--master_addr=a", "t.py"},
     {"torchrun nodes=2 per_node=1 addr=a script=t.py", "MASTER_ADDR=a @ command line",
      "MASTER_PORT=29500 @ command line (default)"}},
    {"a value is missing", {"torchrun", "--nnodes"}, {"torchrun per_node=1"}},
    {"python -m torch.distributed.run",
     {"/usr/bin/python3.11", "-u", "-W", "ignore", "-m", "torch.distributed.run", "--nnodes", "2",
      "--master_addr", "node0", "--nproc_per_node=4", "t.py"},
     {"torchrun nodes=2 per_node=4 addr=node0 script=t.py", "MASTER_ADDR=node0 @ command line",
      "MASTER_PORT=29500 @ command line (default)"}},
    {"python -mtorch.distributed.run",
     {"python", "-mtorch.distributed.run", "--nproc_per_node=4", "t.py"},
     {"torchrun nodes=1 per_node=4 script=t.py"}},
    {"a flag of the script is not python's",
     {"python", "t.py", "-m", "torch.distributed.run"},
     {"python script=t.py"}},
    {"passwords are masked",
     {"https_proxy=http://ann:pw@proxy:1", "torchrun", "--rdzv_id=x?token=abc", "t.py"},
     {"torchrun nodes=1 per_node=1 id=x?token=*** script=t.py",
      "https_proxy=http://ann:***@proxy:1 @ command line"}},
    {"python -m torch.distributed.launch",
     {"python", "-m", "torch.distributed.launch", "--use_env", "--nproc_per_node=4", "t.py"},
     {"torch.distributed.launch nodes=1 per_node=4 script=t.py"}},
    {"python /usr/bin/torchrun",
     {"python3", "/usr/bin/torchrun", "--nproc_per_node=4", "t.py"},
     {"torchrun nodes=1 per_node=4 script=t.py"}},
    {"python script", {"python", "-O", "train.py", "--lr", "1"}, {"python script=train.py"}},
    {"python code", {"python", "-c", "import torch"}, {}},
    {"variables in front, secrets left out",
     {"MASTER_ADDR=node0", "MASTER_PORT=29500", "HF_TOKEN=hf_x", "RANK=1", "WORLD_SIZE=2", "python",
      "t.py"},
     {"python script=t.py", "MASTER_ADDR=node0 @ command line", "MASTER_PORT=29500 @ command line",
      "RANK=1 @ command line", "WORLD_SIZE=2 @ command line"}},
    {"env",
     {"env", "-i", "-u", "X", "NCCL_DEBUG=INFO", "PATH=/bin", "python", "t.py"},
     {"python script=t.py", "NCCL_DEBUG=INFO @ command line", "PATH=/bin @ command line"}},
    {"an unknown program below env",
     {"env", "NCCL_DEBUG=INFO"},
     {"NCCL_DEBUG=INFO @ command line"}},
    {"srun",
     {"srun", "-N2", "-n", "16", "--ntasks-per-node=8", "--export=ALL,NCCL_DEBUG=INFO", "--gres",
      "gpu:8", "python", "t.py"},
     {"srun nodes=2 tasks=16 tasks_per_node=8 script=python", "python script=t.py under srun",
      "NCCL_DEBUG=INFO @ command line"}},
    {"srun with a range of nodes",
     {"srun", "--nodes=2-4", "python", "t.py"},
     {"srun script=python", "python script=t.py under srun"}},
    {"srun, torchrun, single quotes",
     {"srun", "-N2", "--ntasks-per-node", "1", "bash", "-c",
      "torchrun --nnodes 2 --node_rank $SLURM_NODEID --master_addr node0 t.py"},
     {"srun nodes=2 tasks_per_node=1 script=bash",
      "torchrun nodes=2 per_node=1 rank=$SLURM_NODEID addr=node0 script=t.py under srun",
      "MASTER_ADDR=node0 @ command line", "MASTER_PORT=29500 @ command line (default)"}},
    {"srun that drops the environment",
     {"env", "NCCL_DEBUG=INFO", "NCCL_ALGO=Ring", "srun", "--export=NCCL_ALGO", "python", "t.py"},
     {"srun script=python", "python script=t.py under srun", "NCCL_ALGO=Ring @ command line"}},
    {"mpirun of Open MPI",
     {"mpirun", "-np", "16", "-H", "node0:8,node1:8", "-x", "NCCL_DEBUG=INFO", "-x",
      "LD_LIBRARY_PATH", "--mca", "btl", "^openib", "--map-by", "ppr:8:node", "python", "t.py"},
     {"mpirun nodes=2 tasks=16 tasks_per_node=8 script=python", "python script=t.py",
      "LD_LIBRARY_PATH= @ command line", "NCCL_DEBUG=INFO @ command line"}},
    {"mpiexec of Hydra",
     {"mpiexec.hydra", "-n", "4", "-ppn", "2", "-genv", "NCCL_DEBUG", "WARN", "-env",
      "GLOO_SOCKET_IFNAME=eth1", "./train"},
     {"mpirun nodes=2 tasks=4 tasks_per_node=2 script=./train",
      "GLOO_SOCKET_IFNAME=eth1 @ command line", "NCCL_DEBUG=WARN @ command line"}},
    {"accelerate",
     {"accelerate", "launch", "--num_machines", "2", "--num_processes", "16", "--machine_rank", "1",
      "--main_process_ip", "10.0.0.1", "--main_process_port", "29501", "--config_file", "acc.yaml",
      "--fsdp_offload_params", "false", "t.py"},
     {"accelerate nodes=2 per_node=8 rank=1 addr=10.0.0.1 port=29501 script=t.py",
      "MASTER_ADDR=10.0.0.1 @ command line", "MASTER_PORT=29501 @ command line",
      "note: acc.yaml: configuration of accelerate, not read"}},
    {"accelerate config is none", {"accelerate", "config"}, {}},
    {"deepspeed",
     {"deepspeed", "--num_nodes", "2", "--num_gpus=8", "--master_addr", "node0", "--hostfile",
      "hosts", "t.py", "--deepspeed"},
     {"deepspeed nodes=2 per_node=8 addr=node0 script=t.py", "MASTER_ADDR=node0 @ command line",
      "MASTER_PORT=29500 @ command line (default)",
      "note: hosts: hostfile of deepspeed, not read"}},
    {"wrappers",
     {"timeout", "-k", "5", "1h", "numactl", "-N", "0", "torchrun", "t.py"},
     {"torchrun nodes=1 per_node=1 script=t.py"}},
    {"a container",
     {"docker", "run", "--rm", "-e", "NCCL_DEBUG=INFO", "image", "torchrun", "t.py"},
     {"torchrun nodes=1 per_node=1 script=t.py", "NCCL_DEBUG=INFO @ command line"}},
    {"torchrun takes PET variables",
     {"env", "PET_NNODES=2", "PET_RDZV_BACKEND=c10d", "torchrun", "--nproc_per_node=1", "t.py"},
     {"torchrun nodes=2 per_node=1 backend=c10d script=t.py", "PET_NNODES=2 @ command line",
      "PET_RDZV_BACKEND=c10d @ command line"}},
    {"sbatch --wrap",
     {"sbatch", "-N", "2", "--wrap", "srun torchrun t.py"},
     {"srun nodes=2 script=torchrun in batch",
      "torchrun nodes=1 per_node=1 script=t.py in batch under srun"}},
    {"a script that is not there", {"bash", "run.sh"}, {"note: run.sh: cannot be read"}},
    {"a program that nobody knows", {"make", "-j2"}, {}},
    {"marks in the input are nothing special",
     {"torchrun", "--node_rank=\x03$SLURM_NODEID\x02", "t.py"},
     {"torchrun nodes=1 per_node=1 rank=?$SLURM_NODEID? script=t.py"}},
};

TEST_CASE("command lines are read") {
  for (const CommandRow& row : kCommands) {
    CAPTURE(std::string(row.name));
    const auto reading = read_command(row.argv, reader_of({}));
    REQUIRE(reading.has_value());
    check_lines(lines_of(*reading), row.expected);
  }
}

TEST_CASE("an empty command line is refused") {
  CHECK_FALSE(read_command({}, reader_of({})).has_value());
  CHECK_FALSE(read_command({""}, reader_of({})).has_value());
}

struct ScriptRow {
  std::string_view name;
  std::string text;
  Lines expected;
};

const std::vector<ScriptRow> kScripts = {
    {"exports, comments, quotes, continued lines",
     "#!/bin/bash\n"
     "# export NCCL_ALGO=Tree\n"
     "export MASTER_ADDR=\"node0\"  # the first\n"
     "export MASTER_PORT='29501' NCCL_DEBUG=INFO\n"
     "GLOO_SOCKET_IFNAME=eth1\n"
     "export GLOO_SOCKET_IFNAME\n"
     "NCCL_IB_DISABLE=1 python \\\n"
     "  train.py > log 2>&1 &\n",
     {"python script=train.py", "GLOO_SOCKET_IFNAME=eth1 @ run.sh:5",
      "MASTER_ADDR=node0 @ run.sh:3", "MASTER_PORT=29501 @ run.sh:4", "NCCL_DEBUG=INFO @ run.sh:4",
      "NCCL_IB_DISABLE=1 @ run.sh:7"}},
    {"a variable that is not exported is the shell's own",
     "MASTER_ADDR=node0\npython t.py\n",
     {"python script=t.py"}},
    {"substitution, and words from a variable",
     "NODES=2\nHOST=node0\n"
     "ARGS=\"--nnodes $NODES --master_addr ${HOST}-ib --master_port=${PORT:-29502}\"\n"
     "torchrun $ARGS train.py\n",
     {"torchrun nodes=2 per_node=1 addr=node0-ib port=29502 script=train.py",
      "MASTER_ADDR=node0-ib @ run.sh:4", "MASTER_PORT=29502 @ run.sh:4"}},
    {"an array",
     "ARGS=(--nnodes 2\n  --master_addr node0)\nARGS+=(--node_rank 1)\n"
     "torchrun \"${ARGS[@]}\" t.py\n",
     {"torchrun nodes=2 per_node=1 rank=1 addr=node0 script=t.py", "MASTER_ADDR=node0 @ run.sh:4",
      "MASTER_PORT=29500 @ run.sh:4 (default)"}},
    {"arithmetic",
     "N=2\nG=8\nexport WORLD_SIZE=$(($N * (G+0)))\npython t.py\n",
     {"python script=t.py", "WORLD_SIZE=16 @ run.sh:3"}},
    {"command substitution is no value",
     "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1)\n"
     "export MASTER_PORT=`shuf -n1 -i 2-9`\n"
     "export WORLD_SIZE=$((SLURM_NNODES * 8))\n"
     "torchrun --nnodes $SLURM_NNODES --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:29400 "
     "t.py\n",
     {"torchrun per_node=1 backend=c10d endpoint=$(scontrol show hostnames "
      "\"$SLURM_JOB_NODELIST\" | head -n1):29400 script=t.py",
      "MASTER_ADDR?=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n1) @ run.sh:1",
      "MASTER_PORT?=`shuf -n1 -i 2-9` @ run.sh:2", "WORLD_SIZE?=$((SLURM_NNODES * 8)) @ run.sh:3"}},
    {"an address that only the shell knows",
     "torchrun --nnodes=2 --master_addr=$HEAD t.py\n",
     {"torchrun nodes=2 per_node=1 addr=$HEAD script=t.py",
      "MASTER_PORT=29500 @ run.sh:1 (default)", "MASTER_ADDR?=$HEAD @ run.sh:1"}},
    {"what the environment may overrule",
     "export MASTER_PORT=${MASTER_PORT:-29501}\nexport NCCL_DEBUG=\"${NCCL_DEBUG:=WARN}\"\n"
     "python t.py\n",
     {"python script=t.py", "MASTER_PORT:=29501 @ run.sh:1", "NCCL_DEBUG:=WARN @ run.sh:2"}},
    {"a default for a rank is nobody's for certain",
     "torchrun --nnodes=2 --node_rank=${NODE_RANK:-0} --master_addr=a --master_port=1 t.py\n",
     {"torchrun nodes=2 per_node=1 rank=${NODE_RANK:-0} addr=a port=1 script=t.py",
      "MASTER_ADDR=a @ run.sh:1", "MASTER_PORT=1 @ run.sh:1"}},
    {"what stands in a branch is not known",
     "export NCCL_DEBUG=WARN NCCL_ALGO=Ring\n"
     "if [ -n \"$DEBUG\" ]; then\n  export NCCL_DEBUG=INFO NCCL_ALGO=Ring\n  torchrun a.py\nfi\n"
     "python t.py\n",
     {"python script=t.py", "NCCL_ALGO=Ring @ run.sh:3", "NCCL_DEBUG?=INFO @ run.sh:3",
      "note: run.sh:4: torchrun stands in a branch, not read"}},
    {"&& and ||",
     "cd /x && export NCCL_DEBUG=INFO &&\n  python t.py\n"
     "[ -f x ] && export NCCL_ALGO=Ring\n[[ a && b ]] && export NCCL_PROTO=LL\n"
     "false || { export NCCL_DEBUG=WARN; exit 1; }\npython u.py || exit 1\n",
     {"python script=t.py", "python script=u.py", "NCCL_ALGO?=Ring @ run.sh:3",
      "NCCL_DEBUG?=WARN @ run.sh:5", "NCCL_PROTO?=LL @ run.sh:4"}},
    {"case, for, while",
     "case \"$1\" in\n  a|b) export NCCL_DEBUG=INFO ;;\n  *) export NCCL_DEBUG=WARN ;;\nesac\n"
     "for i in 0 1; do ssh node$i torchrun t.py; done\nwhile ! nc -z x 1; do sleep 1; done\n"
     "export NCCL_ALGO=Ring\npython t.py\n",
     {"python script=t.py", "NCCL_ALGO=Ring @ run.sh:7", "NCCL_DEBUG?=WARN @ run.sh:3"}},
    {"here-documents are skipped",
     "cat > conf <<EOF\nexport NCCL_DEBUG=INFO\nEOF\ncat <<-'END' | tee x\n\ttorchrun t.py\n\tEND\n"
     "cat <<< \"export X\"\npython t.py\n",
     {"python script=t.py"}},
    {"functions and arguments",
     "launch() {\n  local n=$1\n  shift\n  torchrun --nnodes \"$n\" --master_addr node0 "
     "--master_port 1 \"$@\"\n}\nlaunch 2 t.py --x\n",
     {"torchrun nodes=2 per_node=1 addr=node0 port=1 script=t.py", "MASTER_ADDR=node0 @ run.sh:4",
      "MASTER_PORT=1 @ run.sh:4"}},
    {"a subshell keeps its settings",
     "export NCCL_ALGO=Ring\n(export NCCL_ALGO=Tree; cd x)\npython t.py\n",
     {"python script=t.py", "NCCL_ALGO=Ring @ run.sh:1"}},
    {"source, set -a, unset",
     "set -a\nsource env.sh\n. ./missing.sh\nset +a\nNCCL_PROTO=LL\nunset NCCL_DEBUG\npython "
     "t.py\n",
     {"python script=t.py", "NCCL_ALGO=Ring @ env.sh:1", "note: ./missing.sh: cannot be read"}},
    {"a script that calls a script",
     "export NCCL_DEBUG=INFO\nHIDDEN=1\nsrun -N2 bash inner.sh 7\n",
     {"srun nodes=2 script=bash", "script script=inner.sh under srun",
      "torchrun nodes=7 per_node=1 rank=$SLURM_NODEID addr=a port=1 script=$HIDDEN under srun",
      "MASTER_ADDR=a @ inner.sh:1", "MASTER_PORT=1 @ inner.sh:1", "NCCL_DEBUG=INFO @ run.sh:1"}},
    {"exports alone", "export NCCL_DEBUG=INFO\n", {"NCCL_DEBUG=INFO @ run.sh:1"}},
    {"exit",
     "export NCCL_DEBUG=INFO\nexit 0\nexport NCCL_ALGO=Ring\n",
     {"NCCL_DEBUG=INFO @ run.sh:1"}},
    {"Windows line ends", "python t.py\r\n", {"python script=t.py"}},
    {"Windows line ends: bash keeps the carriage return of a value",
     "export NCCL_DEBUG=INFO\r\nexport NCCL_ALGO=\"Ring\" # why\r\npython t.py\r\n",
     {"python script=t.py", "NCCL_ALGO=Ring @ run.sh:2", "NCCL_DEBUG=INFO\r @ run.sh:1"}},
    {"Windows line ends: no blank that splits words",
     "MASTER=a\r\ntorchrun --nnodes=2 --node_rank=0 --master_addr=$MASTER --master_port=1 t.py\n",
     {"torchrun nodes=2 per_node=1 rank=0 addr=a\r port=1 script=t.py",
      "MASTER_ADDR=a\r @ run.sh:2", "MASTER_PORT=1 @ run.sh:2"}},
    {"secrets stay",
     "export WANDB_API_KEY=abc HF_TOKEN=x NCCL_DEBUG=INFO\npython t.py\n",
     {"python script=t.py", "NCCL_DEBUG=INFO @ run.sh:1"}},
    {"a batch script without srun",
     "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH --ntasks-per-node 1 # one\n\n"
     "torchrun --nnodes=$SLURM_NNODES --node_rank=$SLURM_NODEID --master_addr=a --master_port=1 "
     "t.py\n",
     {"torchrun nodes=2 per_node=1 rank=$SLURM_NODEID addr=a port=1 script=t.py in batch",
      "MASTER_ADDR=a @ run.sh:5", "MASTER_PORT=1 @ run.sh:5"}},
    {"a batch script, double quotes",
     "#SBATCH -N 2\n#SBATCH --ntasks-per-node=1\n"
     "srun bash -c \"torchrun --nnodes 2 --node_rank $SLURM_NODEID --master_addr a "
     "--master_port 1 t.py\"\n",
     {"srun nodes=2 tasks_per_node=1 script=bash in batch",
      "torchrun nodes=2 per_node=1 rank=$SLURM_NODEID addr=a port=1 script=t.py in batch under "
      "srun expanded outside",
      "MASTER_ADDR=a @ run.sh:3", "MASTER_PORT=1 @ run.sh:3"}},
    {"a batch script, single quotes",
     "#SBATCH -N 2\nsrun bash -c 'torchrun --nnodes 2 --node_rank $SLURM_NODEID t.py'\n",
     {"srun nodes=2 script=bash in batch",
      "torchrun nodes=2 per_node=1 rank=$SLURM_NODEID script=t.py in batch under srun",
      "MASTER_ADDR=127.0.0.1 @ run.sh:2 (torchrun's default: no --master_addr)",
      "MASTER_PORT=29500 @ run.sh:2 (default)"}},
    {"an escaped dollar, through a variable",
     "#SBATCH -N 2\nLAUNCHER=\"torchrun --nnodes 2 --node_rank \\$SLURM_PROCID --master_addr a "
     "--master_port 1\"\nsrun bash -c \"$LAUNCHER t.py\"\n",
     {"srun nodes=2 script=bash in batch",
      "torchrun nodes=2 per_node=1 rank=$SLURM_PROCID addr=a port=1 script=t.py in batch under "
      "srun",
      "MASTER_ADDR=a @ run.sh:3", "MASTER_PORT=1 @ run.sh:3"}},
    {"expanded outside, through a variable",
     "#SBATCH -N 2\nexport NODE_RANK=$SLURM_NODEID\nsrun torchrun --nnodes 2 "
     "--node_rank $NODE_RANK --master_addr a --master_port 1 t.py\n",
     {"srun nodes=2 script=torchrun in batch",
      "torchrun nodes=2 per_node=1 rank=$SLURM_NODEID addr=a port=1 script=t.py in batch under "
      "srun expanded outside",
      "MASTER_ADDR=a @ run.sh:3", "MASTER_PORT=1 @ run.sh:3",
      "NODE_RANK?=$SLURM_NODEID @ run.sh:2"}},
    {"a step does not inherit what it asks for anew",
     "#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\nsrun -n 2 python t.py\n",
     {"srun nodes=2 tasks=2 script=python in batch", "python script=t.py in batch under srun"}},
    {"secrets in what only the shell can work out",
     "export MASTER_ADDR=$(curl -H 'Authorization: Bearer abc' https://ann:pw@h/head)\npython "
     "t.py\n",
     {"python script=t.py",
      "MASTER_ADDR?=$(curl -H 'Authorization: Bearer *** https://ann:***@h/head) @ run.sh:1"}},
    {"GPUs that a program before or after the ranks sees are its own",
     "CUDA_VISIBLE_DEVICES=0 python prepare.py\n"
     "torchrun --nproc-per-node 8 t.py\n"
     "export CUDA_VISIBLE_DEVICES=1\n"
     "python evaluate.py\n",
     {"python script=prepare.py", "torchrun nodes=1 per_node=8 script=t.py",
      "python script=evaluate.py"}},
    {"GPUs that the ranks see",
     "export CUDA_VISIBLE_DEVICES=0,1\n"
     "torchrun --nproc-per-node 8 t.py\n"
     "CUDA_VISIBLE_DEVICES=7 python evaluate.py\n",
     {"torchrun nodes=1 per_node=8 script=t.py", "python script=evaluate.py",
      "CUDA_VISIBLE_DEVICES=0,1 @ run.sh:1"}},
    {"GPUs that the tasks of srun and mpirun see",
     "CUDA_VISIBLE_DEVICES=0,1 mpirun -np 8 python t.py\n",
     {"mpirun tasks=8 script=python", "python script=t.py", "CUDA_VISIBLE_DEVICES=0,1 @ run.sh:1"}},
    {"an unclosed quote",
     "export NCCL_DEBUG=\"INFO\npython t.py",
     {"NCCL_DEBUG=INFO\npython t.py @ run.sh:1"}},
    {"where libraries are: said, or partly so",
     "export LD_LIBRARY_PATH=/ofi:$LD_LIBRARY_PATH\nexport LD_PRELOAD=/x.so PATH=/x CUDA_HOME=/c\n"
     "export HOME=/h\npython t.py\n",
     {"python script=t.py", "CUDA_HOME=/c @ run.sh:2", "LD_PRELOAD=/x.so @ run.sh:2",
      "PATH=/x @ run.sh:2", "LD_LIBRARY_PATH?=/ofi:$LD_LIBRARY_PATH @ run.sh:1"}},
    {"a virtual environment",
     "source /venv/bin/activate\npython t.py\n",
     {"python script=t.py", "VIRTUAL_ENV=/venv @ run.sh:1", "PATH?=/venv/bin:$PATH @ run.sh:1"}},
    {"conda, by its folder and by a name that only it knows",
     "conda activate /envs/a\nconda activate b\nconda info\npython t.py\n",
     {"python script=t.py", "CONDA_PREFIX?=$(conda activate b) @ run.sh:2",
      "PATH?=$(conda activate b):/envs/a/bin:$PATH @ run.sh:2"}},
    {"environment modules change what nobody sees",
     "module purge\nmodule load nccl/2.28\npython t.py\n",
     {"python script=t.py", "LD_LIBRARY_PATH?=$(module load nccl/2.28):$LD_LIBRARY_PATH @ run.sh:2",
      "PATH?=$(module load nccl/2.28):$PATH @ run.sh:2"}},
    {"an unclosed substitution",
     "export NCCL_DEBUG=$(echo x\npython t.py",
     {"NCCL_DEBUG?=$(echo x\npython t.py @ run.sh:1"}},
};

const Files kFiles = {
    {"env.sh", "NCCL_ALGO=Ring\nNCCL_DEBUG=INFO\n"},
    {"inner.sh",
     "torchrun --nnodes $1 --node_rank $SLURM_NODEID --master_addr a --master_port 1 $HIDDEN "
     "t.py\n"},
};

TEST_CASE("scripts are read, and never run") {
  for (const ScriptRow& row : kScripts) {
    CAPTURE(std::string(row.name));
    check_lines(lines_of(read_script(row.text, "run.sh", reader_of(kFiles))), row.expected);
  }
}

TEST_CASE("a script behind bash, with its arguments") {
  const Files files = {{"run.sh", "torchrun --nnodes $1 --master_addr $2 --master_port 1 t.py\n"}};
  for (const Lines& argv :
       {Lines{"bash", "-e", "run.sh", "2", "node0"}, Lines{"run.sh", "2", "node0"}}) {
    const auto reading = read_command(argv, reader_of(files));
    REQUIRE(reading.has_value());
    check_lines(lines_of(*reading), {"script script=run.sh",
                                     "torchrun nodes=2 per_node=1 addr=node0 port=1 script=t.py",
                                     "MASTER_ADDR=node0 @ run.sh:1", "MASTER_PORT=1 @ run.sh:1"});
  }
}

TEST_CASE("what each task works out for itself is none of the shell's above") {
  const Files files = {{"run.sh", "export MASTER_ADDR=$(hostname)\npython t.py\n"}};
  const auto each = read_command({"srun", "-N2", "bash", "run.sh"}, reader_of(files));
  REQUIRE(each.has_value());
  REQUIRE(each->each_task.contains("MASTER_ADDR"));
  CHECK(each->each_task.at("MASTER_ADDR").value == "$(hostname)");
  CHECK(each->unresolved.contains("MASTER_ADDR"));
  const auto once = read_script("#SBATCH -N 2\nexport MASTER_ADDR=$(hostname)\nsrun python t.py\n",
                                "job.sh", reader_of({}));
  CHECK(once.unresolved.contains("MASTER_ADDR"));
  CHECK(once.each_task.empty());
  const auto alone = read_command({"bash", "run.sh"}, reader_of(files));
  REQUIRE(alone.has_value());
  CHECK(alone->each_task.empty());
}

TEST_CASE("bounds: circles, depth and size end") {
  const Files circle = {{"run.sh", "source run.sh\nbash run.sh\nf() { f; }\nf\npython t.py\n"}};
  const auto reading = read_command({"bash", "run.sh"}, reader_of(circle));
  REQUIRE(reading.has_value());
  CHECK(reading->launches.size() < 100);

  std::string deep = "export X=";
  for (int i = 0; i < 20'000; ++i) deep += "${A:-";
  read_script(deep, "run.sh", reader_of({}));
  std::string arrays;
  for (int i = 0; i < 20'000; ++i) arrays += "X=(";
  read_script(arrays, "run.sh", reader_of({}));
  std::string doubling = "A=xxxxxxxxxxxxxxxx\n";
  for (int i = 0; i < 60; ++i) doubling += "A=$A$A\n";
  read_script(doubling + "export NCCL_DEBUG=$A\n", "run.sh", reader_of({}));
  const Files binary = {{"run.sh", std::string("\x7f"
                                               "ELF\0\0",
                                               6)}};
  const auto none = read_command({"bash", "run.sh"}, reader_of(binary));
  REQUIRE(none.has_value());
  check_lines(lines_of(*none), {"note: run.sh: is no shell script, or larger than 1 MiB"});
}

}  // namespace
}  // namespace distdoctor::rules
