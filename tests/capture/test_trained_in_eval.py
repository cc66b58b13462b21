"""Trainings that go on in eval mode, as after a validation that nobody calls ``train()`` after."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import tdbg_lab as tdbg

EPOCHS, BATCHES = 3, 10


def trained(path, *between, back=False):
    """What a run has of a training with validations, and its losses as they were."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), *between, nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = torch.randn(80, 4), torch.randint(0, 3, (80,))
    losses = []
    with tdbg.attach(model, optimizer=optimizer, store=path, profiler=False, rules="none") as handle:
        for _ in range(EPOCHS):
            for at in range(BATCHES):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x[8 * at : 8 * at + 8]), y[8 * at : 8 * at + 8])
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            model.eval()
            with torch.no_grad():
                for at in range(2):
                    model(x[at::2])
            model.train(back)
    return handle.run, losses


def test_steps_in_eval_mode_are_training_where_the_mode_makes_no_difference(tmp_path):
    run, losses = trained(tmp_path / "run")
    series = run.scalars("loss/objective", mode="train")
    # the first step after the validation tells that it is one
    assert series.steps.tolist() == [at for at in range(EPOCHS * BATCHES) if at != BATCHES]
    assert series.values.tolist() == pytest.approx([losses[at] for at in series.steps], rel=1e-6)
    assert run.steps(mode="train", tensor="activation/0").tolist() == [0, 20]
    assert run.scalars("loss/objective", mode="eval").steps.tolist() == [BATCHES]
    assert run.steps(mode="eval", tensor="activation/0").tolist() == [10, 20, 30]


def test_steps_in_eval_mode_stay_apart_where_it_makes_a_difference(tmp_path):
    run, _ = trained(tmp_path / "run", nn.Dropout())
    assert run.scalars("loss/objective", mode="train").steps.tolist() == list(range(BATCHES))
    assert len(run.scalars("loss/objective", mode="eval").steps) == (EPOCHS - 1) * BATCHES
    assert "check/train_in_eval" in run.tensor_names(kind="check")


def test_training_that_comes_back_to_train_mode_is_as_ever(tmp_path):
    run, losses = trained(tmp_path / "run", back=True)
    assert run.scalars("loss/objective", mode="train").values.tolist() == pytest.approx(losses, rel=1e-6)
    assert run.tensor_names(kind="loss", mode="eval") == []
