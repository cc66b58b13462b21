"""Runs that are made for tests and demonstrations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tdbg_lab.records import Kind, Mode, RunStatus
from tdbg_lab.run import open_run
from tdbg_lab.testing import fake_run


def test_fake_run_has_everything(tmp_path):
    path = fake_run(tmp_path / "run", steps=20, layers=2, modes=("train", "eval"))
    run = open_run(path)
    absent = {Kind.BUFFER, Kind.INPUT, Kind.CUSTOM, Kind.CHECK}
    assert {key.kind for key in run.tensors()} == set(Kind) - absent
    assert run.modes() == [Mode.TRAIN, Mode.EVAL]
    assert len(run.tensor("activation/layer0").stats(0).channel_mean) == 16
    assert run.tensor("latent").value(10).shape == (64, 8)
    assert run.tensor("latent").labels(10).shape == (64,)
    assert len(run.findings()) == 1
    assert len(run.rule_states()) == 2
    assert run.status == RunStatus.FINISHED
    assert run.problems == []
    with pytest.raises(ValueError, match="odd"):
        fake_run(tmp_path / "x", steps=1, status="odd")


def test_fake_run_is_the_same_for_the_same_seed(tmp_path):
    one, other = (open_run(fake_run(tmp_path / name, steps=3)) for name in "ab")
    assert one.to_pandas().equals(other.to_pandas())
    assert replace(one.info, id="", name="", created_ns=0, ended_ns=0) == replace(
        other.info, id="", name="", created_ns=0, ended_ns=0
    )
