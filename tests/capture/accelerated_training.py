"""Trainings with Hugging Face Accelerate in two processes, started by `torchrun`: see `test_accelerate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import tdbg_lab as tdbg

STEPS, BATCH, MICROS = 4, 6, 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.last = nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(self.act(self.first(x)))


def examples(count):
    generator = torch.Generator().manual_seed(5)
    return torch.randn(count, 8, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def fit(root, name, *, micros=1, early=False, capture=True, bare=False):
    """Train as Accelerate's own examples do, attached before or after `prepare`."""
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=micros)
    model, criterion = Net(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    data = TensorDataset(*examples(STEPS * micros * BATCH * accelerator.num_processes))
    loader = DataLoader(data, batch_size=BATCH)
    handle = None

    def attach():
        return tdbg.attach(
            model,
            optimizer=None if bare else optimizer,
            loss=criterion,
            store=root / name,
            save_every=1,
            profiler=False,
            strict=True,
            collections=["default", {"name": "raw", "values": "both", "kinds": ("gradient",)}],
        )

    if capture and early:
        handle = attach()
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    if capture and not early:
        handle = attach()
    losses, gradients = [], []
    for x, y in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                gradients.append(model.module.first.weight.grad.clone().tolist())
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    told = {
        "weights": {
            key: value.tolist() for key, value in accelerator.unwrap_model(model).state_dict().items()
        },
        "losses": losses,
        "gradients": gradients,
    }
    if handle is not None:
        told |= {"problems": [one.message for one in handle.problems], "step": handle.step}
        handle.detach()
    return told


def main():
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    told = {}
    for micros in (1, MICROS):
        told[f"plain-{micros}"] = fit(root, "", micros=micros, capture=False)
        for early in (True, False):
            name = f"{'early' if early else 'late'}-{micros}"
            told[name] = fit(root, name, micros=micros, early=early)
        told[f"bare-{micros}"] = fit(root, f"bare-{micros}", micros=micros, bare=True)
    (root / f"told-{dist.get_rank()}.json").write_text(json.dumps(told))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
