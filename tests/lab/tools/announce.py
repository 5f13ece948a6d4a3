"""Says at short intervals that ADDRESS is at our LINK, as a host does that uses it; ends when the address is gone.

announce.py LINK ADDRESS
"""
import socket
import struct
import sys
import time

ETH_P_ARP = 0x0806


def is_ours(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.bind((address, 0))
        except OSError:
            return False
    return True


def main():
    link, address = sys.argv[1:]
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((link, ETH_P_ARP))
    mac, ip = s.getsockname()[4], socket.inet_aton(address)
    arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2) + mac + ip + b"\xff" * 6 + ip
    frame = b"\xff" * 6 + mac + struct.pack("!H", ETH_P_ARP) + arp
    while is_ours(address):
        s.send(frame)
        time.sleep(0.01)


main()
