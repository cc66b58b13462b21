from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.rules import RunView, StalledTraining
from tdbg_lab.testing import block_of

if TYPE_CHECKING:
    from collections.abc import Sequence

S = 1_000_000_000


def seen(times_s: Sequence[float]) -> RunView:
    run = RunView(64)
    key = TensorKey("loss/x", Kind.LOSS)
    for step, time_s in enumerate(times_s):
        run.put(Mode.TRAIN, step, int(time_s * S), [((key,), block_of([[1.0]]))])
        run.step = step
    return run


@pytest.mark.parametrize(("quiet_s", "fires"), [(600, False), (601, True)])
def test_silence_counts_from_ten_minutes_on(quiet_s: float, fires) -> None:
    assert (StalledTraining().idle(quiet_s, seen([0, 1, 2])) is not None) is fires


def test_long_evaluations_make_it_wait_longer() -> None:
    run = seen([0, 1, 201, 202])
    assert StalledTraining().idle(1900, run) is None
    assert StalledTraining().idle(2001, run) is not None


@pytest.mark.parametrize(("quiet_s", "fires"), [(1800, False), (1801, True)])
def test_classic_threshold_is_half_an_hour(quiet_s: float, fires) -> None:
    assert (StalledTraining(classic=True).idle(quiet_s, seen([0, 500])) is not None) is fires


def test_pause_is_found_after_the_fact() -> None:
    finding = StalledTraining().check(3, seen([0, 1, 2, 902]))
    assert finding is not None
    assert finding.evidence["quiet_s"] == 900
    assert StalledTraining().check(3, seen([0, 1, 2, 3])) is None


def test_nothing_is_stalled_before_it_began() -> None:
    assert StalledTraining().idle(10_000, RunView(64)) is None


def test_threshold_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"stalled_training.threshold is 0"):
        StalledTraining(threshold=0)
