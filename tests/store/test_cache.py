"""Decoded columns that are kept."""

from __future__ import annotations

import numpy as np

from tdbg_lab.run import open_run
from tdbg_lab.store.cache import ColumnCache
from tdbg_lab.testing import fake_run


def column(rows, value=0):
    return (np.full(rows, value, np.float64),)


def test_what_was_asked_for_longest_ago_goes_first():
    cache = ColumnCache(limit_bytes=3 * 80)
    for group in range(3):
        cache.put(("uid", (group, group), "mean"), column(10, group))
    assert cache.get(("uid", (0, 0), "mean"))[0][0] == 0
    cache.put(("uid", (3, 3), "mean"), column(10, 3))
    kept = [group for group in range(4) if cache.get(("uid", (group, group), "mean")) is not None]
    assert kept == [0, 2, 3]


def test_a_column_of_one_value_takes_the_room_of_one():
    cache = ColumnCache(limit_bytes=100)
    for group in range(5):
        cache.put(("uid", (group, group), "nan_count"), (np.broadcast_to(np.zeros(1), 1000),))
    assert all(cache.get(("uid", (group, group), "nan_count")) is not None for group in range(5))


def test_counts_that_are_all_zero_are_kept_as_one_and_read_as_all(tmp_path):
    run = open_run(fake_run(tmp_path / "run", steps=300, layers=2))
    frame = run.stats("layer0.weight", ["mean", "nan_count"])
    assert len(frame) == 300
    assert (frame["nan_count"] == 0).all()
    columns = run._reader.state._cache._columns
    strides = {name: kept[0].strides for (_, _, name), kept in columns.items()}
    assert strides == {**strides, "nan_count": (0,), "mean": (8,)}
