"""Stages of `torch.distributed.pipelining`, one process each: micro-batches are one step."""

from __future__ import annotations

import json

import pytest
import torch
from two_processes import HERE, launched, told_by_each

from tdbg_lab.rules import run_rules
from tdbg_lab.run import open_run

pytest.importorskip("torch.distributed.pipelining")

SCRIPT = HERE / "pipeline_training.py"

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="needs gloo"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    root = tmp_path_factory.mktemp("pipeline")
    launched(SCRIPT, root, timeout=200)
    return root, told_by_each(root)


def check_run(run, losses):
    """Each rank has its stage, steps are those of the optimizer, and the loss is of all micro-batches."""
    assert run.ranks() == [0, 1]
    assert run.info.world_size == 2
    assert str(run.status) == "finished"
    assert run.problems == []
    for rank, others in ((0, "2.weight"), (1, "0.weight")):
        own = "2.weight" if rank else "0.weight"
        assert len(run.stats(own, "l2", rank=rank)) > 0
        assert len(run.stats(others, "l2", rank=rank)) == 0
        assert run.steps(tensor=f"gradient/{own}").tolist() == [0, 2, 4]
    seen = run.stats("loss/CrossEntropyLoss", ["count", "mean"], rank=1)
    assert seen["step"].tolist() == [0, 1, 2, 3, 4]
    assert seen["count"].tolist() == [4] * 5, "no more than the micro-batches: nothing of the rehearsal"
    assert seen["mean"].tolist() == pytest.approx(losses, rel=1e-6)
    rows, width = 8, 16
    for name in ("activation/0", "activation/2"):
        counts = run.stats(name, "count")
        assert counts["step"].tolist() == [0, 2, 4]
        assert counts["count"].tolist() == [rows * width] * 3


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
def test_stages_train_to_the_same_bits_and_micro_batches_are_one_step(trained, schedule):
    root, ranks = trained
    for one in ranks:
        bare, attached = one[schedule]
        assert bare == attached
    check_run(open_run(root / schedule), ranks[1][schedule][0]["losses"])


@pytest.mark.parametrize("schedule", ["GPipe", "1F1B"])
def test_stages_are_no_replicas(trained, schedule):
    root, _ = trained
    run = open_run(root / schedule)
    assert [run.scalars("check/stage", rank=rank).values[0] for rank in (0, 1)] == [1, 1]
    assert run_rules(run.path, ["diverging_replicas"]) == []


def test_a_pipeline_is_captured_without_a_change_of_the_script(trained, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"save_every": 2}))
    store = tmp_path / "run"
    launched(
        "-m", "tdbg_lab.run", "--config", config, "--store", store, SCRIPT, tmp_path, "GPipe", timeout=200
    )
    assert [one["weights"] for one in told_by_each(tmp_path)] == [
        one["GPipe"][0]["weights"] for one in trained[1]
    ]
    check_run(open_run(store), trained[1][1]["GPipe"][0]["losses"])
