"""Real runs of Gloo between the hosts, by `distdoctor bisect`."""
from rows import Collective

# What hangs is not waited for long, and not often.
BRIEF = ("--stage-timeout", "4s", "--max-runs", "6", "--sizes", "8,64k,1M")
SIZES = ("--sizes", "8,64k,1M,8M")

COLLECTIVES = [
    Collective("bisect-healthy-2", "", args=SIZES, most_runs=4),
    Collective("bisect-healthy-3", "", hosts=3, args=SIZES, most_runs=4),
    Collective("bisect-slow-interface", "collective-interface-wrong", ("fault node1 slow 60mbit eth0",), hosts=3, args=SIZES),
    Collective("bisect-slow-node", "net-wire-slow", ("fault node1 slow 60mbit eth0", "fault node1 slow 60mbit eth1"),
               hosts=3, args=SIZES),
    Collective("bisect-loss", "net-packet-loss", ("fault node1 loss 5 eth0",), args=BRIEF),
    Collective("bisect-one-way", "net-one-way-dropped", ("fault node1 drop-new-from 10.10.0.10",), args=BRIEF),
    Collective("bisect-black-hole", "net-mtu-black-hole", ("fault node1 mtu-blackhole",),
               args=(*BRIEF, "--env", "GLOO_SOCKET_IFNAME=eth1")),
    Collective("bisect-wrong-interface", "net-gloo-interface-unreachable",
               args=(*BRIEF, "--env", "GLOO_SOCKET_IFNAME=docker0")),
]
