"""One lab, the jobs that run in it, and `distdoctor check` run in it. Standard library only."""
import dataclasses
import itertools
import json
import os
import shutil
import signal
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NSLAB = os.path.join(HERE, "nslab")
PYTHON = "/usr/bin/python3"
BASE_ENV = {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
SETTING_PREFIXES = ("GLOO_", "NCCL_", "TORCH_", "UCX_")
START_LIMIT_S = 60  # for torch to be imported on a busy machine; not part of a job's deadline


class LabError(Exception):
    """The lab itself failed: neither the job's nor distdoctor's fault."""


@dataclasses.dataclass(frozen=True)
class Job:
    """A real job, one rank a host. `env` is everybody's, `on` a host's own; None unsets a variable."""

    kind: str = "gloo"  # gloo: env:// without torchrun; torchrun; nccl: the library's own bootstrap
    env: dict = dataclasses.field(default_factory=dict)
    on: dict = dataclasses.field(default_factory=dict)
    args: tuple = ()  # of torchrun; {i} is the host's index
    members: int | None = None  # how many of the lab's hosts are the job's; None: all
    ranks: tuple | None = None  # those that start at all; None: every member
    deadline: float = 8.0  # seconds until "hang"

    def environment(self, i, hosts):
        hosts = self.members or hosts
        env = dict(BASE_ENV, MASTER_ADDR="node0", MASTER_PORT="29500", WORLD_SIZE=str(hosts), RANK=str(i))
        if self.kind == "torchrun":
            env = dict(BASE_ENV)
        env.update(self.env)
        env.update(self.on.get(i, {}))
        return {k: str(v) for k, v in env.items() if v is not None}

    def with_env(self, node, changes):
        """The job after a fix of kind env; node "*" is everybody and overrides what hosts set themselves."""
        if node == "*":
            on = {i: {k: v for k, v in own.items() if k not in changes} for i, own in self.on.items()}
            return dataclasses.replace(self, env={**self.env, **changes}, on=on)
        i = int(node.removeprefix("node"))
        return dataclasses.replace(self, on={**self.on, i: {**self.on.get(i, {}), **changes}})

    def settings(self):
        """How a user would tell `check` about this job: --master and --env."""
        shared = self.environment(0, 2)
        args = []
        if self.kind != "torchrun" and "MASTER_ADDR" in shared:
            host = shared["MASTER_ADDR"]
            host = "[%s]" % host if ":" in host else host
            args += ["--master", "%s:%s" % (host, shared.get("MASTER_PORT", ""))]
        for name, value in sorted(self.env.items()):
            if name.startswith(SETTING_PREFIXES) and value is not None:
                args += ["--env", "%s=%s" % (name, value)]
        return args


@dataclasses.dataclass
class Outcome:
    word: str  # pass, fail, hang, or skip with the reason as text
    seconds: float = 0.0
    text: str = ""


class GlooServer:
    """Our end of witness/gloo_server.py: ranks without a fresh import of torch. One for all rows."""

    def __init__(self):
        self.lock, self.ids, self.ranks = threading.Lock(), itertools.count(), {}
        env = dict(os.environ, **BASE_ENV)
        self.process = subprocess.Popen([PYTHON, os.path.join(HERE, "witness", "gloo_server.py")], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            self.ranks[answer["id"]].update(answer)

    def start(self, init, env, log):
        with self.lock:
            number = next(self.ids)
            self.ranks[number] = {}
            request = {"id": number, "init": init, "env": env, "log": log}
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        return ServedRank(self.ranks[number])

    def close(self):
        self.process.kill()


class ServedRank:
    """The few words of Popen that a running job needs."""

    def __init__(self, state):
        self.state = state

    def poll(self):
        return self.state.get("exit")

    def kill(self):
        end = time.monotonic() + 10
        while "pid" not in self.state and time.monotonic() < end:
            time.sleep(0.01)
        if self.poll() is None and "pid" in self.state:
            try:
                os.kill(self.state["pid"], signal.SIGTERM)  # it ends when its rank has let go of all ports
            except ProcessLookupError:  # ended meanwhile
                pass

    def wait(self):
        end = time.monotonic() + 10
        while self.poll() is None and time.monotonic() < end:
            time.sleep(0.01)


class RunningJob:
    """Started ranks of a job, until `finish`."""

    def __init__(self, lab, job, visible):
        self.lab, self.job, self.visible = lab, job, visible
        self.tag = "job-%s-%d" % (lab.name, next(lab.counter))
        self.shared = lab.shared
        self.stay = "%s/%s-enough" % (self.shared, self.tag)
        self.ranks = {}
        self.started = time.monotonic()
        self.start(range(job.members or lab.hosts) if job.ranks is None else job.ranks)

    def start(self, hosts):
        for i in hosts:
            env = self.job.environment(i, self.lab.hosts)
            env.update(DISTDOCTOR_LAB_JOB=self.tag, JOB_READY="%s/%s" % (self.shared, self.tag))
            if "JOB_STAY" in env:
                env["JOB_STAY"] = self.stay
            # A job that `check` is to see must outlast it.
            env.setdefault("JOB_TIMEOUT", "%g" % (90 if self.visible else self.job.deadline))
            path = self.lab.path("%s.node%d.log" % (self.tag, i))
            if self.job.kind == "gloo" and not self.visible:
                self.ranks[i] = self.lab.tools.gloo.start(self.lab.init(i), self.lab.host_env(env), path)
                continue
            with open(path, "wb") as log:
                self.ranks[i] = self.lab.popen(i, self._argv(i, env), env, stdout=log, stderr=subprocess.STDOUT)

    def _argv(self, i, env):
        script = os.path.join(HERE, "witness", "gloo_job.py")
        if self.job.kind == "gloo":
            return [PYTHON, script]
        if self.job.kind == "nccl":
            return [self.lab.tools.nccl, env["RANK"], env["WORLD_SIZE"], "%s/%s.id" % (self.shared, self.tag)]
        # -r 9:1 -t 9:1: torch 1.13 under Python 3.11 trips over "no redirects"; a map for an absent rank is harmless
        args = [a.format(i=i) for a in self.job.args]
        return [PYTHON, "-m", "torch.distributed.run", "-r", "9:1", "-t", "9:1", *args, script]

    def await_ready(self):
        """Until every started rank has torch imported (or has ended)."""
        while self.job.kind == "gloo" and time.monotonic() - self.started < START_LIMIT_S:
            ready = [f for f in os.listdir(self.shared) if f.startswith(self.tag + ".")]
            if len(ready) >= len(self.ranks) or all(p.poll() is not None for p in self.ranks.values()):
                break
            time.sleep(0.05)

    def finish(self, seconds=None):
        """Wait to the deadline, end what is left, say how it went."""
        self.await_ready()
        with open(self.stay, "w"):
            pass
        begun = time.monotonic()
        end = begun + (self.job.deadline if seconds is None else seconds)
        while time.monotonic() < end and self._still_promising():
            time.sleep(0.05)
        codes = [p.poll() for p in self.ranks.values()]
        self.kill()
        took = time.monotonic() - begun
        if 77 in codes:
            return Outcome("skip", took, self.log().strip())
        if any(c not in (None, 0) for c in codes):
            return Outcome("fail", took, self.log())
        if None in codes:
            return Outcome("hang", took, self.log())
        return Outcome("pass", took, self.log())

    def _still_promising(self):
        codes = [p.poll() for p in self.ranks.values()]
        return None in codes and not any(codes)

    def kill(self):
        """Ranks, their launchers and workers: everything that carries this job's tag. Gone when this returns, since a
        dying rank holds its ports for a while and the next job wants them."""
        for p in self.ranks.values():
            p.kill()
            p.wait()
        end = time.monotonic() + 10
        while self._kill_marked() and time.monotonic() < end:
            time.sleep(0.02)

    def _kill_marked(self):
        mark, found = ("DISTDOCTOR_LAB_JOB=%s\0" % self.tag).encode(), False
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if mark not in f.read() + b"\0":
                        continue
                found = True
                os.kill(int(pid), signal.SIGKILL)
            except OSError:
                continue
        return found

    def log(self):
        text = ""
        for i in self.ranks:
            with open(self.lab.path("%s.node%d.log" % (self.tag, i)), errors="replace") as f:
                text += "".join("node%d: %s" % (i, line) for line in f)
        return text


class Lab:
    """A named nslab with a folder for what its runs leave behind."""

    def __init__(self, name, hosts, folder, tools):
        self.name, self.hosts, self.folder = name, hosts, folder
        self.tools, self.nets = tools, None
        self.shared = "/run/nslab-%s/shared" % name
        self.distdoctor = "/run/nslab-%s/bin/distdoctor" % name  # as its hosts see it
        self.counter = itertools.count()
        self.children = set()
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def nslab(self, *args, timeout=60):
        env = dict(os.environ, LAB=self.name, NSLAB_OWNER=str(os.getpid()))
        if self.nets:
            env["NSLAB_NET0"], env["NSLAB_NET1"] = self.nets
        if self.tools.distdoctor:
            env["DISTDOCTOR"] = self.tools.distdoctor
        done = subprocess.run([NSLAB, *args], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, errors="replace", start_new_session=True)
        if done.returncode:
            raise LabError("nslab %s: %s" % (" ".join(args), done.stdout.strip()[-400:]))
        return done.stdout

    def up(self, nets=None):
        self.nets = nets
        self.nslab("up", str(self.hosts))

    def write_shared(self, name, text):
        with open(os.path.join(self.shared, name), "w") as f:
            f.write(text)

    def down(self):
        for p in list(self.children):
            if p.poll() is None:
                os.killpg(p.pid, signal.SIGKILL)
        self.nslab("down")

    def apply(self, verbs):
        for verb in verbs:
            self.nslab(*verb.split(" ", 3) if verb.count(" ") < 3 else verb.split(" "))

    def popen(self, host, argv, env=None, user="root", **streams):
        """A command on a host, in a session of its own."""
        outer = {k: v for k, v in os.environ.items() if k in ("LANG", "TERM")}
        outer.update(env or {}, LAB=self.name, PATH=os.environ["PATH"])
        streams.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen([NSLAB, "exec", "-u", user, str(host), *argv], env=outer, cwd="/",
                             start_new_session=True, **streams)
        self.children.add(p)
        return p

    def run(self, host, argv, timeout=20, **more):
        """A command on a host to its end: (status, stdout, stderr); status None when it ran into the limit."""
        p = self.popen(host, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        try:
            out, err = p.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            return None, out.decode(errors="replace"), err.decode(errors="replace")
        return p.returncode, out.decode(errors="replace"), err.decode(errors="replace")

    def dial(self, host, target, port):
        """True when a TCP connection from host opens within a second."""
        code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)"
        return self.run(host, [PYTHON, "-c", code, target, str(port)])[0] == 0

    def init(self, host):
        with open("/run/nslab-%s/n%d.pid" % (self.name, host), encoding="ascii") as f:
            return int(f.read())

    def host_env(self, env):
        """As `nslab exec` sets it."""
        root = "/run/nslab-%s" % self.name
        return dict({"PATH": root + "/bin:" + os.environ["PATH"], "HOME": root, "USER": "root"}, **env)

    def start(self, job, visible=False):
        """Start a job; visible: as processes of their own, whose environment `check` can read."""
        return RunningJob(self, job, visible)

    def play(self, job, patience=1):
        """A job to its end. Patience: where it should pass, a busy machine gets more time."""
        running = self.start(job)
        return running.finish(job.deadline * patience)

    def check(self, args, host=0, user="root", limit=90, command="check"):
        """`distdoctor check ARGS -o json` (or another command that judges) on a host: a Report."""
        begun = time.monotonic()
        # The options stand before a `-- COMMAND`.
        argv = [self.distdoctor, command, "-o", "json", *args]
        status, out, err = self.run(host, argv, timeout=limit, user=user)
        report = Report(argv, status, out, err, time.monotonic() - begun)
        with open(self.path("check-%d.txt" % next(self.counter)), "w") as f:
            f.write("$ %s\nstatus %s after %.1f s\n%s\n%s" % (" ".join(argv), status, report.seconds, out, err))
        return report


class Report:
    """What one run of `check` said."""

    def __init__(self, argv, status, out, err, seconds):
        self.argv, self.status, self.out, self.err, self.seconds = argv, status, out, err, seconds
        try:
            self.json = json.loads(out)
        except ValueError:
            self.json = None

    @property
    def trouble(self):
        """Why this is no report at all, or None."""
        if self.status is None:
            return "check ran into the harness's limit after %.0f s" % self.seconds
        if self.json is None:
            return "no JSON, status %s: %s" % (self.status, (self.err or self.out).strip()[-200:])
        if self.json.get("exit_code") != self.status:
            return "exit_code %s in JSON, status %s" % (self.json.get("exit_code"), self.status)
        return None

    @property
    def findings(self):
        return self.json.get("diagnosis", [])

    def loud(self):
        """Findings of severity blocker or degraded, nested ones included."""
        found, todo = [], list(self.findings)
        while todo:
            f = todo.pop(0)
            todo += f.get("explains", [])
            if f.get("severity") in ("blocker", "degraded"):
                found.append(f["code"])
        return found
