"""Trainings of two processes, one after the other, each wrong in one way; started by `torchrun`."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tdbg_lab as tdbg

LIMITS = {"clipped_differently": (0.1, 0.05), "clipped_on_one_rank": (0.1, None)}
"""Norms that gradients of the two ranks are clipped to."""


def train(path: Path, fault: str) -> None:
    """A few steps on data of the rank's own."""
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
    replica = DistributedDataParallel(model)
    called = model if fault == "not_averaged" else replica  # as when model.module is called by mistake
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    limit = LIMITS.get(fault, (0.1, 0.1))[rank]
    data = torch.Generator().manual_seed(rank)
    settings = {"ranks": "all", "strict": True, "profiler": False, "save_every": 1}
    with tdbg.attach(replica, optimizer=optimizer, loss=criterion, store=path, **settings):
        for _ in range(12):
            optimizer.zero_grad()
            x = torch.randn(16, 8, generator=data)
            criterion(called(x), (x[:, 0] > 0).long()).backward()
            if limit is not None:
                nn.utils.clip_grad_norm_(model.parameters(), limit)
            optimizer.step()


def main() -> None:
    """Each training has a folder of its own below the one that is given."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for fault in ("healthy", "not_averaged", *LIMITS):
        train(Path(sys.argv[1]) / fault, fault)
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
