from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from tdbg_lab.rules.decoding import Decoder
from tdbg_lab.rules.feed import Feed
from tdbg_lab.store.tail import Chunk, tail

from .made import Made

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("l1.weight", "activation/relu1", "gradient/l1.weight", "a0.weight")


def write(path: Path, *, seal: bool) -> Path:
    random = np.random.default_rng(0)
    made = Made(path, seal=seal)
    for step in range(6):
        made.step(step, {name: random.normal(size=(4, 3)) for name in NAMES})
        made.step(step, {"loss/x": float(step)})
    return made.end()


def chunks(path: Path) -> list[Chunk]:
    found: list[Chunk] = []
    for chunk in tail(path):
        if chunk is None:
            return found
        found.append(chunk)
    return found


def test_sealed_segment_gives_the_same_frames_as_the_live_one(tmp_path: Path) -> None:
    live, sealed = (Feed.of(write(tmp_path / str(seal), seal=seal), ()) for seal in (False, True))
    for step, other in zip(live.steps(last=True), sealed.steps(last=True), strict=True):
        then, now = live.view.frame(), sealed.view.frame()
        assert step == other == now.step
        assert now.keys == then.keys
        assert [key.name for key in now.keys] == [*NAMES, "loss/x"]
        for column in (
            "count",
            "mean",
            "std",
            "l2",
            "hist_offsets",
            "hist_bins",
            "hist_counts",
            "channel_mean",
        ):
            np.testing.assert_array_equal(getattr(now.block, column), getattr(then.block, column), column)


def test_decoder_gives_the_same_keys_and_source_for_all_batches_of_a_segment(tmp_path: Path) -> None:
    decoder = Decoder()
    parts = [part for chunk in chunks(write(tmp_path / "run", seal=True)) for part in decoder.parts(chunk)]
    assert [part.step for part in parts] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert all(part.keys is parts[0].keys and part.source is parts[0].source for part in parts[::2])
    assert [len(part.block) for part in parts[:2]] == [len(NAMES), 1]


def test_decoder_keeps_the_tables_of_ranks_that_are_read_side_by_side(tmp_path: Path) -> None:
    decoder = Decoder()
    found = chunks(write(tmp_path / "run", seal=True))
    other = found[0].source.slice(0)
    sources = []
    for chunk in found:
        sources.append(decoder.parts(chunk)[0].source)
        sources.append(decoder.parts(Chunk(1, "stats", other, chunk.rows, ""))[0].source)
    assert len({id(source) for source in sources}) == 2


def test_broken_table_is_refused_for_each_of_its_batches(tmp_path: Path) -> None:
    good = chunks(write(tmp_path / "run", seal=True))
    source = good[0].source
    place = source.column_names.index("hist_counts")
    bad = source.set_column(place, "hist_counts", pa.array([[1]] * len(source), pa.list_(pa.uint32())))
    decoder = Decoder()
    for chunk, wanted in zip(good, ("do not belong together", "a table that is broken"), strict=False):
        with pytest.raises(ValueError, match=wanted):
            decoder.parts(Chunk(0, "stats", bad, chunk.rows, ""))
    assert decoder.parts(good[0])
