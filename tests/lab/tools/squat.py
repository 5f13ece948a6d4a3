"""Holds a TCP port in one of several ways, as other programs do. Test program of the lab."""
import argparse
import http.server
import os
import socket
import time


def listen(port, backlog=8):
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    s.listen(backlog)
    return s


def bound(port):
    """Neither SO_REUSEADDR nor listen(): a program that prepares a server, or forgot it."""
    s = socket.socket(socket.AF_INET6)
    s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    s.bind(("::", port))
    return s


def backlog_full(port):
    """A listener that never accepts; our own connections fill its queue (backlog 1 holds 2)."""
    held = [listen(port, 1)]
    for _ in range(8):
        c = socket.socket()
        c.setblocking(False)
        c.connect_ex(("127.0.0.1", port))
        held.append(c)
        time.sleep(0.02)
    return held


def outgoing(port, peer):
    """An ordinary client (to the peer's sshd) whose own port is PORT."""
    s = socket.socket()
    s.bind(("", port))
    s.connect((peer, 22))
    return s


def stale(port):
    """The rank of a job whose launcher died (nslab has detached us): nobody is connected."""
    env = dict(os.environ, RANK="0", LOCAL_RANK="0", WORLD_SIZE="2", MASTER_ADDR=socket.gethostname(),
               MASTER_PORT=str(port), TORCHELASTIC_RUN_ID="old")
    code = ("import socket,time\ns=socket.socket(socket.AF_INET6)\n"
            "s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)\n"
            "s.bind(('::',%d)); s.listen(64)\nopen('/run/squat.ready','w').close()\ntime.sleep(3600)" % port)
    os.execve("/usr/bin/python3", ["python3", "-c", code, "train.py"], env)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--listen", type=int)
    p.add_argument("--bound", type=int)
    p.add_argument("--http", type=int)
    p.add_argument("--stale", type=int)
    p.add_argument("--outgoing", type=int)
    p.add_argument("--backlog-full", type=int)
    p.add_argument("--peer")
    p.add_argument("--seconds", type=float, default=3600)
    a = p.parse_args()
    held = []
    if a.stale:
        stale(a.stale)
    if a.listen:
        held.append(listen(a.listen))
    if a.bound:
        held.append(bound(a.bound))
    if a.outgoing:
        held.append(outgoing(a.outgoing, a.peer))
    if a.backlog_full:
        held.append(backlog_full(a.backlog_full))
    server = a.http and http.server.HTTPServer(("", a.http), http.server.SimpleHTTPRequestHandler)
    open("/run/squat.ready", "w").close()
    if server:
        server.serve_forever()
    time.sleep(a.seconds)


main()
