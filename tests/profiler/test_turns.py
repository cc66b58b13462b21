"""Trainings of one process that take turns: the steps of others are no loading of data."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.analysis.phases import with_own_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SLOW_S = 0.004


class Slow(nn.Linear):
    """A layer that takes a while."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        time.sleep(SLOW_S)
        return super().forward(x)


class Training:
    """Steps of a small model, captured."""

    def __init__(self, path: Path) -> None:
        self.model = Slow(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.handle = tdbg.attach(self.model, optimizer=self.optimizer, store=path, strict=True, rules="none")

    def step(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.ones(3, 4)).sum().backward()
        self.optimizer.step()

    def spans(self) -> Any:
        self.handle.detach()
        return with_own_time(tdbg.open_run(self.handle.run_path).spans())


def ms_of(spans: Any, phase: str) -> float:
    return float(spans.loc[spans["phase"] == phase, "time"].sum() / 1e6)


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Makes trainings, which end with the test."""
    all_of_them: list[Training] = []

    def make() -> Training:
        all_of_them.append(Training(tmp_path / f"run{len(all_of_them)}"))
        return all_of_them[-1]

    yield make
    for one in all_of_them:
        one.handle.detach()


def test_steps_of_others_are_told_apart_from_waiting_for_data(made: Callable[[], Training]) -> None:
    trainings = [made() for _ in range(3)]
    for _ in range(6):
        for one in trainings:
            one.step()
    for one in trainings:
        spans = one.spans()
        spans = spans[spans["step"] < 6]  # the last one ends with the test
        assert ms_of(spans, "other") >= 2 * 5 * SLOW_S * 1e3
        assert ms_of(spans, "data") < ms_of(spans, "other")
        others = spans[spans["phase"] == "other"]
        assert others["step"].between(1, 5).all()
        assert (others.groupby("step").size() <= 2).all()


def test_what_the_loop_does_itself_stays_waiting(made: Callable[[], Training]) -> None:
    one, other = made(), made()
    for _ in range(5):
        one.step()
        time.sleep(SLOW_S)
        other.step()
    spans = other.spans()
    assert ms_of(spans, "data") >= 4 * SLOW_S * 1e3
    assert ms_of(spans, "other") >= 4 * SLOW_S * 1e3


def test_training_in_another_thread_takes_no_turn(made: Callable[[], Training]) -> None:
    one, other = made(), made()
    for _ in range(3):
        one.step()
        thread = threading.Thread(target=other.step)
        thread.start()
        thread.join()
    one.step()
    assert ms_of(one.spans(), "other") == 0


def test_training_that_is_over_is_not_told_each_step_of_the_next(made: Callable[[], Training]) -> None:
    over = made()
    over.step()
    next_one = made()
    for _ in range(100):
        next_one.step()
    spans = over.spans()
    assert 0 < (spans["phase"] == "other").sum() <= 32
    assert ms_of(spans, "other") >= 99 * SLOW_S * 1e3


def test_training_alone_knows_no_others(made: Callable[[], Training]) -> None:
    one = made()
    for _ in range(3):
        one.step()
    assert ms_of(one.spans(), "other") == 0
