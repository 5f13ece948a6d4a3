#!/usr/bin/python3
"""Random network namespaces and random NCCL variables: the real NCCL and our prediction must agree.

    nccl_interfaces.py BUILD_DIR [--seed N] [--cases N] [--only NAMESPACE]

Each namespace gets links of random names, kinds, states, order and addresses; each of its cases a
random environment, and perhaps a config file. BUILD_DIR holds tests/programs/nccl_interface_oracle,
which asks the real library, and tests/differential/predict_here, which asks ours. A case that
differs is printed with what is needed to see it again. The last line counts the cases.
"""
import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

CASES_EACH = 5  # environments in one namespace
PREFIX = f"rules{os.getpid()}"
FAR = PREFIX + "far"  # the other ends of the links
NAMES = """eth0 eth1 eth10 eth2 ens5 enp1s0f0np0 ib0 ib1 ibft0 ibs5 docker0 docker_gwbridge lowlat0
lom0 virbr0 virbr1 br-f00ba4 veth1234 tailscale0 wg0 cni0 tun7 bond0 ETH0 e i l d eth0.100 mlx5_0
abcdefghijklmno =eth1 ^eth0 eth0,1""".split()
FIXED = ["^docker0", "^docker,lo", "^lo", "^lo,docker,virbr", "=", "^", ",", ",,", "=,", "^,", "^=",
         "lo", "=lo", "^=lo", "l", "lo:1", "10.0.0.1", "eth*", "", " ", ":5", "=^eth1", "^^eth0",
         "=ib0,eth0", "eth0 ", " eth0", "eth0;eth1", '"eth0"', "eth0,eth1\r"]
FAMILIES = ["AF_INET", "AF_INET6", "inet6", "AF_INET ", ""]


def ip(namespace, commands, check=True):
    """Runs a batch of ip commands; what the kernel refuses is passed over, as it is random."""
    done = subprocess.run(["ip", "-force", "-n", namespace, "-batch", "-"], text=True,
                          input="\n".join(commands) + "\n", capture_output=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"ip -n {namespace}: {done.stderr}")


def random_v4(rng):
    base = rng.choice(["10.0.{a}.{b}", "10.{a}.0.{b}", "192.168.122.{b}", "172.17.0.{b}",
                       "169.254.{a}.{b}", "100.64.{a}.{b}"])
    prefix = rng.choice([8, 16, 24, 24, 24, 31, 32])
    return base.format(a=rng.randrange(4), b=rng.randrange(1, 250)) + f"/{prefix}"


def random_v6(rng):
    base = rng.choice(["fd00:0:0:{a:x}::{b:x}", "2001:db8:{a:x}::{b:x}", "fe80::{a:x}:{b:x}"])
    prefix = 64 if base.startswith("fe80") else rng.choice([48, 64, 64, 128])
    return base.format(a=rng.randrange(1, 4), b=rng.randrange(1, 250)) + f"/{prefix}"


class Topology:
    """The commands that make one random namespace."""

    def __init__(self, rng, number):
        self.rng = rng
        self.namespace = f"{PREFIX}n{number}"
        self.links = rng.sample(NAMES, rng.choice([0, 1, 1, 2, 3, 3, 4, 5, 6, 20]))
        self.far = []   # commands at the other ends
        self.make = []  # links
        self.set_up = []  # addresses and states
        self.addresses = []
        self.index = 2
        self.loopback()
        for link in self.links:
            self.add_link(link)
        self.set_up.sort(key=lambda _: rng.random())

    def loopback(self):
        rng = self.rng
        if rng.random() < 0.85:
            self.make.append("link set lo up")
        if rng.random() < 0.2:
            address = random_v4(rng)
            self.addresses.append(("lo", address))
            self.make.append(f"addr add {address} dev lo")

    def add_link(self, name):
        rng = self.rng
        self.index += rng.choice([1, 1, 1, 2, 7, 300])
        at = f"link add name {name} index {self.index}"
        kind = rng.choice(["veth"] * 6 + ["bridge", "macvlan", "vxlan", "ifb", "tun"])
        if kind == "veth":
            end = f"{self.namespace[len(PREFIX):]}i{self.index}"
            self.make.append(f"{at} type veth peer name {end} netns {FAR}")
            if rng.random() < 0.85:
                self.far.append(f"link set {end} up")
        elif kind == "tun":
            self.make.append(f"tuntap add {name} mode tun")
        elif kind == "vxlan":
            self.make.append(f"{at} type vxlan id {self.index} dstport {4000 + self.index}")
        elif kind == "macvlan" and self.index > 3 and self.links.index(name) > 0:
            self.make.append(f"{at} link {self.links[0]} type macvlan mode bridge")
        else:
            self.make.append(f"{at} type {'bridge' if kind == 'macvlan' else kind}")
        if rng.random() < 0.3:
            self.make.append(f"link set {name} addrgenmode none")
        if rng.random() < 0.85:
            self.make.append(f"link set {name} up")
        self.add_addresses(name)

    def add_addresses(self, name):
        rng = self.rng
        for number in range(rng.choice([0, 1, 1, 1, 2, 3])):
            v6 = rng.random() < 0.35
            address = random_v6(rng) if v6 else random_v4(rng)
            self.addresses.append((name, address))
            if v6:
                self.set_up.append(f"addr add {address} dev {name} nodad")
            elif rng.random() < 0.15 and address.endswith("/32"):
                bare = address.split("/")[0]
                self.set_up.append(f"addr add {bare} peer 10.200.0.{number + 1}/24 dev {name}")
            elif rng.random() < 0.2 and len(name) < 13:
                self.set_up.append(f"addr add {address} dev {name} label {name}:{number}")
            else:
                self.set_up.append(f"addr add {address} dev {name}")

    def create(self):
        subprocess.run(["ip", "netns", "add", self.namespace], check=True)
        # Nobody can bind the kernel's own link-local address while it still looks for doubles of it.
        subprocess.run(["ip", "netns", "exec", self.namespace, "sysctl", "-qw", "net.ipv6.conf.all.accept_dad=0",
                        "net.ipv6.conf.default.accept_dad=0"], check=True)
        ip(self.namespace, self.make, check=False)
        ip(FAR, self.far, check=False)
        ip(self.namespace, self.set_up, check=False)

    def remove(self):
        subprocess.run(["ip", "netns", "del", self.namespace], check=False)


def random_names(rng, topology):
    """A value for NCCL_SOCKET_IFNAME."""
    known = topology.links + ["lo", "eth", "ib", "docker", "virbr", "br", "nosuch0"]
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(FIXED)
    if kind < 0.35:
        letters = "^=,:,: 019ehtobidcklrvn"
        return "".join(rng.choice(letters) for _ in range(rng.randrange(1, 12)))
    names = [rng.choice(known) for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 18]))]
    names = [name[:rng.randrange(1, len(name) + 1)] if rng.random() < 0.2 else name
             for name in names]
    names = [name + rng.choice([":1", ":", ":x"]) if rng.random() < 0.1 else name
             for name in names]
    head = rng.choice(["", "", "", "=", "=", "^", "^", "^="])
    return head + ",".join(names) + rng.choice(["", "", "", ","])


def random_comm_id(rng, topology):
    kind = rng.random()
    if kind < 0.2:
        return rng.choice(["", "x", ":1", "[::1]:1", "[", "[fd00::1", "[zz]:1", "localhost:1",
                           "127.0.0.1:29500", "10.99.99.99:1", "[fe80::1]:1"])
    if not topology.addresses:
        return "10.0.0.1:29500"
    link, address = rng.choice(topology.addresses)
    host, _ = address.split("/")
    if ":" in host:
        host = re.sub(r"[0-9a-f]+$", "77", host)
        zone = rng.choice(["", "%" + link, "%" + link, "%nosuch0"]) if "fe80" in host else ""
        return f"[{host}{zone}]:{rng.randrange(65536)}"
    host = re.sub(r"\d+$", str(rng.randrange(1, 250)), host) if rng.random() < 0.7 else host
    return rng.choice([f"{host}:1234", host, f"{host}:x"])


def random_variables(rng, topology):
    variables = {}
    if rng.random() < 0.8:
        variables["NCCL_SOCKET_IFNAME"] = random_names(rng, topology)
    if rng.random() < 0.25:
        variables["NCCL_SOCKET_FAMILY"] = rng.choice(FAMILIES)
    if rng.random() < 0.3:
        variables["NCCL_COMM_ID"] = random_comm_id(rng, topology)
    return variables


def random_config(rng, topology):
    lines = []
    for _ in range(rng.randrange(1, 4)):
        for name, value in random_variables(rng, topology).items():
            form = rng.choice(["{n}={v}"] * 5 + ["#{n}={v}", " {n}={v}", "export {n}={v}",
                                                 "{n} = {v}", '{n}="{v}"', "{n}={v} # c", "{n}"])
            lines.append(form.format(n=name, v=value) + rng.choice(["\n"] * 5 + ["\r\n"]))
    text = "".join(lines)
    return text.rstrip("\n") if rng.random() < 0.2 else text


class Case:
    def __init__(self, rng, topology, folder, number):
        self.topology = topology
        self.variables = random_variables(rng, topology)
        self.config = random_config(rng, topology) if rng.random() < 0.25 else None
        if self.config is not None:
            path = os.path.join(folder, f"nccl{number}.conf")
            with open(path, "w", encoding="utf-8", newline="") as out:
                out.write(self.config)
            self.variables["NCCL_CONF_FILE"] = path

    def ask(self, *command):
        environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **self.variables}
        if "DD_LIBNCCL" in os.environ:
            environment["DD_LIBNCCL"] = os.environ["DD_LIBNCCL"]
        done = subprocess.run(["ip", "netns", "exec", self.topology.namespace, *command],
                              env=environment, text=True, capture_output=True, check=False,
                              timeout=60)
        if done.returncode != 0:
            return [f"exit status {done.returncode}: {done.stderr.strip()}"]
        return done.stdout.splitlines()

    def show(self, real, ours):
        print(f"DIFFERENT in {self.topology.namespace}")
        for command in self.topology.make + self.topology.set_up:
            print(f"    ip {command}")
        for name, value in self.variables.items():
            print(f"    {name}={value!r}")
        if self.config is not None:
            print(f"    config: {self.config!r}")
        for line in real:
            print(f"    NCCL: {line}")
        for line in ours:
            print(f"    ours: {line}")


def plain(lines):
    """Our words have no head such as "Bootstrap : "; Gloo is nobody's business here."""
    heads = re.compile(r"^(\w+ error) (?:Bootstrap|NET/Socket|Net) : ")
    return [heads.sub(r"\1 ", line) for line in lines if not line.startswith("gloo")]


def agree(case, oracle, ours, version):
    real, predicted = plain(case.ask(oracle)), plain(case.ask(ours, version))
    if "net_socket unknown" in real:
        real, predicted = real[:1], predicted[:1]
    if real != predicted or not real:
        case.show(real, predicted)
        return False
    return True


def skip(why):
    print(f"skipped: {why}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


def version_of_library(oracle):
    done = subprocess.run([oracle, "--version"], text=True, capture_output=True, check=False)
    if done.returncode == 77:
        skip(done.stderr.strip().split("skipped: ")[-1])
    return done.stdout.strip()


def run_namespaces(topologies, programs, folder):
    """Passed and failed cases. Links settle within about a second (the kernel's linkwatch)."""
    for topology, _ in topologies:
        topology.create()
    time.sleep(1.5)
    cases = []
    for topology, rng in topologies:
        for number in range(CASES_EACH):
            cases.append(Case(rng, topology, folder, f"{topology.namespace}-{number}"))
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        results = list(pool.map(lambda case: agree(case, *programs), cases))
    for topology, _ in topologies:
        topology.remove()
    return results.count(True), results.count(False)


def remove_namespaces():
    listed = subprocess.run(["ip", "netns", "list"], text=True, capture_output=True, check=False)
    for line in listed.stdout.splitlines():
        if line.startswith(PREFIX):
            subprocess.run(["ip", "netns", "del", line.split()[0]], check=False)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=240)
    parser.add_argument("--only", type=int, help="the cases of this namespace alone")
    options = parser.parse_args()
    if os.geteuid() != 0:
        skip("network namespaces need root")
    oracle = os.path.join(options.build, "tests/programs/nccl_interface_oracle")
    ours = os.path.join(options.build, "tests/differential/predict_here")
    programs = (oracle, ours, version_of_library(oracle))
    if subprocess.run(["ip", "netns", "add", FAR], capture_output=True, check=False).returncode:
        skip("this machine lets us make no network namespace")
    numbers = range(-(-options.cases // CASES_EACH)) if options.only is None else [options.only]
    passed = failed = 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for begin in range(0, len(numbers), 12):
                topologies = []
                for number in numbers[begin:begin + 12]:
                    rng = random.Random(f"{options.seed} {number}")
                    topologies.append((Topology(rng, number), rng))
                more = run_namespaces(topologies, programs, folder)
                passed, failed = passed + more[0], failed + more[1]
    finally:
        remove_namespaces()
    print(f"NCCL {programs[2]}, seed {options.seed}: {passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
