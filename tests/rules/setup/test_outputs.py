"""Outputs that are alike, end in the wrong function, or collapse on the way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.rules import run_rules
from tests.rules.healthy_loops import digits, mlp
from tests.rules.made import Made

from .facts import facts_of, own_facts


@pytest.mark.parametrize(
    ("end", "labels", "found"),
    [
        *((1, (-0.7, 4.5), 1), (0, (-0.7, 4.5), 0), (1, (0.0, 1.05), 0), (2, (-3.0, 0.5), 1)),
        *((3, (-2.0, 2.0), 1), (3, (0.0, 40.0), 0), (3, (-0.1, 40.0), 0), (99, (-0.7, 4.5), 0)),
    ],
)
def test_labels_beyond_the_function_at_the_end_are_found_whatever_outputs_are(tmp_path, end, labels, found):
    made = Made(tmp_path / "run")
    facts = {"kind": 7, "end": end, "target_min": labels[0], "target_max": labels[1], "samples": 8}
    facts |= {"prediction_min": 0.4, "prediction_max": 0.5, "prediction_size": 0.45, "target_size": 2.0}
    for step in range(5):
        made.step(step, {f"check/loss/MSELoss/{name}": float(value) for name, value in facts.items()})
    assert len(made.check("label_range")[0]) == found


def test_zeros_in_half_of_the_matrices_are_healthy(tmp_path):
    for zeros in (2, 3):
        made = Made(tmp_path / str(zeros))
        for step in range(3):
            weights = {f"{at}.weight": np.zeros((8, 8)) if at < zeros else np.eye(8) for at in range(4)}
            made.step(step, weights)
        assert len(made.check("symmetric_weights")[0]) == (zeros == 3)


@pytest.mark.parametrize(
    ("left", "size", "correlation", "found"),
    [(0.02, 0.2, 0.0, 1), (0.02, 0.02, 0.0, 0), (0.3, 3.0, 0.0, 0), (0.02, 0.2, 0.9, 0)],
    ids=["collapsed", "small altogether", "some left", "goes with its targets"],
)
def test_outputs_that_are_drawn_together_are_found(tmp_path, left, size, correlation, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        spread = max(left, 0.8**step)
        more = {"correlation": correlation * (step > 10), "target_size": size}
        made.step(step, {"loss/Own": spread} | own_facts(spread, max(size, spread), **more))
    assert len(made.check("constant_output")[0]) == found


@pytest.mark.parametrize(
    ("spread", "low", "growing", "found"),
    [(0.005, -1.0, 0.0, 1), (0.2, -1.0, 0.0, 0), (0.005, 0.9, 0.0, 0), (0.005, -1.0, 0.5, 0)],
    ids=["collapsed", "tells samples apart", "targets are as near", "learns the mean"],
)
def test_outputs_that_are_alike_in_evaluation_are_found(tmp_path, spread, low, growing, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        made.step(step, {"loss/Own": 1.0} | own_facts(0.3, 1.0, target_min=low, target_max=1.0))
        if step % 10 == 9:
            size = 1.0 + growing * step
            made.step(step, own_facts(spread * size, size, target_min=low, target_max=1.0), mode="eval")
    assert len(made.check("constant_output")[0]) == found


@pytest.mark.parametrize(("left", "found"), [(0.0016, 1), (0.3, 0)])
def test_representations_that_only_shrank_are_found(tmp_path, left, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        kept = 0.04 ** (step / 59)
        facts = own_facts(0.5 * kept, 2.4 * kept if step < 40 else 0.1, classes=48.0)
        made.step(step, {"loss/Own": left ** (step / 59)} | facts)
    assert len(made.check("constant_output")[0]) == found


def test_last_layer_that_is_constant_is_found_without_a_loss_module(tmp_path):
    for constant, found in ((True, 1), (False, 0)):
        made = Made(tmp_path / str(constant))
        for step in range(12):
            output = np.ones((16, 1)) if constant else np.random.default_rng(step).random((16, 1))
            made.step(
                step, {"activation/body": np.ones((16, 4)), "activation/head": output, "loss/total": 0.7}
            )
        made.end()
        findings = made.check("constant_output")[0]
        assert [one.tensor for one in findings] == ["activation/head"] * found


@pytest.mark.parametrize(("spread", "found"), [(0.1, 1), (1e-5, 0)])
def test_constants_between_0_and_1_say_nothing_of_a_sigmoid(tmp_path, spread, found):
    made = Made(tmp_path / "run")
    ends = {"prediction_min": 0.1, "prediction_max": 0.5, "row_sum_min": 1.2, "row_sum_max": 1.3}
    facts = {"prediction_zeros": 0.0, "prediction_broken": 0.0, "prediction_size": 0.3, "spread": spread}
    facts |= {"kind": 1.0, "classes": 6.0, "samples": 64.0} | ends
    for step in range(40):
        made.step(step, {"loss/CrossEntropyLoss": 1.8} | facts_of("CrossEntropyLoss", **facts))
    assert len(made.check("wrong_output")[0]) == found


def test_what_only_noise_varies_is_alike_in_evaluation(tmp_path):
    for in_training, found in ((1.0, 1), (0.06, 0)):
        made = Made(tmp_path / str(in_training))
        for step in range(40):
            made.step(step, own_facts(in_training, 1.0, target_min=-3.0, target_max=3.0))
            if step % 10 == 9:
                made.step(step, own_facts(0.05, 1.0, target_min=-3.0, target_max=3.0), mode="eval")
        assert len(made.check("constant_output")[0]) == found


@pytest.mark.parametrize("since", [0, 20], ids=["always", "of late"])
def test_logits_that_are_positive_now_and_then_come_from_no_sigmoid(tmp_path, since):
    made = Made(tmp_path / "run")
    for step in range(40):
        facts = {"prediction_min": 0.1 if step >= since else -0.2, "prediction_max": 0.8, "classes": 5.0}
        facts |= {"prediction_zeros": 0.0, "prediction_broken": 0.0, "row_sum_min": 1.5, "row_sum_max": 2.5}
        made.step(step, {f"check/loss/CrossEntropyLoss/{name}": value for name, value in facts.items()})
    assert [one.evidence["problem"] for one in made.check("wrong_output")[0]] == ["sigmoid"] * (since == 0)


@pytest.mark.parametrize(("first", "found"), [(0.45, 1), (0.01, 0)], ids=["from a half", "from zero"])
def test_logits_that_begin_just_above_zero_come_from_no_sigmoid(tmp_path, first, found):
    made = Made(tmp_path / "run")
    for step in range(30):
        least = first if step < 5 else 0.02
        facts = {"prediction_min": least, "prediction_max": least + 0.2, "prediction_broken": 0.0}
        facts |= {"row_logsumexp_min": 1.0, "row_logsumexp_max": 1.2, "target_min": 0.0, "target_max": 1.0}
        made.step(step, {f"check/loss/BCEWithLogitsLoss/{name}": value for name, value in facts.items()})
    assert len(made.check("wrong_output")[0]) == found


@pytest.mark.parametrize("sigmoid", [True, False], ids=["sigmoid", "logits"])
def test_a_sigmoid_whose_outputs_gather_at_zero_is_told(tmp_path, sigmoid):
    """One-hot labels of ten classes: nine in ten outputs are to be low."""
    (x, y), criterion = digits(), nn.BCEWithLogitsLoss()
    torch.manual_seed(3)
    model = nn.Sequential(mlp(), nn.Sigmoid() if sigmoid else nn.Identity())
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with tdbg.attach(
        model, optimizer=optimizer, loss=criterion, store=tmp_path / "run", save_every=2, profiler=False
    ):
        for _ in range(200):
            at = torch.randint(0, len(x), (32,))
            optimizer.zero_grad()
            criterion(model(x[at]), nn.functional.one_hot(y[at], 10).float()).backward()
            optimizer.step()
    found = [one.rule for one in run_rules(tmp_path / "run", ["wrong_output"])]
    assert found == ["wrong_output"] * sigmoid
