"""A network card that reports a speed: a tap in a host, joined to a tap in the switch.

taplink.py HOST_NETNS NAME SWITCH_NETNS PORT MBIT
(veth always says 10,000 Mbit/s; a tap says what it is told.)
"""
import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
IFF_TAP_NO_PI = 0x1002


def tap(namespace, name):
    with open("/run/netns/" + namespace, "rb") as f:
        if LIBC.setns(f.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns " + namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP_NO_PI))
    return fd


def main():
    host, name, switch, port, mbit = sys.argv[1:]
    ends = [tap(host, name)]
    subprocess.run(["ethtool", "-s", name, "speed", mbit, "duplex", "full", "autoneg", "off"], check=True)
    ends.append(tap(switch, port))
    subprocess.run(["ip", "link", "set", port, "master", "br0", "up"], check=True)
    while True:
        for fd in select.select(ends, [], [])[0]:
            frame = os.read(fd, 65536)
            try:
                os.write(ends[1 - ends.index(fd)], frame)
            except OSError:  # the other end is down
                continue


main()
