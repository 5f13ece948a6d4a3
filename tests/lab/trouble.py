"""`check` under bad treatment: it ends within its budget, with the rest of the answer, and names the peer."""
import dataclasses
import json
import os
import re
import signal
import subprocess
import time

from labkit import Job
from rows import Trouble

PEERS = ("--peers", "node0,node1,node2", "--master", "node0:29500")
BUDGET = ("--budget", "15")
NCCL = Job("nccl")
LIMIT_S = 25  # the budget and a busy machine


def gap_names(report, node):
    """None when the report is whole, in time, and says something about this node."""
    if report.trouble:
        return report.trouble
    if report.seconds > LIMIT_S:
        return "took %.0f s" % report.seconds
    nodes = {n["host"]: n for n in report.json["nodes"]}
    if not all(nodes.get(other, {}).get("reached") for other in ("node0", "node1")):
        return "the healthy nodes have no facts: %s" % nodes
    named = [g for g in report.json["gaps"] if g.get("node") == node]
    return None if named else "no gap names %s" % node


def agents(lab, host):
    """Outside process ids of distdoctor agents on a host."""
    found = []
    init = os.readlink("/proc/%d/ns/pid" % lab.init(host))
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                words = f.read().split(b"\0")
            if os.readlink("/proc/%s/ns/pid" % pid) == init and words[0].endswith(b"distdoctor") and b"agent" in words:
                found.append(int(pid))
        except OSError:
            continue
    return found


def start_check(lab, *args):
    argv = [lab.distdoctor, "check", "-o", "json", *args]
    return lab.popen(0, argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def await_agent(lab, host, limit=10):
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found = agents(lab, host)
        if found:
            return found
        time.sleep(0.005)
    return []


def hit_agent(number):
    """The agent of node2 gets a signal while it works."""
    def act(lab):
        p = start_check(lab, *PEERS, *BUDGET)
        begun = time.monotonic()
        pids = await_agent(lab, 2)
        for pid in pids:
            os.kill(pid, number)
        try:
            out = p.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            return "did not end within %d s" % LIMIT_S
        if not pids:
            return "no agent seen on node2"
        answer = json.loads(out)
        nodes = {n["host"]: n["reached"] for n in answer["nodes"]}
        if not nodes.get("node0") or not nodes.get("node1"):
            return "the healthy nodes have no facts: %s" % nodes
        if not any(g.get("node") == "node2" for g in answer["gaps"]):
            return "no gap names node2 (%.1f s)" % (time.monotonic() - begun)
        return leftovers(lab)
    return act


def leftovers(lab):
    """What must be gone soon after the end: agents and listeners of distdoctor."""
    end = time.monotonic() + 12
    while time.monotonic() < end:
        left = {h: agents(lab, h) for h in range(lab.hosts) if agents(lab, h)}
        stopped = [pid for pids in left.values() for pid in pids if is_stopped(pid)]
        if len(stopped) == sum(map(len, left.values())):  # a stopped process cannot end; that is the fault itself
            return None
        time.sleep(0.2)
    return "agents left behind: %s" % left


def is_stopped(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "TZ"
    except OSError:
        return True


def interrupt(lab):
    """Ctrl-C: a partial diagnosis, marked as such, nothing left on any node."""
    p = start_check(lab, *PEERS)
    await_agent(lab, 2)
    time.sleep(0.2)
    os.killpg(p.pid, signal.SIGINT)
    try:
        out, err = p.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        return "did not end within 10 s of Ctrl-C"
    if not out.strip():
        return "no diagnosis at all: %s" % err.decode(errors="replace")[-200:]
    answer = json.loads(out)
    if "interrupt" not in json.dumps(answer).lower() + err.decode(errors="replace").lower():
        return "does not say that it was interrupted"
    return leftovers(lab)


def peer_gap(*more):
    def act(lab):
        return gap_names(lab.check([*PEERS, *BUDGET, *more]), "node2")
    return act


LAUNCHER = """#!/bin/bash
host=$1; shift
[ "$host" = node2 ] && exec %s
exec ssh "$host" "$@"
"""


def odd_launcher(words):
    """node2's end of the channel is another program."""
    def act(lab):
        lab.write_shared("launch.sh", LAUNCHER % words)
        report = lab.check([*PEERS, *BUDGET, "--launch", "bash %s/launch.sh {host}" % lab.shared])
        return gap_names(report, "node2")
    return act


def healthy(lab):
    """In spite of what was injected: everything seen, nothing found."""
    report = lab.check(PEERS)
    if report.trouble:
        return report.trouble
    return "exit %s, %s" % (report.status, report.loud()) if report.status or report.loud() else None


def read_only(lab):
    for host in range(lab.hosts):
        lab.run(host, ["mount", "-o", "remount,bind,ro", "/"])
    report = lab.check(PEERS)
    # That is what is wrong here, and nothing else.
    others = report.trouble or set(report.loud()) - {"host-disk-read-only"}
    return "exit %s, %s" % (report.status, others) if others or report.status else None


def full_disk(lab):
    for host in range(lab.hosts):
        lab.run(host, ["sh", "-c", "mount -t tmpfs -o size=4k full /tmp; mount -t tmpfs -o size=4k full /var/tmp; "
                       "cat /dev/zero > /tmp/full; cat /dev/zero > /var/tmp/full"])
    return healthy(lab)


def short_budget(lab):
    """Nothing answers and little time: an answer all the same."""
    report = lab.check([*PEERS, "--budget", "3"])
    if report.trouble:
        return report.trouble
    return "took %.1f s" % report.seconds if report.seconds > 8 else None


def all_blind(lab):
    """No peer answers: inconclusive, exit 3."""
    report = lab.check(["--peers", "node1,node2", "--master", "node1:29500", *BUDGET])
    if report.trouble:
        return report.trouble
    return None if report.status == 3 else "exit %s, expected 3" % report.status


def worker_alone(lab):
    """No peers named: what a node dials by itself counts, too."""
    report = lab.check(["--master", "node0:29500"], host=1)
    if report.trouble:
        return report.trouble
    first = report.findings[0]["code"] if report.findings else None
    return None if first == "rendezvous-port-dropped" else "first is %s, exit %s" % (first, report.status)


def too_short(lab):
    """A budget that is too short to see anything: gaps, and no finding of a healthy network."""
    for budget in ("300ms", "600ms", "900ms", "1200ms"):
        report = lab.check([*PEERS, "--budget", budget])
        if report.trouble or report.loud():
            return "%s: %s" % (budget, report.trouble or report.loud())
    return None


def bare_peer(lab):
    """--push: a node without distdoctor runs ranks, too, and keeps nothing of it."""
    program = lab.run(2, ["readlink", "-f", lab.distdoctor])[1].strip()
    for folder in {os.path.dirname(lab.distdoctor), os.path.dirname(program)}:
        lab.run(2, ["mount", "-t", "tmpfs", "none", folder])
    args = ["--backend", "gloo", "--push", "--peers", "node0,node2", "--sizes", "8", "--max-runs", "1"]
    report = lab.check(args, command="bisect")
    if report.trouble:
        return report.trouble
    ranks = [(r["place"]["node"], r["outcome"]) for r in report.json["experiments"][0]["ranks"]]
    if sorted(ranks) != [("node0", "ok"), ("node2", "ok")]:
        return "ranks: %s" % ranks
    kept = lab.run(2, ["sh", "-c", "ls -d /dev/shm/distdoctor* /tmp/distdoctor.* 2>/dev/null"])[1]
    return "left: " + kept.strip() if kept.strip() else leftovers(lab)


def env_makes_it_right(lab):
    """What `env` prints, evaluated by a shell, makes the job pass that hangs without it."""
    if lab.play(NCCL).word == "pass":
        return "the fault does not hurt the job"
    argv = [lab.distdoctor, "env", "--peers", "node0,node1,node2", "--master", "node0:29500"]
    status, out, err = lab.run(0, argv, timeout=LIMIT_S)
    shell = ["env", "-i", "bash", "-c", 'eval "$0"; export -p', out]
    names = lab.run(0, shell)[1]
    exports = dict(re.findall(r'^declare -x (\w+)="(.*)"$', names, re.M))
    env = {k: v for k, v in exports.items() if k.startswith(("NCCL_", "GLOO_"))}
    if not env:
        return "env: status %s, %s" % (status, (err or out).strip()[-200:])
    outcome = lab.play(dataclasses.replace(NCCL, env=env), 4)
    return None if outcome.word in ("pass", "skip") else "with %s the job: %s" % (env, outcome.word)


def lost_since(lab):
    """A link that went down after the earlier look is a notice, and only then."""
    with open("/proc/uptime", encoding="ascii") as uptime:  # what a boot does counts for nothing
        time.sleep(max(0, 320 - float(uptime.read().split()[0])))
    job = (*PEERS, "--no-probe", "--backend", "gloo", "--env", "GLOO_SOCKET_IFNAME=eth1")
    old = ("--since", os.path.join(lab.shared, "old.json"))
    told = []
    for more in (("--save", old[1]), old, old):
        report = lab.check([*job, *more])
        if report.trouble:
            return report.trouble
        told.append([(f["severity"], f["subjects"]["nodes"]) for f in report.findings
                     if f["code"] == "net-link-flaps"])
        if len(told) == 2:
            lab.run(1, ["sh", "-c", "ip link set eth1 down; sleep 0.2; ip link set eth1 up; sleep 2"])
    return None if told == [[], [], [("notice", ["node1"])]] else "told %s" % told


TROUBLE = [
    Trouble("link-lost-since", lost_since),
    Trouble("env-makes-it-right", env_makes_it_right, ("fault all first-link br-f00ba4 172.18.0.1/16",)),
    Trouble("peer-stopped-midway", hit_agent(signal.SIGSTOP)),
    Trouble("peer-killed-midway", hit_agent(signal.SIGKILL)),
    Trouble("peer-ssh-refused", peer_gap(), ("fault node2 ssh-down",)),
    Trouble("peer-ssh-silent", peer_gap(), ("fault node2 ssh-silent",)),
    Trouble("peer-ssh-key", peer_gap(), ("fault node2 ssh-key",)),
    Trouble("peer-prints-garbage", odd_launcher("cat /dev/urandom")),
    Trouble("peer-prints-forever", odd_launcher("yes please read the wiki")),
    Trouble("peer-says-nothing", odd_launcher("sleep 100")),
    Trouble("peer-ends-at-once", odd_launcher("false")),
    Trouble("short-budget", short_budget, ("fault node1 drop-from 10.10.0.10", "fault node2 ssh-silent")),
    Trouble("read-only-disk", read_only),
    Trouble("full-disk", full_disk),
    Trouble("all-peers-unreachable", all_blind, ("fault node1 ssh-down", "fault node2 ssh-down")),
    Trouble("bare-peer", bare_peer),
    Trouble("worker-alone", worker_alone, ("fault node0 drop 29500",)),
    Trouble("too-short", too_short),
    Trouble("ctrl-c", interrupt),
]
