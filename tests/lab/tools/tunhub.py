"""A VPN of one machine: tun0 in each named network namespace, packets carried by destination address.

tunhub.py PREFIX NETNS ...   (tun0 of the k-th namespace is PREFIX.(10+k)/24)
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
IFF_TUN_NO_PI = 0x1001


def enter(path):
    fd = os.open(path, os.O_RDONLY)
    if LIBC.setns(fd, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns " + path)
    os.close(fd)


def tun(namespace, address):
    enter("/run/netns/" + namespace)
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"tun0", IFF_TUN_NO_PI))
    for args in (["addr", "add", address + "/24", "dev", "tun0"], ["link", "set", "tun0", "mtu", "1400", "up"]):
        subprocess.run(["ip"] + args, check=True)
    return fd


def main():
    prefix, names = sys.argv[1], sys.argv[2:]
    by_address, poll = {}, select.poll()
    for k, name in enumerate(names):
        address = "%s.%d" % (prefix, 10 + k)
        fd = tun(name, address)
        by_address[bytes(map(int, address.split(".")))] = fd
        poll.register(fd, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            packet = os.read(fd, 2048)
            to = by_address.get(packet[16:20])
            if packet[0] >> 4 == 4 and to is not None:
                os.write(to, packet)


main()
