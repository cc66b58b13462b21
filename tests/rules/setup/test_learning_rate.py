"""Rates that are too high, too low, or no matter: what losses and steps say of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab.rules import run_rules
from tests.rules.made import Made
from tests.rules.silent.loops import Loop

from .facts import own_facts
from .healthy_set_ups import Numbers


@pytest.mark.parametrize(("late", "found"), [(2.1, 1), (1.9, 0)])
def test_loss_that_stays_above_its_beginning_diverges(tmp_path, late, found):
    made = Made(tmp_path / "run")
    for step in range(80):
        made.step(step, {"loss/a": 1.0 if step < 50 else late})
    findings, _ = made.check("diverging_loss")
    assert [one.step_first for one in findings] == [50] * found


@pytest.mark.parametrize(("sign", "found"), [(-1.0, 1), (1.0, 0)])
def test_loss_whose_sign_is_turned_falls_without_end(tmp_path, sign, found):
    class Error(nn.Module):
        def forward(self, told, wanted):
            return sign * (told - wanted).square().mean()

    class Turned(Numbers):
        steps, save_every = 200, 2

        def set_up(self):
            super().set_up()
            self.model[6] = nn.Linear(32, 1)
            self.optimizer, self.loss = torch.optim.Adam(self.model.parameters(), 1e-2), Error()

    findings = run_rules(Turned().run(tmp_path / "run"), ["diverging_loss"])
    assert ["without end" in one.message for one in findings] == [True] * found


@pytest.mark.parametrize(("rate", "found"), [(1.0, 1), (1e-2, 0)])
def test_step_that_replaces_the_weights_is_found_though_later_ones_look_healthy(tmp_path, rate, found):
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 10)

        def forward(self, x):
            return self.head(self.rnn(x.view(-1, 8, 8))[0][:, -1])

    class Digits(Loop):
        steps, save_every = 70, 2

        def make_optimizer(self):
            torch.manual_seed(0)
            self.model = Recurrent()
            return torch.optim.Adam(self.model.parameters(), rate)

    findings = run_rules(Digits().run(tmp_path / "run"), ["learning_rate"])
    assert [one.evidence["update_ratio_largest"] > 1 for one in findings] == [True] * found


@pytest.mark.parametrize(("ratio", "fall", "found"), [(6e-6, 0.001, 1), (6e-6, 0.1, 0), (4e-4, 0.001, 0)])
def test_rate_that_moves_nothing_is_found_without_noise(tmp_path, ratio, fall, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        loss = 1.4 * (1 - fall * step / 60)
        made.step(step, {"loss/a": loss, "optimizer/update_ratio/a.weight": ratio, "optimizer/lr/0": 3e-6})
    assert len(made.check("learning_rate")[0]) == found


@pytest.mark.parametrize(
    ("ratio", "fall", "hits", "found"),
    [
        (8e-5, 0.3, 0.1, 1),
        (8e-6, 0.3, 0.1, 1),
        (8e-5, 0.7, 0.1, 0),  # there soon
        (2e-4, 0.3, 0.1, 0),  # steps of a healthy size
        (8e-5, 0.3, 0.6, 0),  # a trained model, to be tuned
        (8e-5, 0.0, 0.1, 0),  # not for want of steps alone
    ],
)
def test_loss_that_creeps_by_tiny_steps_asks_for_a_higher_rate(tmp_path, ratio, fall, hits, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        told = {"check/loss/a/hits": hits, "check/loss/a/chance": 0.1}
        rate = {"optimizer/update_ratio/a.weight": ratio, "optimizer/lr/0": 3e-6}
        made.step(step, {"loss/a": 1.4 * (1 - fall * step / 60)} | told | rate)
    assert len(made.check("learning_rate")[0]) == found


@pytest.mark.parametrize(
    ("late", "later", "found"), [(1.0, 0.01, 1), (1.0, 0.0, 1), (1.0, 1.0, 1), (0.99, 0.01, 0)]
)
def test_loss_that_comes_back_after_a_large_step_is_healthy(tmp_path, late, later, found):
    made = Made(tmp_path / "run")
    for step in range(40):
        ratio = 1.0 if step == 0 else later
        made.step(step, {"loss/a": 1.0 if step == 0 else late, "optimizer/update_ratio/a.weight": ratio})
    assert len(made.check("learning_rate")[0]) == found


@pytest.mark.parametrize(("ratio", "spread", "found"), [(0.4, 0.0, 1), (0.1, 0.0, 0), (0.4, 0.5, 0)])
def test_large_steps_before_a_constant_output_are_the_cause(tmp_path, ratio, spread, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        given = own_facts(0.5 if step < 6 else spread, 1.0)
        loss = {"loss/MSELoss": 1.0 if step < 6 else 0.9}
        made.step(step, given | loss | {"optimizer/update_ratio/a.weight": ratio if step == 4 else 1e-3})
    made.end()
    findings, _ = made.check("constant_output", "learning_rate")
    assert [one.rule for one in findings].count("learning_rate") == found


@pytest.mark.parametrize(
    ("evaluations", "slope", "found"),
    [(3, 5e-8, 0), (5, 5e-8, 1), (0, 5e-8, 0), (0, 1e-8, 1)],
    ids=["few evaluations", "outlasts evaluations", "10,000 steps", "50,000 steps"],
)
def test_warm_up_that_nobody_waits_for_is_too_slow(tmp_path, evaluations, slope, found):
    made = Made(tmp_path / "run")
    for step in range(200):
        facts = {"check/evaluations": step * evaluations // 199}
        rate = {"optimizer/update_ratio/a.weight": slope * (step + 1), "optimizer/lr/0": 1e-9 * (step + 1)}
        made.step(step, {"loss/a": 1.4} | rate | facts)
    assert len(made.check("learning_rate")[0]) == found


@pytest.mark.parametrize(("fall", "spread", "found"), [(0.0, 9.0, 1), (0.5, 2.0, 0)])
def test_rate_that_is_too_low_is_told_under_a_noisy_loss(tmp_path, fall, spread, found):
    made = Made(tmp_path / "run")
    noise = np.random.default_rng(0).normal(size=200)
    for step in range(200):
        loss = 50.0 * (1.0 - fall * step / 200) + spread * noise[step]
        made.step(step, {"loss/a": loss, "optimizer/update_ratio/a.weight": 4e-6, "optimizer/lr/0": 5e-7})
    assert len(made.check("learning_rate")[0]) == found


def test_weights_without_any_gradient_are_no_matter_of_the_rate(tmp_path):
    for slope in (0.0, 1e-12):
        made = Made(tmp_path / str(slope))
        for step in range(60):
            tensors = {"optimizer/update_ratio/a.weight": slope, "optimizer/lr/0": 0.1}
            tensors |= {"a.weight": np.eye(4), "gradient/a.weight": slope * np.eye(4)}
            made.step(step, {"loss/a": 1.4} | tensors)
        assert len(made.check("learning_rate")[0]) == (slope > 0)


def test_rate_that_left_a_constant_output_is_named(tmp_path):
    for ratio, found in ((2.0, 1), (0.05, 0)):
        made = Made(tmp_path / str(ratio))
        for step in range(60):
            facts = own_facts(0.5 if step < 4 else 1e-6, 1.0, target_min=-1.0, target_max=1.0)
            facts |= {"optimizer/update_ratio/a.weight": ratio if step == 0 else 0.01}
            made.step(step, {"loss/Own": 2.7 if step == 0 else 2.4} | facts)
        findings = made.check("constant_output", "learning_rate")[0]
        assert len([one for one in findings if one.rule == "learning_rate"]) == found
