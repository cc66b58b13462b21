"""Hugging Face Accelerate on two processes: attached before or after `prepare`, accumulating or not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from two_processes import HERE, launched, told_by_each

from tdbg_lab.run import open_run

pytest.importorskip("accelerate")
STEPS = 4
FORMS = ["early-1", "late-1", "bare-1", "early-2", "late-2", "bare-2"]
"""When it was attached (without the optimizer: bare), and batches of a step."""

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available() or not torch.distributed.is_gloo_available(), reason="needs gloo"
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """All forms, run once by torchrun in two processes, and what each of them saw itself."""
    root = tmp_path_factory.mktemp("accelerate")
    launched(HERE / "accelerated_training.py", root)
    return root, told_by_each(root)


@pytest.mark.parametrize("form", FORMS)
def test_training_is_the_same_with_and_without(trained, form):
    for told in trained[1]:
        plain = told[f"plain-{form[-1]}"]
        assert told[form]["weights"] == plain["weights"]
        assert told[form]["losses"] == plain["losses"]
        assert told[form]["problems"] == []


@pytest.mark.parametrize("form", FORMS)
def test_each_rank_writes_a_step_for_each_step_of_the_optimizer(trained, form):
    root, told = trained
    run = open_run(root / form)
    assert run.ranks() == [0, 1]
    assert (str(run.status), run.info.world_size) == ("finished", 2)
    assert run.steps().tolist() == list(range(STEPS))
    assert [one[form]["step"] for one in told] == [STEPS, STEPS]


@pytest.mark.parametrize("form", FORMS)
def test_names_are_those_of_the_model_itself(trained, form):
    names = set(open_run(trained[0] / form).tensor_names())
    assert {"first.weight", "last.bias", "gradient/first.weight", "activation/act"} <= names
    assert {"loss/CrossEntropyLoss", "optimizer/lr/0"} <= names
    assert not [name for name in names if "module" in name]


@pytest.mark.parametrize("form", FORMS)
def test_gradients_are_those_of_the_step_and_losses_those_of_the_rank(trained, form):
    root, told = trained
    run = open_run(root / form)
    micros = int(form[-1])
    for rank in (0, 1):
        losses = np.reshape(told[rank][form]["losses"], (STEPS, micros)).mean(axis=1)
        found = run.scalars("loss/CrossEntropyLoss", rank=rank).values
        np.testing.assert_allclose(found, losses, rtol=1e-6)
        for step in range(STEPS):
            gradient = run.tensor("gradient/first.weight").value(step, rank=rank)
            np.testing.assert_array_equal(gradient, np.float32(told[rank][form]["gradients"][step]))
    rates = run.scalars("optimizer/lr/0").values.tolist()
    assert rates[0] == 0.1
    assert rates[-1] < 0.1, "what accelerate's scheduler sets is seen"
