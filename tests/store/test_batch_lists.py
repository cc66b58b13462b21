"""Lists of a record batch, row by row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tdbg_lab.store.batch_lists import BatchLists

BINS = [[1, 2, 3], [], None, [7], [8, 9]]


def batch_of(bins=BINS, reasons=(None, None, "sparse", None, None)) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "hist_bins": pa.array([[0], *bins], pa.list_(pa.uint16())),
            "reason": pa.array(["before", *reasons], pa.string()),
        }
    ).slice(1)


@pytest.mark.parametrize("rows", [[0], [1], [2], [3, 4], [4, 0, 1, 2], []])
def test_gives_the_lists_of_the_rows_in_their_order(rows):
    lengths, values = BatchLists(batch_of()).lists("hist_bins", np.array(rows, np.int64))
    wanted = [BINS[row] or [] for row in rows]
    assert lengths.tolist() == [len(each) for each in wanted]
    assert values.tolist() == [value for each in wanted for value in each]


def test_gives_reasons_and_none():
    rows = np.array([2, 0])
    assert BatchLists(batch_of()).reasons("reason", rows).tolist() == ["sparse", None]
    without = batch_of(reasons=(None,) * 5)
    assert BatchLists(without).reasons("reason", rows).tolist() == [None, None]


def test_a_bin_that_does_not_exist_is_an_error():
    with pytest.raises(ValueError, match="a histogram has a bin that does not exist"):
        BatchLists(batch_of([[1], [60_000], [], [], []])).lists("hist_bins", np.array([0]))
