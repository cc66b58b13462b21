"""Scalars over steps, asked for often, seldom or never."""

from __future__ import annotations

import numpy as np
import pytest

from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.rules.frame import Frame
from tdbg_lab.rules.layout import Layout
from tdbg_lab.rules.scalar_log import ScalarLog
from tdbg_lab.stats.block import scalar_block
from tdbg_lab.testing import block_of


def layout(*names: str) -> Layout:
    return Layout(tuple(TensorKey(name, Kind.SCALAR) for name in names))


def put(log: ScalarLog, step: int, of: Layout, *values: float) -> None:
    log.put(Frame.laid_out(step, Mode.TRAIN, 0, of, scalar_block(values)))


@pytest.mark.parametrize("every", [1, 7, 600, 10_000])
def test_points_do_not_depend_on_when_they_are_asked_for(every: int) -> None:
    log = ScalarLog(Mode.TRAIN)
    both, one = layout("a", "b"), layout("a")
    for step in range(1300):
        put(log, step, both if step % 10 == 0 else one, *([step, -step] if step % 10 == 0 else [step]))
        if step % every == 0:
            assert log.get("a", step).values[-1] == step
    steps, values = log.get("a", 1299)
    assert steps.tolist() == list(range(1300))
    assert values.tolist() == list(range(1300))
    assert log.get("b", 1299).values.tolist() == [-step for step in range(0, 1300, 10)]
    assert log.get("b", 25).steps.tolist() == [0, 10, 20]


@pytest.mark.parametrize(("mode", "samples"), [(Mode.EVAL, 150.0), (Mode.TRAIN, 50.0)])
def test_samples_of_all_batches_of_an_evaluation_are_added_up(mode: Mode, samples: float) -> None:
    log = ScalarLog(mode)
    of = layout("check/loss/total/hits", "check/loss/total/samples")
    block = block_of([np.array([0.5, 0.7, 0.6]), np.array([60.0, 60.0, 30.0])])  # three batches
    log.put(Frame.laid_out(3, mode, 0, of, block))
    assert log.get("check/loss/total/samples", 3).values.tolist() == pytest.approx([samples])
    assert log.get("check/loss/total/hits", 3).values.tolist() == pytest.approx([0.6])


def test_late_step_goes_into_its_place_and_replaces_itself() -> None:
    log = ScalarLog(Mode.TRAIN)
    of = layout("a")
    for step in [*range(600), 3, 700, 650]:
        put(log, step, of, 2.0 * step + (step == 3))
    steps, values = log.get("a", 1000)
    assert steps.tolist() == [*range(600), 650, 700]
    assert values[3] == 7.0


def test_values_that_are_not_finite_are_kept_and_unknown_names_are_empty() -> None:
    log = ScalarLog(Mode.TRAIN)
    put(log, 0, layout("a", "b", "c"), np.nan, np.inf, -np.inf)
    assert [float(log.get(name, 0).values[0]) for name in "bc"] == [np.inf, -np.inf]
    assert np.isnan(log.get("a", 0).values[0])
    assert not len(log.get("d", 0).values)
    assert "a" in log
    assert "d" not in log


def test_memory_is_bounded_with_first_and_last_points_kept() -> None:
    log = ScalarLog(Mode.TRAIN)
    of = layout("a")
    for step in range(30_000):
        put(log, step, of, float(step + 1))
    steps, values = log.get("a", 30_000)
    assert 4096 <= len(steps) <= 1024 + 2 * 4096
    assert steps[:1024].tolist() == list(range(1024))
    assert steps[-4096:].tolist() == list(range(30_000 - 4096, 30_000))
    assert (values == steps + 1).all()
