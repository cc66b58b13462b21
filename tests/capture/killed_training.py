"""One of two processes that kills itself within a step. Arguments: run directory, last step, meeting file."""

from __future__ import annotations

import os
import signal
import sys

import torch
import torch.distributed as dist
from distributed_training import data, fresh
from torch import nn

import tdbg_lab as tdbg


def main():
    path, last, meeting = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=int(os.environ["RANK"]), world_size=2
    )
    rank = dist.get_rank()
    model, optimizer = fresh(rank)
    with tdbg.attach(model, optimizer=optimizer, store=path, save_every=1, profiler=False):
        for step in range(1000):
            optimizer.zero_grad()
            x, y = data(rank, step)
            value = nn.functional.cross_entropy(model(x), y)
            if rank == 1 and step == last:
                os.kill(os.getpid(), signal.SIGKILL)
            value.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
