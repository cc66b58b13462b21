"""A segment that has ended and is not sealed yet: its lists are read from the file again."""

from __future__ import annotations

from store.rows import KEYS, rows
from tdbg_lab.records import Mode
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, create_run

LOSS = KEYS[2]


def test_histograms_are_read_where_numbers_of_several_steps_were_written_together(tmp_path):
    path = create_run(tmp_path / "run").path
    writer = RankWriter(path, seal=False)
    writer.append(rows(0))
    run = open_run(path)
    writer.append_scalars([1, 2, 3], [1, 2, 3], (LOSS,) * 3, [0.3, 0.2, 0.1], mode=Mode.TRAIN)
    writer.append(rows(4))
    writer.close()
    run.refresh()
    assert run.tensor("a.weight").histograms().steps.tolist() == [0, 4]
    assert run.problems == []
