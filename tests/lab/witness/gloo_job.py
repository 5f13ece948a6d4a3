"""A real torch.distributed job on Gloo: join, one small and one 16 MB all-reduce, leave.

Its environment decides how it meets the others (env:// variables, torchrun). JOB_READY=FILE is touched
once torch is imported, so that a deadline need not pay for a busy machine; JOB_WAIT=FILE is waited for then.
JOB_TIMEOUT is the group's timeout in seconds. JOB_STAY=FILE keeps the healthy job running until FILE appears.
"""
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist


def announce():
    if "JOB_READY" in os.environ:
        with open(os.environ["JOB_READY"] + "." + os.environ.get("RANK", "x") + "." + str(os.getpid()), "w"):
            pass
    while "JOB_WAIT" in os.environ and not os.path.exists(os.environ["JOB_WAIT"]):
        time.sleep(0.02)


def reduced(count, world, rank):
    x = torch.full((count,), float(rank + 1))
    dist.all_reduce(x)
    return x[0].item() == world * (world + 1) / 2


def stay():
    """Keep training until all have seen the file: one look each, decided together."""
    seen = torch.zeros(1)
    while "JOB_STAY" in os.environ and not seen.item():
        seen[0] = float(os.path.exists(os.environ["JOB_STAY"]))
        dist.all_reduce(seen, op=dist.ReduceOp.MAX)
        time.sleep(0.1)


def main():
    announce()
    timeout = datetime.timedelta(seconds=float(os.environ.get("JOB_TIMEOUT", "8")))
    dist.init_process_group("gloo", timeout=timeout)
    rank, world = dist.get_rank(), dist.get_world_size()
    ok = reduced(1024, world, rank) and reduced(4 << 20, world, rank)
    print("rank %d of %d on %s: %s" % (rank, world, os.uname().nodename, "OK" if ok else "WRONG"), flush=True)
    stay()
    dist.barrier()
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
