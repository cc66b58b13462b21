"""Evaluations of models of which only parts are called."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg

TRAINED, EVALUATED = 5, 3
"""Batches of an epoch."""


class Tagger(nn.Module):
    """As those of flair: trained and evaluated by a method of its own, with its loss in it."""

    def __init__(self, criterion):
        super().__init__()
        self.body, self.head = nn.Linear(4, 8), nn.Linear(8, 3)
        self.criterion = criterion

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

    def scores(self, x):
        return self.head(torch.relu(self.body(x)))


def losses(path, *, whole, own):
    """The losses of a training with evaluations, as recorded and as they were: steps and values, by mode."""
    torch.manual_seed(0)
    criterion = nn.CrossEntropyLoss()
    model = Tagger(criterion if own else nn.Identity())
    scores = model if whole else model.scores
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = tdbg.attach(
        model, optimizer=optimizer, loss=None if own else criterion, store=path, profiler=False, rules="none"
    )
    x, y = torch.randn(80, 4), torch.randint(0, 3, (80,))
    real = {"train": {}, "eval": {}}
    for epoch in range(4):
        model.train()
        for at in range(TRAINED):
            optimizer.zero_grad()
            loss = criterion(scores(x[8 * at : 8 * at + 8]), y[8 * at : 8 * at + 8])
            loss.backward()
            optimizer.step()
            real["train"][TRAINED * epoch + at] = loss.item()
        model.eval()
        with torch.no_grad():
            found = [
                criterion(scores(x[40 + at :: EVALUATED]), y[40 + at :: EVALUATED]).item()
                for at in range(EVALUATED)
            ]
        real["eval"][TRAINED * (epoch + 1)] = np.mean(found)
    handle.detach()
    run = tdbg.open_run(path)
    assert run.problems == []
    assert run.tensor_names(kind="loss") == ["loss/CrossEntropyLoss"]
    recorded = {mode: run.scalars("loss/CrossEntropyLoss", mode=mode) for mode in real}
    return {
        mode: dict(zip(each.steps.tolist(), each.values.tolist(), strict=True))
        for mode, each in recorded.items()
    }, real


@pytest.mark.parametrize("own", [True, False], ids=["own", "given"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "parts"])
def test_losses_of_evaluations_are_no_losses_of_training(tmp_path, whole, own):
    recorded, real = losses(tmp_path / "run", whole=whole, own=own)
    assert recorded["train"] == pytest.approx(real["train"], rel=1e-6)
    assert recorded["eval"] == pytest.approx(real["eval"], rel=1e-6)
