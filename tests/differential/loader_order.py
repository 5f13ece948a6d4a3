#!/usr/bin/python3
"""Which file the real loader takes for a library, and which one we say: they must agree.

    loader_order.py BUILD_DIR [--seed N] [--cases N] [--only CASE]

The compiler makes small libraries that need one library of the system, with DT_RPATH, DT_RUNPATH,
both over two steps, or neither; copies of that library lie in random ones of the folders. Each case
is a random environment (LD_PRELOAD, LD_LIBRARY_PATH with its odd forms) and a random asker. The real
loader runs in tests/programs/loader_victim, ours in tests/differential/predict_library. A case that
differs is printed with what is needed to see it again. The last line counts the cases.
"""
import argparse
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile

# In the loader's cache on most machines, and no part of the victim.
LIBRARIES = ["libnl-3.so.200", "libbz2.so.1.0", "liblzma.so.5", "libz.so.1"]
FOLDERS = ["rpath", "rpath2", "runpath", "path1", "path2", "program_rpath", "shim_runpath", "work"]
# Name of the asker: its own flags, and who loads it (None: the program opens it).
OLD, NEW = "-Wl,--disable-new-dtags,-rpath,", "-Wl,--enable-new-dtags,-rpath,"
ASKERS = {
    "plain": ([], None),
    "rpath": ([OLD + "$ORIGIN/../rpath"], None),
    "rpaths": ([OLD + "${ORIGIN}/../rpath2:$ORIGIN/../rpath"], None),
    "rpath_working": ([OLD + "$ORIGIN/../rpath:"], None),
    "runpath": ([NEW + "$ORIGIN/../runpath"], None),
    "runpaths": ([NEW + "/nowhere:$ORIGIN/../rpath2:$ORIGIN/../runpath"], None),
    "nodeflib": ([NEW + "$ORIGIN/../runpath", "-Wl,-z,nodefaultlib"], None),
    "below_rpath": ([], ([OLD + "$ORIGIN:$ORIGIN/../rpath"], "outer_rpath")),
    "below_runpath": ([], ([NEW + "$ORIGIN:$ORIGIN/../runpath"], "outer_runpath")),
    "rpath_below_runpath": ([OLD + "$ORIGIN/../rpath2"],
                            ([NEW + "$ORIGIN:$ORIGIN/../runpath"], "outer_mixed")),
    "runpath_below_rpath": ([NEW + "$ORIGIN/../runpath"],
                            ([OLD + "$ORIGIN:$ORIGIN/../rpath"], "outer_old")),
}


def run(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def library_here():
    """Name and path of one of LIBRARIES that the cache leads to."""
    for line in run("/sbin/ldconfig", "-p").splitlines():
        words = line.split()
        if words and words[0] in LIBRARIES and "64" in line and os.path.exists(words[-1]):
            return words[0], words[-1]
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)


class Workshop:
    """The folders, the askers and the programs."""

    def __init__(self, build, folder):
        self.folder = folder
        self.name, self.system = library_here()
        self.victims = [self.path("bin/victim"), self.path("bin/victim_rpath")]
        self.predict = os.path.join(build, "tests/differential/predict_library")
        for name in FOLDERS + ["bin", "askers", "other"]:
            os.makedirs(self.path(name))
        victim = os.path.join(build, "tests/programs/loader_victim")
        shutil.copy(victim, self.victims[0])
        self.source = self.path("empty.c")
        with open(self.source, "w", encoding="utf-8") as out:
            out.write("int asker(void) { return 1; }\n")
        self.make_program()
        for name, (flags, outer) in ASKERS.items():
            inner = self.compile(f"askers/lib{name}.so", self.system, flags)
            if outer:
                self.compile(f"askers/lib{outer[1]}.so", inner, outer[0])
        self.compile("other/libshim.so", self.system, [NEW + "$ORIGIN/../shim_runpath"])
        self.compile("other/libunrelated.so", None, [])
        shutil.copy(self.system, self.path("other/liboddname.so"))
        self.compile(f"other/{self.name}", None, ["-Wl,-soname,libelse.so.1"])

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, needed, flags):
        command = ["cc", "-shared", "-fPIC", "-o", self.path(name), self.source, *flags]
        if needed:
            soname = [] if needed == self.system else ["-Wl,--no-as-needed", "-L" + os.path.dirname(
                needed), "-l:" + os.path.basename(needed)]
            command += soname or ["-Wl,--no-as-needed", needed]
        run(*command)
        return self.path(name)

    def make_program(self):
        source = self.path("program.c")
        with open(source, "w", encoding="utf-8") as out:
            out.write(VICTIM)
        run("cc", "-o", self.victims[1], source, OLD + "$ORIGIN/../program_rpath")


# The victim again, as a program with a DT_RPATH.
VICTIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  if (argc != 3) return 2;
  dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* found = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
  struct link_map* map = NULL;
  char path[PATH_MAX];
  if (found && dlinfo(found, RTLD_DI_LINKMAP, &map) == 0 && realpath(map->l_name, path)) puts(path);
  return 0;
}
"""


def stub(machine, bits):
    """The header of a library for another kind of machine."""
    return b"\x7fELF" + bytes([1 if bits == 32 else 2, 1, 1]) + bytes(9) + struct.pack(
        "<HHI", 3, machine, 1) + bytes(100)


class Case:
    def __init__(self, seed, number, shop):
        rng = random.Random(f"{seed} {number}")
        self.number, self.shop = number, shop
        self.asker = rng.choice(sorted(ASKERS))
        self.victim = rng.choice(shop.victims)
        self.folders = {name: rng.choice(["none", "copy", "copy", "link", "stub32", "stub_arm"])
                        for name in FOLDERS}
        self.library_path = self.random_path(rng)
        self.preload = rng.choice([""] * 8 + [shop.path("other/liboddname.so"), shop.name,
                                   shop.path("other/libshim.so"), "/nowhere/libgone.so",
                                   shop.path(f"other/{shop.name}"),
                                   shop.path("other/libunrelated.so") + ":" + shop.path(
                                       "other/liboddname.so"),
                                   shop.path("other/libunrelated.so") + " " + shop.name])

    def random_path(self, rng):
        shop = self.shop
        one, two = shop.path("path1"), shop.path("path2")
        return rng.choice([None, "", one, one, f"{one}:{two}", f"{two};{one}", f":{one}", f"{two}:",
                           "/nowhere:relative", "$ORIGIN/../path1", "../path2", f"{one}/:{two}"])

    def furnish(self):
        for name, what in self.folders.items():
            place = os.path.join(self.shop.path(name), self.shop.name)
            if os.path.lexists(place):
                os.unlink(place)
            if what == "copy":
                shutil.copy(self.shop.system, place)
            elif what == "link":
                real = os.path.join(self.shop.path(name), "real.so")
                shutil.copy(self.shop.system, real)
                os.symlink("real.so", place)
            elif what != "none":
                with open(place, "wb") as out:
                    out.write(stub(40 if what == "stub32" else 183, 32 if what == "stub32" else 64))

    def real(self):
        environment = {"PATH": os.environ["PATH"]}
        if self.library_path is not None:
            environment["LD_LIBRARY_PATH"] = self.library_path
        if self.preload:
            environment["LD_PRELOAD"] = self.preload
        outer = ASKERS[self.asker][1]
        opened = self.shop.path(f"askers/lib{outer[1] if outer else self.asker}.so")
        return run(self.victim, opened, self.shop.name, env=environment,
                   cwd=self.shop.path("work"), stderr=subprocess.DEVNULL).strip()

    def ours(self):
        outer = ASKERS[self.asker][1]
        chain = [self.shop.path(f"askers/lib{self.asker}.so")]
        if outer:
            chain.append(self.shop.path(f"askers/lib{outer[1]}.so"))
        return run(self.shop.predict, self.shop.name, self.preload, self.library_path or "",
                   self.shop.path("work"), *chain, self.victim).strip()

    def agrees(self):
        self.furnish()
        real, ours = self.real(), self.ours()
        # A path through /lib and one through /usr/lib are one file.
        if real == ours or (real and ours and os.path.samefile(real, ours)):
            return True
        print(f"case {self.number}: asker {self.asker}, program {os.path.basename(self.victim)}, "
              f"LD_PRELOAD={self.preload}, LD_LIBRARY_PATH={self.library_path}, {self.folders}\n"
              f"  loader: {real}\n  ours:   {ours}")
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=240)
    parser.add_argument("--only", type=int)
    options = parser.parse_args()
    numbers = range(options.cases) if options.only is None else [options.only]
    with tempfile.TemporaryDirectory() as folder:
        shop = Workshop(os.path.abspath(options.build), os.path.realpath(folder))
        passed = sum(Case(options.seed, number, shop).agrees() for number in numbers)
    failed = len(numbers) - passed
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
