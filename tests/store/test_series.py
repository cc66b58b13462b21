"""Samples as series: the same rows as in the table, however they are spread over segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from tdbg_lab.run import Run, open_run
from tdbg_lab.store import SystemWriter, create_run

if TYPE_CHECKING:
    from pathlib import Path

METRICS = ("cpu", "cpu", "memory", "gpu")
DEVICES = ("cpu", "cpu0", "memory", "gpu0")
SECOND = 10**9


def write(path: Path, moments: range, *, rank: int = 0, seal: bool = True, step_ns: int = SECOND) -> None:
    """Samples, one a second, of a writer that ends."""
    writer = SystemWriter(path, rank=rank, seal=seal)
    for moment in moments:
        writer.append(moment * step_ns, METRICS, DEVICES, [moment, 2.0 * moment, np.nan, rank])
    writer.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return create_run(tmp_path / "run").path


def same_as_the_table(run: Run, metrics: tuple[str, ...], start: int | None, end: int | None) -> None:
    table = run.samples(metrics=metrics, start_ns=start, end_ns=end)
    series = run.sample_series(metrics, start_ns=start, end_ns=end)
    assert sum(len(one.time_ns) for one in series) == len(table)
    for one in series:
        rows = table[
            (table["rank"] == one.rank) & (table["metric"] == one.metric) & (table["device"] == one.device)
        ]
        np.testing.assert_array_equal(one.time_ns, rows["time_ns"])
        np.testing.assert_array_equal(one.value, rows["value"])


@pytest.mark.parametrize("bounds", [(None, None), (3 * SECOND, 12 * SECOND), (500 * SECOND, None)])
def test_series_are_the_rows_of_the_table(path: Path, bounds: tuple[int | None, int | None]) -> None:
    write(path, range(10))
    write(path, range(10, 20), seal=False)
    write(path, range(5), rank=1)
    run = open_run(path)
    for metrics in (("cpu",), ("cpu", "gpu"), ("memory",), ("none",)):
        same_as_the_table(run, metrics, *bounds)


def test_series_follow_a_run_that_goes_on(path: Path) -> None:
    run = open_run(path)
    assert run.sample_series(("cpu",)) == []
    for first in (0, 10, 20):
        write(path, range(first, first + 10), seal=first != 10)
        run.refresh()
        (series,) = [one for one in run.sample_series(("cpu",)) if one.device == "cpu"]
        assert series.value.tolist() == list(range(first + 10))
        same_as_the_table(run, ("cpu", "gpu"), None, None)


def test_series_are_in_order_when_the_clock_was_set_back(path: Path) -> None:
    write(path, range(100, 110))
    write(path, range(95, 105))
    run = open_run(path)
    (series,) = run.sample_series(("memory",))
    assert (np.diff(series.time_ns) >= 0).all()
    assert len(series.time_ns) == 20


def test_series_of_a_segment_that_is_gone_are_gone(path: Path) -> None:
    write(path, range(10))
    write(path, range(10, 20))
    run = open_run(path)
    assert len(run.sample_series(("gpu",))[0].value) == 20
    min((path / "rank-00000").glob("system-*")).unlink()
    run.refresh()
    assert run.sample_series(("gpu",))[0].time_ns[0] == 10 * SECOND
