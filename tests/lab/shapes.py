"""The healthy shapes: the job passes, and `check` must have nothing of severity blocker or degraded to say."""
from labkit import Job
from rows import Shape

NCCL = Job("nccl")


def gloo(**env):
    return Job(env=env)


TORCHRUN = ("--nnodes", "2", "--nproc_per_node", "1", "--monitor_interval", "1")
STATIC = (*TORCHRUN, "--master_addr", "node0", "--master_port", "29500", "--node_rank")
C10D = (*TORCHRUN, "--rdzv_backend", "c10d", "--rdzv_id", "j1", "--rdzv_endpoint", "node0:29400")


def torchrun(*args):
    """A job under torchrun, and `check` told by its launch line on node0."""
    line = [a.replace("{i}", "0") for a in args]
    return {"job": Job("torchrun", args=args, deadline=25),
            "check": ("--peers", "node0,node1", "--", "torchrun", *line, "train.py")}


SHAPES = [
    Shape("healthy-torchrun", **torchrun(*STATIC, "{i}")),
    Shape("healthy-torchrun-c10d", **torchrun(*C10D)),
    Shape("healthy-two-nics"),
    Shape("healthy-two-nics-nccl", job=NCCL),
    Shape("healthy-no-settings", check=("--peers", "node0,node1")),
    Shape("healthy-one-nic", ("shape all one-nic",)),
    Shape("healthy-four-hosts-fast", hosts=4, job=gloo(GLOO_SOCKET_IFNAME="eth1")),
    Shape("healthy-sixteen-hosts", hosts=16, job=NCCL),
    Shape("healthy-ipv6-only", ("shape all ipv6-only",)),
    Shape("healthy-ipv6-only-nccl", ("shape all ipv6-only",), job=NCCL),
    Shape("healthy-dual-stack", ("shape all dual-stack",)),
    Shape("healthy-two-addresses", ("shape all two-addresses",)),
    Shape("healthy-host32", ("shape all host32",)),
    Shape("healthy-host32-nccl", ("shape all host32",), job=NCCL),
    Shape("healthy-ib-names", ("shape all ib-names",), job=NCCL),
    Shape("healthy-bridge", ("shape all bridge",)),
    Shape("healthy-bridge-nccl", ("shape all bridge",), job=NCCL),
    Shape("healthy-virbr0", ("shape all virbr",), job=NCCL),
    Shape("healthy-nodelocaldns", ("shape all nodelocaldns",)),
    Shape("healthy-vpn-chosen", ("shape all vpn",), job=Job("nccl", env={"NCCL_SOCKET_IFNAME": "=tun0"})),
    Shape("healthy-vpn-beside", ("shape node0 vpn-alone", "shape node1 vpn-alone")),
    Shape("healthy-ifname-exact", job=Job("nccl", env={"NCCL_SOCKET_IFNAME": "=eth1"})),
    Shape("healthy-docker-up", ("fault all docker-up",)),
    Shape("healthy-dns-server", ("shape all dns",)),
    Shape("healthy-addresses-as-peers", job=gloo(MASTER_ADDR="10.10.0.10"),
          check=("--peers", "10.10.0.10,10.10.0.11", "--master", "10.10.0.10:29500")),
    Shape("healthy-other-coordinator", hosts=3, job=Job(members=2),
          check=("--peers", "node0,node1", "--master", "node0:29500")),
    Shape("healthy-hostnames-differ", ("fault node0 hostname gpu-a", "fault node1 hostname gpu-b"),
          job=gloo(GLOO_SOCKET_IFNAME="eth0")),
    Shape("healthy-hostname-loopback-ifname", ("fault all dns-loopback",),
          job=gloo(MASTER_ADDR="10.10.0.10", GLOO_SOCKET_IFNAME="eth0")),
    Shape("healthy-hostname-loopback-luck", ("fault node1 dns-loopback",)),
    # Gloo on the larger address connects, so that nobody has to connect to it
    Shape("healthy-container-bridge-luck", ("fault node1 container-bridge node2 172.18.0",), hosts=3, job=Job(members=2),
          check=("--peers", "node0,node1", "--master", "node0:29500", "--backend", "gloo")),
    Shape("healthy-port-in-ephemeral-range", job=gloo(MASTER_PORT="41234")),
    Shape("healthy-port-range-narrowed", ("shape all port-range 20000 20999",)),
    Shape("healthy-time-wait", ("shape node0 time-wait 29500",)),
    Shape("healthy-firewall-open", ("shape all firewall-ok",)),
    Shape("healthy-ufw-open", ("shape all ufw-ok",), needs=("ufw",)),
    Shape("healthy-no-icmp", ("shape all no-icmp",)),
    Shape("healthy-asymmetric-route", ("shape node1 asymmetric",), job=gloo(GLOO_SOCKET_IFNAME="eth1")),
    Shape("healthy-docker-mtu", ("shape node1 docker-mtu",)),
    Shape("healthy-unused-link-down", ("fault node1 link-down eth1",)),
    Shape("healthy-unused-mtu", ("fault node1 mtu 1500 eth1",)),
    Shape("healthy-noise", ("shape all noise",)),
    Shape("healthy-non-root", user="lab"),
    Shape("healthy-policy-rules", ("fault node1 policy-rule 192.0.2.0/24",)),
    Shape("healthy-running-job", job=Job(env={"JOB_STAY": "1"}), live=True, check=("--peers", "node0,node1")),
    Shape("healthy-jobs-of-one-node", live=True, check=("--peers", "node0,node1"),
          job=Job(env={"JOB_STAY": "1", "MASTER_ADDR": "localhost", "WORLD_SIZE": "1", "RANK": "0"})),
    Shape("healthy-torchruns-of-one-node", live=True, check=("--peers", "node0,node1"),
          job=Job("torchrun", args=("--nproc_per_node", "2", "--monitor_interval", "1"), env={"JOB_STAY": "1"},
                  deadline=25)),
    Shape("healthy-rank0-late", job=Job(ranks=(1,)), late=(0,), check=("--peers", "node0,node1")),
    Shape("healthy-workers-late", job=Job(ranks=(0,)), late=(1,), check=("--peers", "node0,node1")),
]
