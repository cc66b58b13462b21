"""Pairs whose halves do not belong together, and pairs of one sort only; and the same as they should be."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tdbg_lab as tdbg
from tdbg_lab.records import Severity

if TYPE_CHECKING:
    from pathlib import Path

WIDTH, PAIRS, STEPS = 16, 48, 240


class Chosen(nn.Module):
    """InfoNCE: each row's partner among all of the batch."""

    def forward(self, told: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        left, right = (F.normalize(half, dim=1) for half in told.chunk(2, 1))
        return F.cross_entropy(left @ right.T / 0.2, torch.arange(len(told)))


class Alike(nn.Module):
    """Whether two halves mean the same: 1 or -1."""

    def forward(self, told: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        left, right = told.chunk(2, 1)
        return F.cosine_embedding_loss(left, right, wanted)


class Halves(nn.Module):
    """One network for each half."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = (
            nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, 8)) for _ in range(2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x.chunk(2, 1)
        return torch.cat([self.left(left), self.right(right)], 1)


def alarms(store: Path, loss: nn.Module, batch: Any) -> dict[str, str]:
    model = Halves()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    attach = partial(tdbg.attach, store=store, save_every=2, profiler=False, rules="none")
    with attach(model, optimizer=optimizer, loss=loss):
        for step in range(STEPS):
            x, y = batch()
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if step % 60 == 59:
                model.eval()
                with torch.no_grad():
                    loss(model(PAIRED), FLAGS)
                model.train()
    return {one.rule: one.message for one in tdbg.run_rules(store) if one.severity is not Severity.NOTICE}


torch.manual_seed(0)
MIXED = torch.randn(WIDTH, WIDTH)


def paired(count: int) -> torch.Tensor:
    first = torch.randn(count, WIDTH)
    return torch.cat([first, torch.tanh(first @ MIXED) + 0.1 * torch.randn(count, WIDTH)], 1)


def compared(count: int, share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs, of which a share is not of one kind, and flags."""
    x, apart = paired(count), torch.rand(count) < share
    x[apart, WIDTH:] = x[apart, WIDTH:].roll(1, 0)
    return x, 1.0 - 2.0 * apart


PAIRED, FLAGS = compared(64, 0.5)


@pytest.mark.parametrize("mixed", [False, True], ids=["together", "shuffled"])
def test_halves_of_pairs_that_do_not_belong_together_are_told(tmp_path: Path, mixed) -> None:
    def batch() -> tuple[torch.Tensor, torch.Tensor]:
        x = paired(PAIRS)
        if mixed:
            x = torch.cat([x[:, :WIDTH], x[torch.randperm(PAIRS), WIDTH:]], 1)
        return x, torch.arange(PAIRS)

    found = alarms(tmp_path / "run", Chosen(), batch)
    assert ("partners" in found.get("unrelated_labels", "")) is mixed
    assert mixed or found == {}


@pytest.mark.parametrize("share", [0.5, 0.0], ids=["both sorts", "one sort"])
def test_pairs_of_one_sort_only_are_told(tmp_path: Path, share) -> None:
    found = alarms(tmp_path / "run", Alike(), lambda: compared(PAIRS, share))
    assert ("one label only" in found.get("label_range", "")) is (share == 0)
    assert share == 0 or found == {}
