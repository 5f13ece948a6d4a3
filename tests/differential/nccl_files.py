#!/usr/bin/python3
"""Files that NCCL_TOPO_FILE and NCCL_GRAPH_FILE may name: where the real NCCL stops, we say so.

    nccl_files.py BUILD_DIR

The real libnccl reads each file in tests/programs/nccl_files_oracle, and `distdoctor check` judges
it. Plugins likewise: what NCCL opens for a name is what `distdoctor facts` shows. The last line
counts the cases.
"""
import json
import os
import subprocess
import sys
import tempfile

SYSTEM = '<system version="1">\n  <cpu numaid="0" affinity="ff" arch="x86_64" vendor="x" familyid="1" modelid="2"/>\n</system>\n'
FILES = {
    "empty": "", "blank": " \n", "text": "hello\n", "system": SYSTEM, "blanks_first": "\n\n  " + SYSTEM,
    "comment": "<!-- a machine -->\n" + SYSTEM, "graphs": '<graphs version="1"></graphs>\n',
    "other_root": '<foo a="1"></foo>\n', "declaration": '<?xml version="1.0"?>\n' + SYSTEM,
    "version_2": SYSTEM.replace('"1"', '"2"', 1), "no_version": "<system></system>\n",
    "json": '{"system": 1}\n', "mark": "\ufeff" + SYSTEM, "one": "x", "nul": "\0",
}
PLUGIN = "struct plugin { const char* name; } ncclNetPlugin_v8 = {\"Fake Net\"};\n"
NAMES = ["", "foo", "bar", "libbar.so", "libbar", "nothere", "libnccl-net-foo.so", "{}/bar"]


def run(*command, **variables):
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False,
                          errors="replace", stderr=subprocess.DEVNULL)


class Both:
    def __init__(self, build):
        self.oracle = os.path.join(build, "tests/programs/nccl_files_oracle")
        self.ours = os.path.join(build, "distdoctor")
        self.passed = self.failed = 0

    def count(self, what, real, ours):
        if real == ours:
            self.passed += 1
        else:
            self.failed += 1
            print(f"{what}: NCCL {real!r}, we {ours!r}")

    def file(self, kind, variable, path):
        asked = run(self.oracle, kind, path)
        if asked.returncode == 77:
            print("0 passed, 0 failed, 1 skipped")
            sys.exit(0)
        stops = (asked.stdout.strip().splitlines() or [""])[-1] != "0"
        said = run(self.ours, "check", "--backend", "nccl", "--only", "env-topo-file-bad", "-o", "json",
                   **{variable: path})
        findings = json.loads(said.stdout)["diagnosis"]
        self.count(f"{variable}={path}", stops, any("NCCL stops" in one["summary"] for one in findings))

    def plugin(self, name, folder):
        asked = run(self.oracle, "plugin", name, LD_LIBRARY_PATH=folder)
        real = (asked.stdout.strip().splitlines() or [""])[-1]
        said = run(self.ours, "facts", LD_LIBRARY_PATH=folder, NCCL_NET_PLUGIN=name)
        plugins = json.loads(said.stdout)["software"]["plugins"]
        ours = [os.path.dirname(one["path"]) for one in plugins if one["kind"] == "net"]
        self.count(f"NCCL_NET_PLUGIN={name}", os.path.realpath(real) if real else "",
                   os.path.realpath(ours[0]) if ours else "")


def main():
    both = Both(os.path.abspath(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        os.mkdir(os.path.join(folder, "folder"))
        for name in [*FILES, "folder", "nothere"]:
            both.file("topo", "NCCL_TOPO_FILE", os.path.join(folder, name))
            both.file("graph", "NCCL_GRAPH_FILE", os.path.join(folder, name))
        source = os.path.join(folder, "plugin.c")
        with open(source, "w", encoding="utf-8") as out:
            out.write(PLUGIN)
        os.mkdir(os.path.join(folder, "lib"))
        os.chdir(os.path.join(folder, "lib"))
        for name in ["bar", "libbar.so", "libnccl-net-foo.so", "libnccl-net.so"]:
            subprocess.run(["cc", "-shared", "-fPIC", source, "-o", name], check=True)
        for name in NAMES:
            both.plugin(name.format(os.getcwd()), os.getcwd())
        os.chdir("/")
    print(f"{both.passed} passed, {both.failed} failed, 0 skipped")
    return 1 if both.failed else 0


if __name__ == "__main__":
    sys.exit(main())
