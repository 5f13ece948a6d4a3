"""The hosts, and one bisect on them. Standard library only."""
import json
import os
import re
import signal
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NSLAB = os.path.join(ROOT, "tests", "lab", "nslab")
HOSTS = 7  # node2, node3 and node6 keep a /dev/shm of 64 MB, node4 and node5 have RDMA cards
MARK = "DISTDOCTOR_SIM_GPUS"
PATIENCE_S = 240  # of one bisect, on a busy machine: a guard, not a claim

# RDMA cards as the kernel would show them; /sys/class is the host's own from then on.
CARDS = r"""set -e
mkdir /run/class
mount -t tmpfs cards /run/class
cp -a /sys/class/net /run/class/
for i in 0 1; do
  port=/run/class/infiniband/mlx5_$i/ports/1
  mkdir -p $port/gids
  echo "4: ACTIVE" > $port/state
  echo "5: LinkUp" > $port/phys_state
  echo InfiniBand > $port/link_layer
  echo "100 Gb/sec (4X EDR)" > $port/rate
  echo 0x1 > $port/lid
  echo 0x1 > $port/sm_lid
  echo fe80:0000:0000:0000:0002:c903:0000:000$i > $port/gids/0
done
mount --bind /run/class /sys/class
"""


class Stage:
    def __init__(self, program, name, folder):
        self.program, self.lab, self.folder = os.path.abspath(program), name, folder
        self.libraries = os.path.join(os.path.dirname(self.program), "tests", "programs", "sim_gpus")
        os.makedirs(folder, exist_ok=True)

    def nslab(self, *words, **more):
        env = dict(os.environ, LAB=self.lab, NSLAB_OWNER=str(os.getpid()), DISTDOCTOR=self.program)
        return subprocess.run([NSLAB, *words], env=env, check=True, text=True, stdout=subprocess.PIPE, **more).stdout

    def up(self):
        self.nslab("gc")
        self.nslab("up", str(HOSTS))
        for i in (0, 1, 4, 5):
            self.nslab("fault", "node%d" % i, "shm", "4g")
        for host in ("node4", "node5"):
            self.nslab("exec", host, "sh", "-c", CARDS)
        self.ports = self.open_ports()

    def down(self):
        self.nslab("down")

    def saved(self, row):
        return os.path.join(self.folder, row.name + ".facts")

    def judged_again(self, row):
        """The JSON of what was saved of it, judged once more."""
        out = subprocess.run([self.program, "check", "--facts", self.saved(row), "-o", "json"], text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=PATIENCE_S).stdout
        return json.loads(out) if out else {}

    def argv(self, row, script):
        launch = "env LAB=%s %s exec {host} env LD_LIBRARY_PATH=%s %s=%s" % (
            self.lab, NSLAB, self.libraries, MARK, script)
        words = [self.program, "bisect", "--peers", ",".join(row.nodes), "--backend", "nccl", "--ranks", str(row.ranks),
                 "--sizes", row.sizes, "--stage-timeout", row.stage, "--max-runs", str(row.most_runs),
                 "--nccl", os.path.join(self.libraries, "libnccl.so.2"), "--launch", launch, "-o", "json",
                 "--save", self.saved(row)]
        for setting in row.env:
            words += ["--env", setting]
        return words

    def start(self, row):
        script = os.path.join(self.folder, row.name + ".script")
        with open(script, "w") as f:
            f.write(row.script + "\n")
        if os.path.exists(script + ".runs"):
            os.remove(script + ".runs")
        env = {k: v for k, v in os.environ.items() if not k.startswith("NCCL_")}
        process = subprocess.Popen(self.argv(row, script), env=env, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.script = script
        return process

    def bisect(self, row):
        """Its JSON and exit code."""
        process = self.start(row)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
        with open(os.path.join(self.folder, row.name + ".json"), "w") as f:
            f.write(out + err)
        return json.loads(out) if out else {"stderr": err}, process.returncode

    # --- what is left ---

    def processes(self, script=""):
        """Pids of everything that runs with the stand-ins (of this script), and its command line."""
        mark, found = ("%s=%s" % (MARK, script or self.folder)).encode(), {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if mark not in f.read():
                        continue
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    found[int(pid)] = f.read().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
        return {pid: line for pid, line in found.items() if line}  # zombies have none

    def workers(self, script):
        return [pid for pid, line in self.processes(script).items() if re.search(r"vendor\S* nccl", line)]

    def segments(self):
        """What NCCL has in /dev/shm, by host; an empty file is what a creation that failed leaves behind in NCCL, too."""
        found = []
        for i in range(HOSTS):
            text = self.nslab("exec", "node%d" % i, "find", "/dev/shm", "-name", "nccl-*", "-size", "+0")
            found += ["node%d:%s" % (i, line) for line in text.split()]
        return found

    def open_ports(self):
        found = set()
        for i in range(HOSTS):
            for line in self.nslab("exec", "node%d" % i, "ss", "-Htan").splitlines():
                state, _, _, local, _ = line.split()[:5]
                if state not in ("TIME-WAIT", "CLOSE"):
                    found.add("node%d %s %s" % (i, state, local))
        return found
