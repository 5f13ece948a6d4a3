"""A name server of one hosts file: A, AAAA and PTR-less. dns.py ADDRESS HOSTS_FILE"""
import ipaddress
import socket
import struct
import sys

TYPES = {1: 4, 28: 6}  # A, AAAA -> IP version


def read_hosts(path):
    table = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            address, *names = line.split("#")[0].split() or [""]
            for name in names:
                table.setdefault(name.lower(), []).append(ipaddress.ip_address(address))
    return table


def question(packet):
    labels, at = [], 12
    while packet[at]:
        labels.append(packet[at + 1 : at + 1 + packet[at]].decode("ascii", "replace").lower())
        at += 1 + packet[at]
    return ".".join(labels), struct.unpack_from("!H", packet, at + 1)[0], packet[12 : at + 5]


def answer(packet, table):
    name, kind, asked = question(packet)
    known = table.get(name)
    records = [a for a in known or [] if a.version == TYPES.get(kind)]
    flags = 0x8580 | (0 if known else 3)  # authoritative; NXDOMAIN for an unknown name
    head = packet[:2] + struct.pack("!HHHHH", flags, 1, len(records), 0, 0)
    body = b"".join(b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 60, len(a.packed)) + a.packed for a in records)
    return head + asked + body


def main():
    table = read_hosts(sys.argv[2])
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((sys.argv[1], 53))
    while True:
        packet, peer = s.recvfrom(2048)
        try:
            s.sendto(answer(packet, table), peer)
        except (IndexError, struct.error, OSError):
            continue


main()
