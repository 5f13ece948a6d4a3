#!/usr/bin/python3
"""Random RDMA devices and random NCCL variables: the real NCCL and our prediction must agree.

    nccl_hcas.py BUILD_DIR [--seed N] [--cases N] [--only CASE]

Each case is a random sysfs tree and a random environment. The real libnccl sees the tree through
fake_ibverbs, a stand-in for libibverbs, and, in a mount namespace of its own, as /sys/class; ours
reads it as any machine. BUILD_DIR holds tests/programs/nccl_hca_oracle, tests/differential/
predict_hcas and tests/differential/fake/libibverbs.so. A case that differs is printed with what is
needed to see it again. The last line counts the cases.
"""
import argparse
import ipaddress
import os
import random
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

NAMES = """mlx5_0 mlx5_1 mlx5_2 mlx5_3 mlx5_4 mlx5_10 mlx5_11 mlx5_ib0 mlx5_ib1 mlx5_bond_0
rocep24s0 ibp24s0 bnxt_re0 bnxt_re1 mlx4_0 erdma_0 rdmap0s6 m""".split()
STATES = ["4: ACTIVE"] * 6 + ["1: DOWN", "2: INIT", "3: ARMED", "5: ACTIVE_DEFER", "0: NOP"]
LAYERS = ["InfiniBand"] * 4 + ["Ethernet"] * 4 + ["Unspecified"]
FIXED = ["", ",", ",,", "^", "=", "^=", "=^mlx5_0", "^^mlx5_0", "mlx5_0:", "=mlx5_0:", "mlx5_0:x",
         "mlx5_0, mlx5_1", " mlx5_0", "mlx5_0 ", ":1", "^:1", "MLX5_0", "mlx5*", "mlx5_0;mlx5_1",
         "mlx5_0:1:2", "mlx5_0:01", "mlx5_0:+1", "mlx5_0:-1", '"mlx5_0"', "mlx5_0\r"]
NUMBERS = ["0", "1", "2", "3", "-1", "-2", "true", "", "0x1", "03", "1x", " 1", "300",
           "99999999999999999999"]
V6 = ["fe80::1:{b:x}", "fd00:0:0:{a:x}::{b:x}", "2001:db8:{a:x}::{b:x}", "ff0e::ffff:10.0.{a}.{b}"]
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"


def full(address):
    return ipaddress.IPv6Address(address).exploded


def random_gid(rng):
    a, b = rng.randrange(3), rng.randrange(1, 200)
    if rng.random() < 0.55:
        return full(f"::ffff:{rng.choice(['10.0', '10.1', '192.168', '169.254'])}.{a}.{b}")
    return full(rng.choice(V6).format(a=a, b=b))


def random_gids(rng, layer):
    """(GID, type) of each place; unused ones at the end, and some between."""
    if layer == "InfiniBand":
        return [(full(f"fe80::{rng.randrange(1, 99)}"), "IB/RoCE v1"), (ZERO, "")]
    places = []
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 6])):
        gid = random_gid(rng) if rng.random() < 0.85 else full("fe80::2")
        types = rng.choice([["IB/RoCE v1", "RoCE v2"]] * 4 + [["RoCE v2"], ["IB/RoCE v1"],
                                                             ["RoCE v2", "IB/RoCE v1"]])
        places += [(gid, kind) for kind in types]
        if rng.random() < 0.2:
            places.append((ZERO, ""))
    return places + [(ZERO, "")] * rng.randrange(1, 4)


class Tree:
    """What the machine of one case looks like, as files below `root`."""

    def __init__(self, rng, root):
        self.root, self.rng = root, rng
        self.names = []
        many = rng.random() < 0.06
        count = rng.randrange(30, 40) if many else rng.choice([0, 1, 1, 2, 3, 4, 8, 10])
        names = [f"mlx5_{i}" for i in range(count)] if many else rng.sample(NAMES, count)
        for folder in ("sys/class/infiniband", "sys/class/infiniband_verbs", "dev/infiniband"):
            os.makedirs(os.path.join(root, folder))
        self.write("usr/lib/x86_64-linux-gnu/libibverbs.so.1", "")
        self.cards = self.random_cards()
        for number, name in enumerate(names):
            # The limit of NCCL's table is looked at between devices, never between their ports.
            self.add_device(name, number, 1 if many else rng.choice([1, 1, 1, 2]))

    def random_cards(self):
        """PCI buses to choose from; none: no device has a PCI address. (Of a device without one and
        one with it NCCL 2.28.9 dies.)"""
        count = self.rng.choice([0, 1, 1, 1, 2, 2, 40])
        return [f"0000:{bus:02x}" for bus in range(24, 24 + count)]

    def add_card(self, name):
        """A PCI function, and the first one of its card, which stands for it."""
        slot = self.rng.choice(["00", "00", "00", "02"])
        bus, function = self.rng.choice(self.cards), self.rng.randrange(4)
        pci = os.path.join(self.root, "sys/class/pci")
        for address in (f"{slot}.{function}", f"{slot}.0", "00.0"):
            folder = os.path.join(pci, f"{bus}:{address}")
            os.makedirs(folder, exist_ok=True)
            if not os.path.lexists(folder + "/subsystem"):
                os.symlink("..", folder + "/subsystem")  # which is called pci
        os.symlink(f"../../pci/{bus}:{slot}.{function}",
                   os.path.join(self.root, "sys/class/infiniband", name, "device"))

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(text + "\n" if text else "")

    def add_device(self, name, number, ports):
        rng = self.rng
        self.names.append(name)
        self.write(f"sys/class/infiniband_verbs/uverbs{number}/ibdev", name)
        if rng.random() < 0.9:
            self.write(f"dev/infiniband/uverbs{number}", "")
        for port in range(1, ports + 1):
            layer = rng.choice(LAYERS)
            folder = f"sys/class/infiniband/{name}/ports/{port}"
            self.write(f"{folder}/state", rng.choice(STATES))
            self.write(f"{folder}/link_layer", layer)
            for place, (gid, kind) in enumerate(random_gids(rng, layer)):
                self.write(f"{folder}/gids/{place}", gid)
                self.write(f"{folder}/gid_attrs/types/{place}", kind)
        if self.cards:
            self.add_card(name)


def random_names(rng, known):
    """A value for NCCL_IB_HCA."""
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(FIXED)
    if kind < 0.3:
        return "".join(rng.choice("^=,:, 012mlx5_") for _ in range(rng.randrange(1, 12)))
    known = known + ["mlx5", "mlx5_1", "nosuch0"]
    names = [rng.choice(known) for _ in range(rng.choice([1, 1, 2, 3, 5, 40]))]
    names = [name[:rng.randrange(1, len(name) + 1)] if rng.random() < 0.2 else name
             for name in names]
    names = [name + rng.choice([":1", ":2", ":", ":x", ":0"]) if rng.random() < 0.3 else name
             for name in names]
    return rng.choice(["", "", "=", "=", "^", "^="]) + ",".join(names) + rng.choice(["", "", ","])


def random_range(rng):
    if rng.random() < 0.25:
        return rng.choice(["", "x", "10.0.0.0", "10.0.0.0/", "/8", "10.0.0.0/99", "10.0.0.0/-1",
                           "fd00::/200", "10.0.0.0/8x", "::/0"])
    return rng.choice(["10.0.0.0/{n}", "10.0.1.0/24", "10.1.0.0/16", "192.168.0.0/16", "fd00::/8",
                       "fd00:0:0:1::/64", "2001:db8:1::/{m}", "0.0.0.0/0"]).format(
                           n=rng.randrange(33), m=rng.randrange(129))


def random_variables(rng, known):
    variables = {}
    if rng.random() < 0.75:
        variables["NCCL_IB_HCA"] = random_names(rng, known)
    if rng.random() < 0.1:
        variables["NCCL_IB_DISABLE"] = rng.choice(NUMBERS)
    if rng.random() < 0.15:
        variables["NCCL_IB_GID_INDEX"] = rng.choice(["0", "1", "3", "-1", "x", ""])
    if rng.random() < 0.3:
        variables["NCCL_IB_ROCE_VERSION_NUM"] = rng.choice(["1", "2", "2", "0", "v2", ""])
    if rng.random() < 0.4:
        variables["NCCL_IB_ADDR_FAMILY"] = rng.choice(["AF_INET", "AF_INET6", "AF_INET6", "inet6", ""])
    if rng.random() < 0.4:
        variables["NCCL_IB_ADDR_RANGE"] = random_range(rng)
    if rng.random() < 0.15:
        variables["NCCL_IB_MERGE_NICS"] = rng.choice(NUMBERS)
    if rng.random() < 0.15:
        variables["NCCL_IB_MERGE_VFS"] = rng.choice(NUMBERS)
    if rng.random() < 0.1:
        variables["NCCL_NET_MERGE_LEVEL"] = rng.choice(["LOC", "PORT", "port", "", "0"])
    return variables


class Case:
    def __init__(self, seed, number, folder, programs):
        rng = random.Random(f"{seed} {number}")
        self.number, self.programs = number, programs
        self.root = os.path.join(folder, str(number))
        self.tree = Tree(rng, self.root)
        self.variables = random_variables(rng, self.tree.names)

    def ask(self, *command):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.variables,
                       "FAKE_IBVERBS_ROOT": self.root, "LD_LIBRARY_PATH": self.programs.fake}
        if "DD_LIBNCCL" in os.environ:
            environment["DD_LIBNCCL"] = os.environ["DD_LIBNCCL"]
        done = subprocess.run(command, env=environment, text=True, capture_output=True,
                              check=False, timeout=60)
        if done.returncode != 0:
            return [f"exit status {done.returncode}: {done.stderr.strip()}"]
        return done.stdout.splitlines()

    def agrees(self):
        mount = f'mount --bind "{self.root}/sys/class" /sys/class && exec "$0"'
        real = self.ask("unshare", "--mount", "sh", "-c", mount, self.programs.oracle)
        ours = self.ask(self.programs.ours, self.root, self.programs.version)
        if real == ours and real:
            shutil.rmtree(self.root)
            return True
        print(f"DIFFERENT in case {self.number}")
        for name, value in self.variables.items():
            print(f"    {name}={value!r}")
        for line in subprocess.run(["grep", "-r", ".", self.root], text=True, capture_output=True,
                                   check=False).stdout.splitlines():
            print("    " + line.removeprefix(self.root))
        for line in real:
            print(f"    NCCL: {line}")
        for line in ours:
            print(f"    ours: {line}")
        return False


def skip(why):
    print(f"skipped: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


class Programs:
    def __init__(self, build):
        self.oracle = os.path.join(build, "tests/programs/nccl_hca_oracle")
        self.ours = os.path.join(build, "tests/differential/predict_hcas")
        self.fake = os.path.abspath(os.path.join(build, "tests/differential/fake"))
        done = subprocess.run([self.oracle, "--version"], text=True, capture_output=True, check=False)
        if done.returncode == 77:
            skip(done.stderr.strip().split("skipped: ")[-1])
        self.version = done.stdout.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--only", type=int, help="this case alone")
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("mount namespaces need root")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        skip("this machine lets us make no mount namespace")
    programs = Programs(options.build)
    numbers = range(options.cases) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            results = list(pool.map(
                lambda number: Case(options.seed, number, folder, programs).agrees(), numbers))
    passed, failed = results.count(True), results.count(False)
    print(f"NCCL {programs.version}, seed {options.seed}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
