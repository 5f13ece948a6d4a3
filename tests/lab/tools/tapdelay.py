"""Joins two tap devices of this network namespace; each frame is held for MS milliseconds, both ways.

tapdelay.py TAP_A TAP_B MS [LOSS_PERCENT]
"""
import collections
import fcntl
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x1002
HELD = 8192  # frames a direction; more are dropped, as a queue would


def tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_NO_PI))
    return fd


def send_due(queue, fd, now):
    while queue and queue[0][0] <= now:
        try:
            os.write(fd, queue.popleft()[1])
        except OSError:
            pass


def receive(fd, queue, due, loss):
    for _ in range(64):
        try:
            frame = os.read(fd, 9216)
        except OSError:
            return
        if len(queue) < HELD and random.random() >= loss:
            queue.append((due, frame))


def main():
    ends = [tap(sys.argv[1]), tap(sys.argv[2])]
    delay = float(sys.argv[3]) / 1e3
    loss = float(sys.argv[4]) / 100 if len(sys.argv) > 4 else 0.0
    queues = [collections.deque(), collections.deque()]
    while True:
        now = time.monotonic()
        for k in (0, 1):
            send_due(queues[k], ends[1 - k], now)
        waits = [q[0][0] - now for q in queues if q]
        ready = select.select(ends, [], [], max(0.0, min(waits)) if waits else None)[0]
        for k in (0, 1):
            if ends[k] in ready:
                receive(ends[k], queues[k], time.monotonic() + delay, loss)


main()
