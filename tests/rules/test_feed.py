from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.rules.feed import Feed
from tdbg_lab.rules.order import known_keys
from tdbg_lab.rules.view import RunView

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "run", ranks=2)


def follow(made: Made, clock: Clock | None = None, keep: int = 64) -> tuple[Feed, RunView]:
    view = RunView(keep)
    view.expect(known_keys(made.path))
    return Feed(made.path, view, clock=clock or Clock()), view


def test_step_waits_for_the_next_one_or_for_silence(made: Made) -> None:
    clock = Clock()
    feed, view = follow(made, clock)
    made.step(0, {"loss/a": 1.0})
    assert list(feed.steps()) == []
    made.step(1, {"loss/a": 2.0})
    assert list(feed.steps()) == [0]
    assert feed.waiting
    clock.now += 1
    assert list(feed.steps()) == [1]
    assert view.scalars("loss/a").values.tolist() == [1, 2]
    assert not feed.waiting


def test_micro_steps_and_ranks_merge_exactly(made: Made) -> None:
    values = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
    for part, (rank, micro) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1)]):
        made.step(0, {"activation/x": values[part].reshape(10, 5)}, rank=rank, micro=micro)
    feed, view = follow(made)
    assert list(feed.steps(last=True)) == [0]
    row = view.frame().get("activation/x")
    assert row is not None
    assert row.count == 200
    assert row.mean == pytest.approx(values.mean(), rel=1e-6)
    assert row.max == values.max()
    assert len(row.channel_zero_frac) == 5


def test_late_rows_make_the_step_come_again(made: Made) -> None:
    feed, view = follow(made)
    made.step(0, {"loss/a": 1.0}).step(1, {"loss/a": 5.0})
    assert list(feed.steps(last=True)) == [0, 1]
    made.step(0, {"loss/a": 3.0}, rank=1)
    assert list(feed.steps(last=True)) == [0]
    assert view.step == 0
    assert view.scalars("loss/a").values.tolist() == [2.0]


def test_view_ends_with_the_checked_step(made: Made) -> None:
    for step in range(5):
        made.step(step, {"gradient/a.weight": np.ones((2, 2)) * step})
    feed, view = follow(made)
    for step in feed.steps(last=True):
        assert [frame.step for frame in view.frames(Kind.GRADIENT, 3)] == list(
            range(max(0, step - 2), step + 1)
        )


def test_modes_are_apart(made: Made) -> None:
    made.step(0, {"loss/a": 1.0}).step(0, {"loss/a": 9.0}, mode="eval")
    feed, view = follow(made)
    list(feed.steps(last=True))
    assert view.scalars("loss/a").values.tolist() == [1]
    assert view.scalars("loss/a", Mode.EVAL).values.tolist() == [9]
    assert view.modes == [Mode.TRAIN]


def test_memory_is_bounded(made: Made) -> None:
    for step in range(100):
        made.step(step, {"gradient/a.weight": np.ones((2, 2))})
    feed, view = follow(made, keep=7)
    list(feed.steps(last=True))
    assert len(view.frames(Kind.GRADIENT, 1000)) == 7


def test_training_that_goes_far_back_is_seen_where_it_is(made: Made) -> None:
    steps = [*range(100, 110), 20, 21]
    for step in steps:
        made.step(step, {"gradient/a.weight": np.ones((2, 2))})
    feed, view = follow(made, keep=7)
    assert [view.frames(Kind.GRADIENT, 1)[0].step for _ in feed.steps(last=True)] == steps


def test_sealed_segments_come_in_the_order_of_the_forward_pass(tmp_path: Path) -> None:
    made = Made(tmp_path / "sealed", seal=True)
    names = ["activation/z", "activation/m", "activation/a"]
    for step in range(3):
        made.step(step, {name: np.ones((4, 2)) for name in names})
    path = made.end()
    assert list(path.glob("rank-*/*.parquet"))
    feed, view = follow(made)
    assert list(feed.steps(last=True)) == [0, 1, 2]
    assert [key.name for key in view.frame().keys] == names
    assert [key.name for key in view.tensors()] == names


def test_scalars_that_are_not_finite_are_kept(made: Made) -> None:
    for step, value in enumerate([1.0, np.nan, np.inf, -np.inf]):
        made.step(step, {"loss/a": value})
    feed, view = follow(made)
    list(feed.steps(last=True))
    np.testing.assert_array_equal(view.scalars("loss/a").values, [1.0, np.nan, np.inf, -np.inf])


def test_losses_are_those_of_modules_or_what_is_logged_as_one(made: Made) -> None:
    feed, view = follow(made)
    made.step(0, {"accuracy": 0.5, "loss": 1.0})
    list(feed.steps(last=True))
    assert view.losses() == ["loss"]
    made.step(1, {"loss/CrossEntropyLoss": 1.0})
    list(feed.steps(last=True))
    assert view.losses() == ["loss/CrossEntropyLoss"]


def test_ranks_stay_side_by_side_after_the_fact(tmp_path: Path) -> None:
    made = Made(tmp_path / "ranks", ranks=3, seal=True)
    for rank in range(3):
        for step in range(100):
            made.step(step, {"loss/a": float(rank)}, rank=rank)
    made.end()
    feed, view = follow(made, keep=4)
    assert list(feed.steps(last=True)) == list(range(100))
    assert view.scalars("loss/a").values.tolist() == [1.0] * 100


def test_numbers_of_several_steps_in_one_batch_are_steps_of_their_own(made: Made) -> None:
    keys = [TensorKey("loss/a", Kind.LOSS), TensorKey("accuracy", Kind.SCALAR)]
    made.writers[0].append_scalars(
        [3, 3, 4, 5], [1, 1, 2, 3], [*keys, keys[0], keys[0]], [9.0, 0.5, 8.0, np.nan], mode=Mode.TRAIN
    )
    feed, view = follow(made)
    seen = [(step, view.scalars("loss/a").values[-1]) for step in feed.steps(last=True)]
    np.testing.assert_array_equal(seen, [(3, 9.0), (4, 8.0), (5, np.nan)])
    assert view.scalars("accuracy").steps.tolist() == [3]
