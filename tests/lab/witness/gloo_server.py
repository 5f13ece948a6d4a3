"""Runs gloo_job in hosts of the lab without importing torch each time (a second of CPU a rank).

Reads one JSON object a line: {"id": 1, "init": PID, "env": {...}, "log": PATH}; init is the PID 1 of the host,
seen from outside. Each rank is forked from here, enters all namespaces of the host, takes the environment and
runs the same code as `python3 gloo_job.py`. Answers {"id": 1, "pid": P} at once and {"id": 1, "exit": N} at its
end. What such a rank cannot show is its environment in /proc: rows where `check` must see the job start it anew.
"""
import ctypes
import json
import os
import select
import signal
import sys

import gloo_job

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enter(init):
    fds = [os.open("/proc/%d/ns/%s" % (init, kind), os.O_RDONLY) for kind in ("ipc", "uts", "net", "pid", "mnt")]
    for fd in fds:
        if LIBC.setns(fd, 0):
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)


def rank(request):
    """In a child: the process that becomes the rank, and the one that waits for it (a PID namespace is entered by fork)."""
    die_with_parent()
    os.setsid()
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for fd in (1, 2):
        os.dup2(log, fd)
    enter(request["init"])
    inner = os.fork()
    if inner:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(inner, signal.SIGKILL))
        os._exit(os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1]) & 0xFF)
    die_with_parent()
    os.chdir("/")
    os.environ.clear()
    os.environ.update(request["env"])
    try:
        gloo_job.main()
    except SystemExit as end:
        os._exit(end.code or 0)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def say(**answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def reap(running):
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        say(id=running.pop(pid), exit=os.waitstatus_to_exitcode(status))


def requests():
    """Complete lines as they come; None every 50 ms, so that the dead are reaped."""
    held = b""
    while True:
        if not select.select([0], [], [], 0.05)[0]:
            yield None
            continue
        data = os.read(0, 65536)
        if not data:
            return
        *lines, held = (held + data).split(b"\n")
        yield from map(json.loads, lines)


def main():
    running = {}
    for request in requests():
        if request:
            pid = os.fork()
            if pid == 0:
                rank(request)
            running[pid] = request["id"]
            say(id=request["id"], pid=pid)
        reap(running)


main()
