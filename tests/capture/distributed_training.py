"""Trainings of two processes, started by `torchrun`: every scenario leaves runs for the tests to read."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tdbg_lab as tdbg
from tdbg_lab.errors import TrainingStopped


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)
        self.slow_s = 0.0

    def forward(self, x):
        time.sleep(self.slow_s)
        return self.last(self.act(self.first(x)))


def data(rank, step):
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(6, 8, generator=generator), torch.randint(0, 3, (6,), generator=generator)


def steps(model, optimizer, count, *, rank, micros=1):
    for step in range(count):
        optimizer.zero_grad()
        for micro in range(micros):
            x, y = data(rank, step * micros + micro)
            nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def fresh(rank, *, wrap=DistributedDataParallel):
    torch.manual_seed(0)
    model = wrap(Net())
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def attach(root, name, model, optimizer, **more):
    settings = {"save_every": 2, "profiler": False, "strict": True, **more}
    return tdbg.attach(model, optimizer=optimizer, store=root / name, **settings)


def ddp(root, rank):
    """Bare and captured weights; run again under the same name."""
    model, optimizer = fresh(rank)
    steps(model, optimizer, 6, rank=rank)
    bare = {name: value.clone() for name, value in model.state_dict().items()}
    for _ in range(2):  # the second one makes ddp-2, and every rank finds it
        model, optimizer = fresh(rank)
        with attach(root, "ddp", model, optimizer):
            steps(model, optimizer, 6, rank=rank)
    same = all(torch.equal(value, bare[name]) for name, value in model.state_dict().items())
    return {"same": same}


def inner(root, rank):
    """Only what DistributedDataParallel wraps is given."""
    model, optimizer = fresh(rank)
    with attach(root, "inner", model.module, optimizer):
        steps(model, optimizer, 3, rank=rank, micros=2)


def chosen(root, rank):
    told = {}
    for name, ranks in (("first", "first"), ("second", [1])):
        model, optimizer = fresh(rank)
        with attach(root, name, model, optimizer, ranks=ranks) as handle:
            steps(model, optimizer, 3, rank=rank)
            told[name] = [str(handle.run_path), handle.step]
    return told


def straggler(root, rank):
    model, optimizer = fresh(rank)
    model.module.slow_s = 0.1 * rank
    with attach(root, "straggler", model, optimizer, profiler=True):
        steps(model, optimizer, 5, rank=rank)


def diverging(root, rank):
    """Replicas that never exchange gradients drift apart."""
    model, optimizer = fresh(rank, wrap=lambda one: one)
    with attach(root, "diverging", model, optimizer):
        steps(model, optimizer, 5, rank=rank)


def stop(root, rank):
    model, optimizer = fresh(rank)
    handle = attach(root, "stop", model, optimizer, ranks="first")
    try:
        for step in range(100_000):
            if rank == 0 and step == 3:
                handle.run.request_stop("enough", by="test")
            steps(model, optimizer, 1, rank=rank)
    except TrainingStopped as stopped:
        return {
            "step": stopped.step,
            "reason": stopped.reason,
            "weight": model.module.first.weight.sum().item(),
        }
    return {}


def settings(root, rank):
    """Learning rate and clipping, changed on replicas; rank 0 alone asks."""
    model, optimizer = fresh(rank)
    rates = []
    with attach(root, "settings", model, optimizer, ranks="all") as handle:
        for step in range(24):
            handle._engine.control._next_s = 0.0
            if rank == 0 and step in (3, 8, 15):
                wanted = {3: "lr*=0.1", 8: "clip_norm=0.001", 15: "lr*=10"}[step]
                handle.run.request_setting(wanted, by="test")
            rates.append(optimizer.param_groups[0]["lr"])
            steps(model, optimizer, 1, rank=rank)
    return {"rates": rates, "weight": model.module.first.weight.sum().item()}


def fsdp(root, rank):
    from torch.distributed.fsdp import fully_shard

    def shard(model):
        fully_shard(model.first)
        fully_shard(model)
        return model

    model, optimizer = fresh(rank, wrap=shard)
    steps(model, optimizer, 4, rank=rank)
    bare = model.first.weight.to_local().clone()
    both = {"name": "raw", "values": "both", "kinds": ("weight", "gradient")}
    model, optimizer = fresh(rank, wrap=shard)
    with attach(root, "fsdp", model, optimizer, ranks="all", collections=["default", both]):
        steps(model, optimizer, 4, rank=rank)
    model2, optimizer = fresh(rank, wrap=shard)
    with attach(root, "fsdp-first", model2, optimizer, ranks="first"):  # nothing of ours waits for others
        steps(model2, optimizer, 4, rank=rank)
    whole = model.first.weight.full_tensor()
    return {"same": torch.equal(model.first.weight.to_local(), bare), "rows": whole.shape[0]}


def flattened(root, rank):
    """The first version of FSDP: one flat parameter, or its pieces by their old names, some of them empty."""
    from torch.distributed.fsdp import FullyShardedDataParallel

    for name, original in (("flat", False), ("pieces", True)):
        model, optimizer = fresh(
            rank,
            wrap=lambda one, original=original: FullyShardedDataParallel(
                one, device_id=torch.device("cpu"), use_orig_params=original
            ),
        )
        with attach(root, name, model, optimizer, ranks="all"):
            steps(model, optimizer, 8, rank=rank)


def split(root, rank):
    """Tensor parallelism: every rank has a part of each layer, and all get the same batch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan = {"first": ColwiseParallel(), "last": RowwiseParallel()}
    mesh = init_device_mesh("cpu", (2,))
    model, optimizer = fresh(rank, wrap=lambda one: parallelize_module(one, mesh, plan))
    with attach(root, "split", model, optimizer, ranks="all"):
        steps(model, optimizer, 8, rank=0)  # the data of rank 0 on both


def copied(root, rank):
    """Replicas that get the same batch, for lack of a sampler."""
    model, optimizer = fresh(rank)
    with attach(root, "copied", model, optimizer, ranks="all"):
        steps(model, optimizer, 8, rank=0)


SCENARIOS = (ddp, inner, chosen, straggler, diverging, stop, settings, fsdp, flattened, split, copied)


def main():
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    told = {one.__name__: one(root, rank) for one in SCENARIOS}
    (root / f"told-{rank}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
