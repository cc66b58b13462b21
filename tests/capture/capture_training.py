"""Small models and plain training loops."""

from __future__ import annotations

import torch
from torch import nn


class Net(nn.Module):
    """Convolution, batch norm, in-place ReLU, dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(4 * 6 * 6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.drop(self.relu(self.norm(self.conv(x))))
        return self.head(x.flatten(1))


def batch(seed: int = 0, n: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 1, 8, 8, generator=generator), torch.randint(0, 3, (n,), generator=generator)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int, *, loss: nn.Module | None = None):
    """Plain training steps; gives the losses."""
    criterion = loss or nn.CrossEntropyLoss()
    losses = []
    for step in range(steps):
        x, y = batch(step)
        optimizer.zero_grad()
        value = criterion(model(x), y)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses
