"""A small model that learns of three classes, and what a step of its training is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from tdbg_lab import Run

LOSS = "loss/objective"


def made(outputs: int = 3) -> tuple[nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, outputs))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(6, 4), torch.randint(0, 3, (6,))


def step(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> float:
    """Make `loss` smaller; gives its value."""
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def told(run: Run, name: str = LOSS, mode: str = "eval") -> list[float]:
    return run.scalars(name, mode=mode).values.tolist()


def losses_of(run: Run, name: str = LOSS) -> list[float]:
    return run.scalars(name).values.tolist()
