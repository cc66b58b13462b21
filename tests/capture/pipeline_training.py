"""A pipeline of two stages, each a process started by `torchrun`; trained bare, or attached to a run."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

import tdbg_lab as tdbg

SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}
MICRO_BATCHES, STEPS = 4, 5


def stage_module(rank):
    torch.manual_seed(0)
    whole = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Linear(16, 3))
    return whole[:2] if rank == 0 else whole[2:]


def train(rank, schedule, store=None):
    """Mean loss of each step, on the last stage, and the weights of this one."""
    part = stage_module(rank)
    optimizer, criterion = torch.optim.SGD(part.parameters(), lr=0.1), nn.CrossEntropyLoss()
    stage = PipelineStage(part, rank, 2, torch.device("cpu"))
    pipeline = SCHEDULES[schedule](stage, n_microbatches=MICRO_BATCHES, loss_fn=criterion)
    attached = (
        tdbg.attach(
            part,
            optimizer=optimizer,
            loss=criterion,
            store=store,
            save_every=2,
            profiler=False,
            strict=True,
        )
        if store
        else contextlib.nullcontext()
    )
    found = []
    with attached:
        for step in range(STEPS):
            x = torch.randn(8, 8, generator=torch.Generator().manual_seed(step))
            losses = []
            optimizer.zero_grad()
            if rank == 0:
                pipeline.step(x)
            else:
                pipeline.step(target=torch.arange(8) % 3, losses=losses)
            optimizer.step()
            found += [torch.stack(losses).mean().item()] if losses else []
    return {"losses": found, "weights": [value.tolist() for value in part.state_dict().values()]}


def main():
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    if sys.argv[2:]:  # under `tdbg run`, which attaches by itself
        told = train(rank, sys.argv[2])
    else:
        told = {name: [train(rank, name), train(rank, name, root / name)] for name in SCHEDULES}
    (root / f"told-{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
