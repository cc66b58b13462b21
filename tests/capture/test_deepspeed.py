"""DeepSpeed: gradients and weights that are divided over processes, a pipeline, and transformers' trainer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from two_processes import HERE, environment, launched, told_by_each

from tdbg_lab.rules import run_rules
from tdbg_lab.run import open_run
from tdbg_lab.store import requests

APART = Path(sys.prefix) / "deepspeed"
"""Where scripts/test builds it."""

pytestmark = [
    pytest.mark.skipif(not APART.is_dir(), reason="DeepSpeed is not there: scripts/test builds it"),
    pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo"),
]
DIVIDED = ("zero1", "zero2", "zero3", "bfloat16")
SAVED = [0, 2, 4]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """All scenarios, run once by torchrun in two processes."""
    root = tmp_path_factory.mktemp("deepspeed")
    launched(HERE / "deepspeed_training.py", root, env=environment(APART, DS_ACCELERATOR="cpu"))
    return root, told_by_each(root)


def rows_of(run, kind, step):
    stats = run.stats(run.tensor_names(kind=kind), ["count", "l2", "min", "max"])
    stats = stats[stats["step"] == step].set_index("tensor")
    return {name: [row["count"], row["l2"], row["min"], row["max"]] for name, row in stats.iterrows()}


@pytest.mark.parametrize("name", ["zero0", *DIVIDED])
def test_trains_to_the_same_bits_and_nothing_goes_wrong(trained, name):
    root, told = trained
    assert [one[name]["same"] for one in told] == [True, True]
    assert [one[name]["problems"] for one in told] == [[], []]
    run = open_run(root / name)
    assert str(run.status) == "finished"
    assert run.ranks() == [0, 1]
    assert run.steps(mode="train").tolist() == list(range(6))
    assert "activation/first" in run.tensor_names(), "names are the model's, not the engine's"


@pytest.mark.parametrize("name", DIVIDED)
def test_parts_of_gradients_are_put_together(trained, name):
    root, told = trained
    run = open_run(root / name)
    for step in SAVED:
        expected = told[0][name]["gradients"][str(step)]
        found = rows_of(run, "gradient", step)
        assert found.keys() == {f"gradient/{key}" for key in expected}
        for key, numbers in expected.items():
            assert found[f"gradient/{key}"] == pytest.approx(numbers, rel=1e-5), (step, key)


def test_parts_of_weights_are_put_together(trained):
    root, told = trained
    run = open_run(root / "zero3")
    apart = [run.stats("first.weight", "count", rank=rank)["count"].iloc[0] for rank in (0, 1)]
    assert sum(apart) == 105 != apart[0]
    for step in SAVED:
        found = rows_of(run, "weight", step)
        for key, numbers in told[0]["zero3"]["weights"][str(step)].items():
            if key in found:  # biases are a kind of their own
                assert found[key] == pytest.approx(numbers, rel=1e-5), (step, key)
        assert len(found) == 2


@pytest.mark.parametrize("name", DIVIDED)
def test_norm_is_the_one_before_clipping_over_all_processes(trained, name):
    root, told = trained
    norms = open_run(root / name).scalars("optimizer/grad_norm")
    assert norms.steps.tolist() == SAVED
    assert norms.values == pytest.approx([told[0][name]["norms"][step] for step in SAVED], rel=1e-5)


def test_clipping_without_zero_is_seen_from_both_sides(trained):
    run = open_run(trained[0] / "zero0")
    assert run.scalars("optimizer/grad_norm_clipped").values == pytest.approx([0.05] * 3, rel=1e-3)
    divided = open_run(trained[0] / "zero2").scalars("optimizer/grad_norm").values
    assert run.scalars("optimizer/grad_norm").values == pytest.approx(divided, rel=1e-4)


@pytest.mark.parametrize("name", ["zero0", *DIVIDED])
def test_rates_updates_and_evaluation(trained, name):
    root, told = trained
    run = open_run(root / name)
    rates = run.scalars("optimizer/lr/0")
    assert rates.values == pytest.approx([told[0][name]["rates"][step] for step in SAVED])
    evaluated = run.scalars("loss/CrossEntropyLoss", mode="eval").values
    assert evaluated == pytest.approx([sum(one[name]["eval"] for one in told) / 2], rel=1e-5)
    moved = run.scalars("optimizer/update_ratio/first.weight").values
    assert moved[0] == 0.0 < moved[-1], "the rate begins at 0"


def test_steps_that_overflow_are_counted(trained):
    root, told = trained
    told = told[0]["float16"]
    assert 1 < told["skipped"] <= 6
    run = open_run(root / "float16")
    assert run.steps(mode="train").tolist() == list(range(6)), "each of them is a step"
    assert run.scalars("optimizer/skipped_steps").values[-1] == told["skipped"]
    assert run.scalars("check/skipped_in_a_row").values[-1] == told["skipped"]
    assert run.scalars("check/scale").values[-1] >= told["scale"]
    assert run.problems == []


def test_no_rule_takes_what_is_divided_for_an_error(trained):
    for name in ("zero0", *DIVIDED, "pipeline"):
        assert run_rules(trained[0] / name, "default") == [], name


def test_a_rate_that_is_asked_for_is_set_and_clipping_refused(trained):
    root, told = trained
    assert [one["settings"]["rate"] for one in told] == [0.25, 0.25]
    rate, clipping = requests(root / "settings")
    assert rate.state == "done"
    assert clipping.state == "refused"
    assert "set gradient_clipping in its configuration" in clipping.answer


def test_an_optimizer_that_was_given_before_is_taken_over(trained):
    run = open_run(trained[0] / "taken_over")
    assert run.steps(mode="train").tolist() == list(range(6))
    assert run.scalars("optimizer/lr/1").values == pytest.approx([0.5] * 3)
    assert run.scalars("optimizer/grad_norm").steps.tolist() == SAVED
    assert run.steps(tensor="gradient/last.weight").tolist() == SAVED


def test_stages_of_a_pipeline_are_steps_of_one_run(trained):
    root, told = trained
    run = open_run(root / "pipeline")
    assert run.scalars("loss/CrossEntropyLoss").values == pytest.approx(told[0]["pipeline"]["losses"])
    assert {"0.weight", "2.weight"} <= set(run.tensor_names(kind="weight"))


def test_trainer_of_transformers_with_an_optimizer_around_that_of_deepspeed(trained):
    root, told = trained
    run = open_run(root / "trainer")
    log = told[0]["trainer"]["log"]
    assert run.steps(mode="train").tolist() == [0, 1, 2, 3]
    norms = run.scalars("optimizer/grad_norm")
    assert norms.values == pytest.approx([log[step]["grad_norm"] for step in norms.steps], rel=1e-4)
    assert run.scalars("loss/BertForSequenceClassification").values == pytest.approx(
        [one["loss"] for one in log], rel=1e-4
    )
    assert len(run.tensor_names(kind="gradient")) > 10
