"""An interrupt (Ctrl-C in a notebook) may come anywhere: what the writer gets after it is readable."""

from __future__ import annotations

import pytest

from store.rows import KEYS, rows
from tdbg_lab.run import open_run
from tdbg_lab.store import RankWriter, batch_form, create_run
from tdbg_lab.store import stream as streams


@pytest.fixture
def path(tmp_path):
    return create_run(tmp_path / "run").path


def interrupted_once(monkeypatch, owner, name):
    """The next call of a method is interrupted in its midst; those after it are as ever."""
    original, calls = getattr(owner, name), []

    def once(*args, **kwargs):
        calls.append(name)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, once)


@pytest.mark.parametrize(("owner", "name"), [(streams, "segment_metadata"), (streams.StreamWriter, "_write")])
def test_segment_whose_opening_is_interrupted_is_left_for_the_next(path, monkeypatch, owner, name):
    writer = RankWriter(path, seal=False)
    interrupted_once(monkeypatch, owner, name)
    with pytest.raises(KeyboardInterrupt):
        writer.append(rows(0))
    for step in range(1, 4):
        writer.append(rows(step))
    run = open_run(path)
    assert run.scalars("loss").steps.tolist() == [1, 2, 3]
    writer.close()
    assert not run.problems


def test_batch_that_is_interrupted_while_it_is_laid_out_spoils_none_after_it(path, monkeypatch):
    writer = RankWriter(path)
    for step in range(4):
        writer.append(rows(step))
    interrupted_once(monkeypatch, batch_form, "_starts")
    with pytest.raises(KeyboardInterrupt):  # its lists are of other lengths than those of the step before
        writer.append(rows(4))
    for step in (5, 6, 7):
        writer.append(rows(step, seed=3))  # as long as the last ones that were written
    writer.close()
    run = open_run(path)
    assert run.scalars("loss").steps.tolist() == [0, 1, 2, 3, 5, 6, 7]
    for key in KEYS:
        before, after = (run.tensor(key.name).stats(step) for step in (3, 7))
        assert after.hist_bins.tolist() == before.hist_bins.tolist()
        assert after.channel_mean.tolist() == before.channel_mean.tolist()
    assert not run.problems
