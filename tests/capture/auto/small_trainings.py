"""Small trainings of PyTorch, for a watch to find."""

from __future__ import annotations

import torch
from torch import nn


def net(width=8):
    return nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Linear(width, 3))


def batch():
    return torch.randn(6, 4), torch.randint(0, 3, (6,))


def steps(model, optimizer, criterion, n=4):
    for _ in range(n):
        x, y = batch()
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()


def train(n=4):
    torch.manual_seed(0)
    model, criterion = net(), nn.CrossEntropyLoss()
    steps(model, torch.optim.SGD(model.parameters(), lr=0.1), criterion, n)
    return model


def everywhere(run, *names, n=4, mode="train"):
    for name in names:
        assert run.tensor(name).steps(mode=mode).tolist() == list(range(n)), name
