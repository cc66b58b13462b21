"""A training of two processes, the second of which is slow; started by `torchrun`.

``slow_rank.py STORE [SECONDS ...]``: one training for each time that a forward pass of rank 1 takes.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tdbg_lab as tdbg


class Net(nn.Module):
    """Takes its time on rank 1."""

    def __init__(self, slow_s: float) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 2)
        self.slow_s = slow_s

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(self.slow_s)
        return self.layer(x)


def train(slow_s: float) -> None:
    """40 steps; the store of a second training is called the same and a number."""
    model = DistributedDataParallel(Net(slow_s))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tdbg.attach(model, optimizer=optimizer, store=Path(sys.argv[1]), ranks="all", strict=True):
        for _ in range(40):
            optimizer.zero_grad()
            model(torch.ones(4, 8)).sum().backward()
            optimizer.step()


def main() -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for slow_s in [float(word) for word in sys.argv[2:]] or [0.1]:
        train(slow_s if rank else 0.01)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
