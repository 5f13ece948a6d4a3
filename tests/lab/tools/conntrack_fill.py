"""Fills this network namespace's connection tracking table to its limit, through ctnetlink.

The limit is one number for the whole machine and stays as it is; the table is this namespace's own. The
entries are "assured", since the kernel gives up unassured ones to make room.
"""
import socket
import struct
import sys

NETLINK_NETFILTER = 12
CT_NEW = 1 << 8  # NFNL_SUBSYS_CTNETLINK, IPCTNL_MSG_CT_NEW
REQUEST_CREATE = 0x1 | 0x400
STATUS = 0x2 | 0x4 | 0x8  # SEEN_REPLY, ASSURED, CONFIRMED
NESTED = 0x8000
BATCH = 256


def attr(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def tuple_attr(kind, source, target, source_port, target_port):
    ip = attr(1 | NESTED, attr(1, source) + attr(2, target))
    proto = attr(2 | NESTED, attr(1, b"\x11") + attr(2, struct.pack("!H", source_port)) + attr(3, struct.pack("!H", target_port)))
    return attr(kind | NESTED, ip + proto)


def entry(n):
    a, b = bytes([198, 18, n >> 16 & 255, 1]), bytes([198, 19, 0, 1])
    port = n & 0xFFFF
    body = struct.pack("=BBH", socket.AF_INET, 0, 0)
    body += tuple_attr(1, a, b, port, 9) + tuple_attr(2, b, a, 9, port)
    body += attr(3, struct.pack("!I", STATUS)) + attr(7, struct.pack("!I", 3600))
    return struct.pack("=IHHII", 16 + len(body), CT_NEW, REQUEST_CREATE, n & 0x7FFFFFFF, 0) + body


def read_number(name):
    with open("/proc/sys/net/netfilter/" + name, encoding="ascii") as f:
        return int(f.read())


def main():
    limit = read_number("nf_conntrack_max")
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER)
    s.setblocking(False)
    for start in range(0, limit + BATCH, BATCH):
        s.send(b"".join(entry(n) for n in range(start, start + BATCH)))
        try:
            while s.recv(65536):
                pass
        except BlockingIOError:
            pass
        except OSError:  # ENOBUFS: answers that we did not read in time
            pass
    held = read_number("nf_conntrack_count")
    print("%d of %d" % (held, limit))
    sys.exit(0 if held >= limit else 1)


main()
