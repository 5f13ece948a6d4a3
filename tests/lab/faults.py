"""The faults: what is injected, which real job it hurts, which code must come first.

A row reads: name, verbs of nslab, expected code; then what differs from the defaults (a two-host Gloo job by
env:// variables, MASTER_ADDR=node0 MASTER_PORT=29500; `distdoctor check --peers node0,node1` with these settings
on node0; healed by undoing the fault where the printed fix is for hands only).
"""
from labkit import Job
from rows import Fault

TORCHRUN = ("--nnodes", "2", "--nproc_per_node", "1", "--node_rank", "{i}", "--master_addr", "node0",
            "--master_port", "29500")
C10D = ("--nnodes", "2", "--nproc_per_node", "1", "--rdzv_backend", "c10d", "--rdzv_id", "j1", "--monitor_interval", "1",
        "--rdzv_conf", "timeout=12,join_timeout=12", "--rdzv_endpoint")
NCCL = Job("nccl")
GLOO_ETH1 = Job(env={"GLOO_SOCKET_IFNAME": "eth1"})
NCCL_ETH1 = Job("nccl", env={"NCCL_SOCKET_IFNAME": "=eth1"})
UNRELATED = (("node1", "node0", 8080),)  # a service that the firewall hid before and must hide after


def gloo(**env):
    return Job(env=env)


def nccl(**env):
    return Job("nccl", env=env)


def each_node(*own):
    return Job(on=dict(enumerate(own)))


def c10d(endpoint, **env):
    return Job("torchrun", args=(*C10D, endpoint), env=env, deadline=25)


def command(*words):
    """check --peers node0,node1 -- COMMAND: the launch line is read, never run."""
    return ("--peers", "node0,node1", "--", *words)


FIREWALL = [
    Fault("port-dropped-nft", ("fault node0 drop 29500",), "rendezvous-port-dropped",
          rule="nft chain inet lab in, handle 3: tcp dport 29500 counter"),
    Fault("port-dropped-nft-set", ("fault node0 drop-set 29500",), "rendezvous-port-dropped",
          rule="nft chain inet site deep, handle 7: ip saddr @peers tcp dport @ports counter"),
    Fault("port-dropped-iptables", ("fault node0 iptables-drop 29500",), "rendezvous-port-dropped",
          needs=("iptables",), rule="iptables chain filter INPUT, rule 1: -A INPUT -p tcp -m tcp --dport 29500 -j DROP"),
    Fault("port-dropped-by-itself", ("fault node0 no-loopback",), "rendezvous-port-dropped", needs=("iptables",),
          rule="iptables chain filter INPUT, rule 1: -A INPUT -i lo -j DROP"),
    Fault("port-dropped-by-itself-policy", ("fault node0 forgot-loopback",), "rendezvous-port-dropped",
          needs=("iptables",), rule="iptables chain filter INPUT, policy: policy drop"),
    Fault("port-dropped-mangle", ("fault node0 mangle-drop 29500",), "rendezvous-port-dropped", needs=("iptables",),
          rule="iptables chain mangle PREROUTING, rule 1: -A PREROUTING -p tcp"),
    Fault("port-dropped-raw", ("fault node0 iptables-u32-drop 29500",), "rendezvous-port-dropped", needs=("iptables",),
          rule="iptables chain raw PREROUTING, rule 1: -A PREROUTING -p tcp"),
    Fault("port-dropped-iptables-legacy", ("fault node0 iptables-legacy-drop 29500",), "rendezvous-port-dropped",
          needs=("iptables-legacy",), rule="iptables-legacy chain filter INPUT, rule 2: -A INPUT -p tcp"),
    Fault("port-dropped-iptables-chain", ("fault node0 iptables-user-chain 29500",), "rendezvous-port-dropped",
          needs=("iptables",), rule="iptables chain filter DOCKER-USER, rule 3: -A DOCKER-USER -p tcp"),
    Fault("port-dropped-two-chains", ("fault node0 two-chains 29500",), "rendezvous-port-dropped",
          closed=(), rule="nft chain ip guard filter_in, handle 4: tcp dport { 29500, 32768-60999 }"),
    Fault("port-dropped-by-output", ("fault node1 drop-out 29500",), "rendezvous-port-dropped",
          rule="nft chain inet lab out, handle 3: tcp dport 29500"),
    Fault("port-answers-dropped", ("fault node0 iptables-drop-answers 29500",), "rendezvous-port-dropped",
          needs=("iptables",), rule="iptables chain filter OUTPUT, rule 1: -A OUTPUT -p tcp -m tcp --sport 29500 -j DROP"),
    Fault("port-data-dropped", ("fault node0 iptables-drop-data 29500",), "rendezvous-port-dropped", job=None,
          check=("--peers", "node0,node1", "--master", "node0:29500"), needs=("iptables",), rule="iptables chain filter INPUT, rule 1: -A INPUT -p tcp -m tcp"),
    Fault("port-answers-dropped-nft", ("fault node0 drop-answers 29500",), "rendezvous-port-dropped",
          rule="nft chain inet lab out, handle 3: tcp sport 29500"),
    Fault("port-dropped-between", ("fault node0 drop-between 29500",), "rendezvous-port-dropped"),
    Fault("policy-drop-nft", ("fault node0 policy-drop",), "rendezvous-port-dropped", closed=UNRELATED,
          rule="nft chain inet filter input, policy: policy drop"),
    Fault("policy-drop-two-chains", ("fault node0 two-policies",), "rendezvous-port-dropped", closed=UNRELATED,
          rule="nft chain ip guard filter_in, policy: policy drop"),
    Fault("ufw-default", ("fault node0 ufw",), "rendezvous-port-dropped", closed=UNRELATED, needs=("ufw",),
          rule="iptables chain filter INPUT, policy: policy drop"),
    Fault("firewalld-default", ("fault node0 firewalld",), "rendezvous-port-rejected", closed=UNRELATED,
          needs=("firewalld", "dbus-daemon"), rule="reject with icmpx admin-prohibited"),
    Fault("iptables-reject-all", ("fault node0 iptables-reject-all",), "rendezvous-port-rejected",
          closed=UNRELATED, needs=("iptables",), rule="iptables chain filter INPUT, rule 5: -A INPUT -j REJECT"),
    Fault("port-rejected-rst", ("fault node0 reject 29500",), "rendezvous-port-rejected",
          rule="reject with tcp reset"),
    Fault("port-rejected-admin", ("fault node0 reject-icmp 29500 admin-prohibited",), "rendezvous-port-rejected",
          rule="reject with icmpx admin-prohibited"),
    Fault("port-rejected-host-unreach", ("fault node0 reject-icmp 29500 host-unreachable",),
          "rendezvous-port-rejected", rule="reject with icmpx host-unreachable"),
    Fault("port-rejected-port-unreach", ("fault node0 reject-icmp 29500 port-unreachable",),
          "rendezvous-port-rejected", rule="tcp dport 29500"),
    Fault("port-rejected-net-prohibited", ("fault node0 reject-icmp4 29500 net-prohibited",),
          "rendezvous-port-rejected", rule="reject with icmp net-prohibited"),
    Fault("ephemeral-dropped", ("fault node0 drop-ephemeral",), "net-ephemeral-dropped",
          rule="tcp dport 32768-60999 counter"),
    Fault("ephemeral-dropped-high-part", ("fault all drop-ephemeral 40000-60999",), "net-ephemeral-dropped", job=None,
          rule="tcp dport 40000-60999 counter"),
    Fault("ephemeral-dropped-nccl", ("fault node1 drop-ephemeral",), "net-ephemeral-dropped", job=NCCL),
    Fault("ephemeral-rejected", ("fault node0 reject-ephemeral",), "net-ephemeral-rejected",
          rule="reject with tcp reset"),
    Fault("ephemeral-dropped-eth1", ("fault node0 drop-ephemeral",), "net-ephemeral-dropped", job=GLOO_ETH1),
    Fault("one-way-drop", ("fault node1 drop-new-from 10.10.0.10",), "net-one-way-dropped", job=NCCL,
          rule="ip saddr 10.10.0.10 ct state new tcp dport != 22"),
    # on the network that ssh does not need: a peer that nobody reaches at all leaves `check` blind
    Fault("all-dropped", ("fault node0 drop-from 10.20.0.11",), "net-peer-unreachable", job=GLOO_ETH1,
          rule="ip saddr 10.20.0.11"),
    Fault("conntrack-full", ("fault node0 conntrack-full",), "net-conntrack-full"),
]

RENDEZVOUS = [
    Fault("addr-unresolvable-one-node", ("fault node1 hosts-less node0",), "rendezvous-addr-unresolvable",
          cure=("heal node1",)),
    Fault("addr-unresolvable-everywhere", (), "rendezvous-addr-unresolvable", job=gloo(MASTER_ADDR="nodeX"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-dns-silent", ("fault node1 hosts-less node0", "fault node1 dns-silent"),
          "rendezvous-addr-unresolvable"),
    Fault("addr-split", ("fault node1 hosts-set node0 10.10.0.12",), "rendezvous-addr-split", hosts=3,
          job=Job(deadline=10)),
    Fault("addr-loopback-on-worker", ("fault node1 hosts-set node0 127.0.1.1",), "rendezvous-addr-loopback"),
    Fault("addr-loopback-seen-there", ("fault node1 hosts-set node0 127.0.1.1",), "rendezvous-addr-loopback", at=1),
    Fault("addr-broadcast", (), "rendezvous-addr-broadcast", job=gloo(MASTER_ADDR="10.10.0.255"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-localhost", (), "rendezvous-addr-loopback", job=gloo(MASTER_ADDR="localhost"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-other-node", (), "rendezvous-addr-other-node", job=gloo(MASTER_ADDR="node1"), live=True,
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-nobody", (), "rendezvous-addr-nobody", job=gloo(MASTER_ADDR="10.10.0.99"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-wildcard", (), "rendezvous-addr-wildcard", job=gloo(MASTER_ADDR="0.0.0.0"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("addr-missing", (), "rendezvous-addr-missing", job=gloo(MASTER_ADDR=None),
          check=command("env", "MASTER_PORT=29500", "WORLD_SIZE=2", "RANK=0", "python3", "train.py"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("port-missing", (), "rendezvous-port-missing", job=gloo(MASTER_PORT=None),
          check=command("env", "MASTER_ADDR=node0", "WORLD_SIZE=2", "RANK=0", "python3", "train.py"),
          cure_job={"MASTER_PORT": "29500"}),
    Fault("port-invalid", (), "rendezvous-port-invalid", job=gloo(MASTER_PORT="295000"),
          check=("--peers", "node0,node1", "--env", "MASTER_ADDR=node0", "--env", "MASTER_PORT=295000"),
          cure_job={"MASTER_PORT": "29500"}),
    Fault("port-in-use", ("fault node0 port 29500",), "rendezvous-port-in-use"),
    Fault("addr-carriage-return", (), "rendezvous-addr-blanks", job=gloo(MASTER_ADDR="node0\r")),
    Fault("port-bound-only", ("fault node0 port-bound 29500",), "rendezvous-port-taken"),
    Fault("port-in-use-http", ("fault node0 wrong-service 29500",), "rendezvous-port-in-use"),
    Fault("port-stale", ("fault node0 port-stale 29500",), "rendezvous-port-stale"),
    Fault("port-outgoing", ("fault node0 port-out 29500 10.10.0.11",), "rendezvous-port-outgoing"),
    Fault("accept-queue-full", ("fault node0 backlog-full 29500",), "rendezvous-accept-queue-full",
          job=Job(ranks=(1,)), cure_job={"MASTER_PORT": "29501"}),
    Fault("port-differs", (), "rendezvous-port-differs", live=True,
          job=each_node({}, {"MASTER_PORT": "29501"}), check=("--peers", "node0,node1"),
          cure_job={"MASTER_PORT": "29500"}),
    Fault("addr-differs", (), "rendezvous-addr-differs", live=True,
          job=each_node({}, {"MASTER_ADDR": "node1"}), check=("--peers", "node0,node1"),
          cure_job={"MASTER_ADDR": "node0"}),
    Fault("c10d-port-dropped", ("fault node0 drop 29400",), "rendezvous-port-dropped", job=c10d("node0:29400"),
          check=command("torchrun", *C10D, "node0:29400", "train.py")),
    # node2 has the address and is no part of the job: neither torch 1 nor torch 2 finds itself behind the name
    Fault("c10d-endpoint-unclaimed", ("fault all hosts-set head 10.10.0.12",), "rendezvous-endpoint-unclaimed",
          hosts=3, job=Job("torchrun", args=(*C10D, "head:29400"), members=2, deadline=25), check=command("torchrun", *C10D, "head:29400", "train.py"),
          cure_args=(*C10D, "node0:29400")),
    Fault("c10d-endpoint-localhost", (), "rendezvous-endpoint-claimed-twice", job=c10d("localhost:29400"),
          check=command("torchrun", *C10D, "localhost:29400", "train.py"), cure_args=(*C10D, "node0:29400")),
]

BATCH = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=%d
export MASTER_ADDR=node0 MASTER_PORT=29500
%s
"""
RUN = "torchrun --nnodes 2 --nproc_per_node 1 --node_rank %s --master_addr node0 --master_port 29500 train.py"


def batch(command_line, tasks=1):
    return {"files": {"job.sbatch": BATCH % (tasks, command_line)}, "check": command("bash", "{shared}/job.sbatch")}


def live(code, name, job, **more):
    return Fault(name, (), code, job=job, live=True, check=("--peers", "node0,node1"), **more)


NUMBERING = [
    live("env-world-size-differs", "world-size-differs", each_node({"WORLD_SIZE": "3"}, {}),
         cure_job={"WORLD_SIZE": "2"}),
    live("env-rank-duplicate", "rank-duplicate", each_node({"RANK": "1"}, {})),
    live("env-rank-missing", "rank-missing", gloo(WORLD_SIZE="3"), cure_job={"WORLD_SIZE": "2"}),
    live("env-rank-out-of-range", "rank-counted-from-one", each_node({"RANK": "1"}, {"RANK": "2"})),
    Fault("torchrun-first-node-only", (), "env-torchrun-first-node-only",
          job=Job("torchrun", args=TORCHRUN, ranks=(0,), deadline=12), **batch(RUN % "$SLURM_NODEID")),
    Fault("node-rank-expanded", (), "env-node-rank-expanded",
          job=Job("torchrun", args=(*TORCHRUN, "--node_rank", "0"), deadline=12), cure_args=TORCHRUN,
          **batch('srun bash -c "%s"' % RUN % "$SLURM_NODEID")),
    Fault("torchrun-per-task", (), "env-torchrun-per-task", job=None,
          cure_files=batch("srun %s" % RUN % "$SLURM_NODEID")["files"], **batch("srun %s" % RUN % "$SLURM_NODEID", 2)),
    Fault("nnodes-differs", (), "env-nnodes-differs",
          job=Job("torchrun", args=(*TORCHRUN, "--nnodes", "3"), deadline=12), cure_args=TORCHRUN,
          check=command("torchrun", "--nnodes", "3", *TORCHRUN[2:5], "0", *TORCHRUN[6:], "train.py")),
    Fault("launcher-conflict", (), "env-launcher-conflict", job=None,
          check=command("env", "MASTER_ADDR=node0", "MASTER_PORT=29500", "SLURM_PROCID=1", "SLURM_NTASKS=2", "RANK=0",
                        "WORLD_SIZE=2", "python3", "train.py")),
    Fault("same-hostname", ("fault node1 hostname node0",), "env-same-hostname", job=None),
    Fault("same-hostname-seen-there", ("fault node0 hostname node1",), "env-same-hostname", job=None),
]

INTERFACES = [
    Fault("nccl-ifname-missing", (), "net-nccl-ifname-no-match", job=nccl(NCCL_SOCKET_IFNAME="ib0"),
          cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-ifname-lo", (), "net-nccl-ifname-loopback", job=nccl(NCCL_SOCKET_IFNAME="^docker0"),
          cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-conf-lo", ("fault all nccl-conf NCCL_SOCKET_IFNAME=^docker0",), "net-nccl-ifname-loopback", job=NCCL),
    Fault("nccl-ifname-docker", ("fault all docker-up",), "net-nccl-interface-unreachable",
          job=nccl(NCCL_SOCKET_IFNAME="docker0"), cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-auto-bridge", ("fault all first-link br-f00ba4 172.18.0.1/16",), "net-nccl-interface-unreachable",
          job=NCCL, cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-auto-link-local", ("fault node0 first-link usb0 169.254.3.1/24",
                                   "fault node1 first-link usb0 169.254.3.1/24"),
          "net-nccl-interface-unreachable", job=NCCL, cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-auto-vpn", ("fault node0 first-link tun0 10.8.0.6/24", "fault node1 first-link tun0 10.9.0.6/24"),
          "net-nccl-interface-unreachable", job=NCCL, cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("nccl-ifname-prefix", ("fault all first-link eth10 192.168.77.1/24",), "net-nccl-interface-unreachable",
          job=nccl(NCCL_SOCKET_IFNAME="eth1"), cure_job={"NCCL_SOCKET_IFNAME": "=eth1"}),
    Fault("gloo-ifname-missing", (), "net-gloo-ifname-no-match", job=gloo(GLOO_SOCKET_IFNAME="ib0"),
          cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("gloo-ifname-docker", (), "net-gloo-interface-unreachable", job=gloo(GLOO_SOCKET_IFNAME="docker0"),
          cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("gloo-ifname-lo", (), "net-gloo-interface-unreachable", job=gloo(GLOO_SOCKET_IFNAME="lo"),
          cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("hostname-loopback-all", ("fault all dns-loopback",), "net-hostname-loopback",
          job=gloo(MASTER_ADDR="10.10.0.10"), cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("hostname-loopback-one", ("fault node0 dns-loopback",), "net-hostname-loopback",
          nets=("192.168.10", "192.168.20"), job=gloo(MASTER_ADDR="192.168.10.10"),
          cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("own-name-unresolvable-all", ("fault node0 hosts-less node0", "fault node1 hosts-less node1"),
          "net-hostname-loopback", job=gloo(MASTER_ADDR="10.10.0.10"), cure_job={"GLOO_SOCKET_IFNAME": "eth0"}),
    Fault("families-do-not-meet", ("shape all dual-stack", "fault node1 no-ipv4"), "net-address-family",
          job=nccl(MASTER_ADDR="node0"), check=("--peers", "node0,node1", "--master", "node0:29500")),
]

PATHS = [
    Fault("link-down", ("fault node1 link-down eth1",), "net-link-down", job=GLOO_ETH1),
    Fault("link-no-carrier", ("fault node1 no-carrier eth1",), "net-link-no-carrier", job=GLOO_ETH1),
    Fault("mtu-mismatch", ("fault node1 mtu 1500 eth1",), "net-mtu-mismatch", job=None,
          check=("--peers", "node0,node1", "--env", "NCCL_SOCKET_IFNAME==eth1")),
    Fault("mtu-black-hole", ("fault node1 mtu-blackhole",), "net-mtu-black-hole", job=GLOO_ETH1),
    Fault("neighbour-wrong", ("fault node1 wrong-neighbour 10.20.0.10",), "net-neighbour-wrong", job=GLOO_ETH1,
          check=("--peers", "node0,node1", "--master", "node0:29500", "--env", "GLOO_SOCKET_IFNAME=eth1", "--backend", "gloo")),
    Fault("bulk-lost", ("fault node1 long-packets 2000",), "net-bulk-lost", job=GLOO_ETH1, needs=("iptables",),
          check=("--peers", "node0,node1", "--master", "node0:29500", "--env", "GLOO_SOCKET_IFNAME=eth1", "--backend", "gloo"),
          rule="iptables chain filter OUTPUT, rule 1: -A OUTPUT -p tcp"),
    Fault("container-bridge", ("fault node1 container-bridge node2 10.5.0",), "net-container-bridge", hosts=3, job=Job(members=2),
          check=("--peers", "node0,node1", "--master", "node0:29500")),
    Fault("no-route", ("fault node1 no-route", "fault node1 no-default"), "net-no-route", job=GLOO_ETH1),
    Fault("no-route-unreachable", ("fault node1 unreachable 10.20.0.10/32",), "net-no-route", job=GLOO_ETH1),
    Fault("policy-rule", ("fault node1 policy-rule 10.20.0.0/24",), "net-policy-rule", job=GLOO_ETH1),
    Fault("policy-rule-port", ("fault node1 policy-rule-port 29500",), "net-policy-rule"),
    Fault("route-by-dead-router", ("fault node1 dead-router 10.20.0.10/32",), "net-no-route", job=GLOO_ETH1),
    Fault("loopback-down", ("fault node0 link-down lo",), "net-link-down"),
    Fault("reverse-path", ("fault node0 rp-filter",), "net-reverse-path", job=GLOO_ETH1),
    Fault("arp-flux", ("fault all same-subnet",), "net-arp-flux", job=GLOO_ETH1),
    Fault("duplicate-ip", ("fault node2 dup-ip 10.20.0.11",), "net-duplicate-ip", hosts=3,
          job=Job(env={"GLOO_SOCKET_IFNAME": "eth1"}, deadline=12),
          check=("--peers", "node0,node1,node2", "--master", "node0:29500", "--env", "GLOO_SOCKET_IFNAME=eth1")),
    Fault("packet-loss", ("fault node1 loss 5 eth0",), "net-packet-loss", job=None,
          check=("--peers", "node0,node1", "--master", "node0:29500")),
]

HOST = [
    Fault("shm-small", ("fault node1 shm 1m",), "host-shm-small", job=None),
    Fault("shm-full", ("fault node1 shm-full",), "host-shm-full", job=None),
    Fault("shm-read-only", ("fault node1 shm-ro",), "host-shm-read-only", job=None),
    Fault("shm-stale", ("fault node1 shm-stale",), "host-shm-stale", job=None),
]

FAULTS = FIREWALL + RENDEZVOUS + NUMBERING + INTERFACES + PATHS + HOST
