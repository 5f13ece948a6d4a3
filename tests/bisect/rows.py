"""What is broken, and where `bisect` must say that it is. Places are node0 or node0:3."""
import dataclasses

LARGE = "8,64k,256M"  # large enough to judge bandwidth


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    script: str  # of the stand-in: ../programs/sim_nccl/script.h
    layer: str = ""  # expected; empty: nothing is wrong
    places: tuple = ()
    names: tuple = ()
    ailment: str = ""  # "" accepts any
    nodes: tuple = ("node0", "node1")
    ranks: int = 4  # on each node
    env: tuple = ()  # the job's own settings
    sizes: str = "8,64k"
    flaky: bool = False
    most_runs: int = 60
    stage: str = "10s"

    def exhaustive(self):
        """Runs of toggling by hand: every switch, every node and every pair of GPUs of a node, each twice."""
        switches = 12
        pairs = len(self.nodes) * self.ranks * (self.ranks - 1) // 2
        return 2 * (1 + switches + len(self.nodes) + pairs)


HANG = "4s"  # what a step may take where a row is a hang: all but the hang must be faster on a busy machine
CARDS = "hca mlx5_0 100\nhca mlx5_1 100\n"
RDMA = ("node4", "node5")
ONE = ("node0",)

FAULTS = [
    # --- inside a node, 2 x 4 ---
    Row("p2p-pair", "fault p2p node0:2 node0:3 corrupt", "P2P", ("node0:2", "node0:3"), ailment="corrupts"),
    Row("p2p-pair-hangs", "fault p2p node1:0 node1:3 hang", "P2P", ("node1:0", "node1:3"), ailment="hangs", stage=HANG),
    Row("p2p-gpu", "fault p2p node1:1 fail", "P2P", ("node1:1",), ailment="fails"),
    Row("p2p-node", "fault p2p node1 corrupt", "P2P", ("node1",)),
    Row("p2p-everywhere", "fault p2p fail", "P2P"),
    Row("p2p-later", "fault p2p node0 corrupt from 2", "P2P", ("node0",)),
    Row("p2p-flaky", "fault p2p corrupt every 2", "P2P", flaky=True),
    Row("shm-node", "lacks p2p\nfault shm node1 fail", "SHM", ("node1",), ailment="fails"),
    Row("shm-everywhere", "lacks p2p\nfault shm hang", "SHM", ailment="hangs", stage=HANG),
    Row("shm-pair", "lacks p2p\nfault shm node0:0 node0:1 corrupt", "SHM", ("node0:0", "node0:1")),
    Row("shm-too-small", "", "SHM", ("node2", "node3"), nodes=("node2", "node3"), ailment="fails"),
    Row("shm-too-small-on-one", "", "SHM", ("node6",), nodes=("node0", "node6"), ailment="fails"),
    Row("nvls", "fault nvls fail", "NVLS", ailment="fails"),
    Row("nvls-node", "fault nvls node0 corrupt", "NVLS", ("node0",)),
    Row("cumem", "fault cumem corrupt", "CUMEM"),
    Row("cumem-node", "fault cumem node1 fail", "CUMEM", ("node1",)),
    # --- anywhere ---
    Row("algorithm", "fault tree corrupt", "algorithm"),
    Row("protocol", "fault ll128 corrupt", "protocol"),
    Row("own-setting", "fault setting NCCL_PROTO=LL128 corrupt", "settings", names=("NCCL_PROTO",),
        env=("NCCL_PROTO=LL128", "NCCL_BUFFSIZE=4194304", "NCCL_ALGO=Ring")),
    Row("own-setting-hangs", "fault setting NCCL_NTHREADS=64 hang", "settings", names=("NCCL_NTHREADS",),
        env=("NCCL_NTHREADS=64", "NCCL_MIN_NCHANNELS=2"), stage=HANG),
    # --- a place ---
    Row("node", "fault node node1 fail", "node", ("node1",)),
    Row("node-hangs", "fault node node0 hang", "node", ("node0",), ailment="hangs", stage=HANG),
    Row("node-of-three", "fault node node1 corrupt", "node", ("node1",), nodes=("node0", "node1", "node4"), ranks=2),
    Row("gpu", "fault gpu node0:3 corrupt", "GPU", ("node0:3",), ailment="corrupts"),
    Row("gpu-crashes", "fault gpu node1:0 crash", "GPU", ("node1:0",)),
    Row("driver-node", "fault driver node1 fail", "node", ("node1",)),
    Row("driver", "fault driver fail", "setup"),
    Row("gpus-too-few", "gpus 3", "GPU", ("node0:3", "node1:3")),
    # --- between nodes ---
    Row("wire", "fault wire node0 node1 corrupt", "link", ("node0", "node1")),
    Row("iface", "fault iface eth1 corrupt", "interface", names=("eth1",)),
    Row("iface-hangs", "fault iface eth0 hang", "interface", names=("eth0",), ailment="hangs", stage=HANG),
    Row("ib", CARDS + "fault ib fail", "IB", nodes=RDMA, ailment="fails"),
    Row("gdr", CARDS + "fault gdr corrupt", "GDR", nodes=RDMA),
    Row("hca", CARDS + "fault hca mlx5_1 corrupt", "HCA", names=("mlx5_1",), nodes=RDMA),
    Row("pxn", CARDS + "fault pxn corrupt", "PXN", nodes=RDMA),
    # --- 2 x 8, and one node ---
    Row("p2p-pair-of-8", "fault p2p node1:6 node1:7 corrupt", "P2P", ("node1:6", "node1:7"), ranks=8),
    Row("gpu-of-8", "fault gpu node0:5 fail", "GPU", ("node0:5",), ranks=8),
    Row("node-of-8", "fault node node1 corrupt", "node", ("node1",), ranks=8),
    Row("one-p2p-pair", "fault p2p node0:0 node0:2 fail", "P2P", ("node0:0", "node0:2"), nodes=ONE),
    Row("one-gpu", "fault gpu node0:1 corrupt", "GPU", ("node0:1",), nodes=ONE),
    Row("one-nvls", "fault nvls corrupt", "NVLS", ("node0",), nodes=ONE),
    Row("one-gpu-of-8", "fault gpu node0:6 corrupt", "GPU", ("node0:6",), nodes=ONE, ranks=8),
    # --- slow ---
    Row("p2p-slow", "fault p2p slow 20", "P2P", ailment="slow", nodes=ONE, sizes=LARGE),
    Row("cumem-slow", "fault cumem slow 20", "CUMEM", ailment="slow", nodes=ONE, sizes=LARGE),
    Row("iface-slow", "fault iface eth1 slow 10", "interface", names=("eth1",), ailment="slow", ranks=1, sizes=LARGE),
    Row("straggler", "fault gpu node0:2 slow 6", "straggler", ("node0:2",), ailment="slow", nodes=ONE, sizes=LARGE),
]

HEALTHY = [
    Row("healthy-2x4", "", most_runs=4),
    Row("healthy-2x8", "", ranks=8, most_runs=4),
    Row("healthy-1x4", "", nodes=ONE, most_runs=4),
    Row("healthy-1x8-without-p2p", "lacks p2p", nodes=ONE, ranks=8, most_runs=4),
    Row("healthy-2x4-rdma", CARDS, nodes=RDMA, most_runs=4),
    Row("healthy-3x2", "", nodes=("node0", "node1", "node4"), ranks=2, most_runs=4),
    Row("healthy-1x1", "", nodes=ONE, ranks=1, most_runs=4),
]
