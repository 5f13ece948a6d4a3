"""Nothing is left behind: after Ctrl-C, after a worker was killed, after all rows. Each case returns what is wrong."""
import contextlib
import json
import os
import re
import signal
import time

from rows import Row

DEAF = "fault gpu node1:1 deaf"  # a hang that no abort ends: only SIGKILL does
SHARED = "lacks p2p\nfault shm node1 deaf"  # the same with segments in /dev/shm that nobody has taken over yet
GUARD_S = 60  # a loop that waits for something to begin gives up then


def wait_for(condition, seconds=GUARD_S):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    return condition()


def interrupted(stage):
    """Ctrl-C in the middle of a hang."""
    row = Row("interrupted", DEAF, stage="30s")
    process = stage.start(row)
    began = wait_for(lambda: len(stage.workers(process.script)) == 8)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    gone = wait_for(lambda: not stage.processes(process.script), 20)
    took = time.monotonic() - sent
    process.communicate(timeout=GUARD_S)
    print("        all gone %.1f s after Ctrl-C (2 s are promised on a machine that is not busy)" % took)
    if not began:
        return "the eight ranks never were there"
    if not gone:
        return "left: %s" % stage.processes(process.script)
    if process.returncode != 3:
        return "exit code %s" % process.returncode
    return "" if took < 10 else "it took %.1f s" % took


def worker_killed(stage):
    """SIGKILL for one rank of the baseline: that is a result, of that rank."""
    row = Row("worker-killed", DEAF, stage="8s", most_runs=1)
    process = stage.start(row)
    workers = wait_for(lambda: len(stage.workers(process.script)) == 8 and stage.workers(process.script))
    if not workers:
        process.kill()
        return "the eight ranks never were there"
    time.sleep(0.5)
    os.kill(workers[0], signal.SIGKILL)
    out, _ = process.communicate(timeout=GUARD_S)
    report = json.loads(out)
    ranks = report["experiments"][0]["ranks"]
    crashed = [r["error"] for r in ranks if r["outcome"] == "crashed"]
    if len(crashed) != 1:
        return "outcomes %s" % [r["outcome"] for r in ranks]
    if "SIGKILL" not in crashed[0]:
        return "it says: %s" % crashed[0]
    return left(stage, process.script)


def killed_by_agent(stage):
    """A rank that hears no abort is killed: its segments in /dev/shm go with it."""
    row = Row("killed-by-agent", SHARED, stage="4s", most_runs=1)
    report, _ = stage.bisect(row)
    outcome = report["experiments"][0]["outcome"]
    if outcome != "hung":
        return "outcome %s" % outcome
    return left(stage, os.path.join(stage.folder, row.name + ".script"))


def with_segments(stage, name):
    """A bisect whose ranks hang with segments in /dev/shm; None where they never come."""
    process = stage.start(Row(name, SHARED, stage="30s", most_runs=1))
    if wait_for(lambda: len(stage.workers(process.script)) == 8) and wait_for(stage.segments):
        time.sleep(0.5)
        return process
    process.kill()
    process.communicate()
    return None


def ended(stage, name, number, victims):
    process = with_segments(stage, name)
    if process is None:
        return "no segments"
    for pid in victims(process):
        with contextlib.suppress(ProcessLookupError):  # the first to go may take it along
            os.kill(pid, number)
    process.communicate(timeout=GUARD_S)
    wait_for(lambda: not stage.processes(process.script), 20)
    return left(stage, process.script)


def ranks_crashed(stage):
    """SIGKILL for all ranks at once: nobody can be asked any more what they had in /dev/shm."""
    return ended(stage, "ranks-crashed", signal.SIGKILL, lambda process: stage.workers(process.script))


def agents_told(stage):
    """SIGTERM for the agents, as of a batch system: they end their ranks first."""
    return ended(stage, "agents-told", signal.SIGTERM, lambda process: [
        pid for pid, line in stage.processes(process.script).items() if re.search(r"distdoctor\S* agent", line)])


def command_killed(stage):
    """SIGKILL for the command itself: agents and ranks end with it."""
    return ended(stage, "command-killed", signal.SIGKILL, lambda process: [process.pid])


def left(stage, script):
    running = wait_for(lambda: not stage.processes(script), 5) or stage.processes(script)
    if running is not True:
        return "processes left: %s" % running
    # Others may be at it just now; what stays for a while is left.
    if not wait_for(lambda: not stage.segments(), GUARD_S):
        return "segments left: %s" % stage.segments()
    return ""


def all_gone(stage):
    """After all of it: no process, no segment, no port that was not open before."""
    problem = left(stage, "")
    ports = wait_for(lambda: not stage.open_ports() - stage.ports, 10) or stage.open_ports() - stage.ports
    return problem or ("" if ports is True else "ports left: %s" % sorted(ports))


CASES = [interrupted, worker_killed, killed_by_agent, ranks_crashed, agents_told, command_killed]
