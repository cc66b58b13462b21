"""Labels that have nothing to do with the inputs, or are not the same in training and evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from tdbg_lab.records import Severity
from tdbg_lab.rules import run_rules
from tests.rules.made import Made
from tests.rules.silent.loops import Loop

from .facts import facts_of, own_facts
from .faulty_set_ups import Shuffled


@pytest.mark.parametrize(("ends", "cause"), [(180, "unrelated_labels"), (40, "frozen_schedule")])
def test_shuffled_labels_are_told_beside_a_schedule_that_ended_after_time_to_learn(tmp_path, ends, cause):
    class Ending(Shuffled):
        def before(self, step):
            self.optimizer.param_groups[0]["lr"] = 0.1 * max(0.0, 1 - step / ends)

    found = run_rules(Ending().run(tmp_path / "run"), ["frozen_schedule", "unrelated_labels"])
    alarms = {one.rule for one in found if one.severity is not Severity.NOTICE}
    assert cause in alarms
    assert alarms <= {cause, "frozen_schedule"}


@pytest.mark.parametrize(("shuffled", "found"), [(True, 1), (False, 0)])
def test_labels_that_embeddings_have_nothing_to_do_with_are_found(tmp_path, shuffled, found):
    class Nearer(nn.Module):
        def forward(self, told, wanted):
            far, alike = torch.cdist(told, told), wanted[:, None] == wanted
            hardest = (far * alike).amax(1) - far.masked_fill(alike, 1e9).amin(1)
            return nn.functional.softplus(hardest).mean()

    class Metric(Loop):
        steps, save_every = 240, 4

        def __init__(self):
            super().__init__()
            self.loss = Nearer()
            if shuffled:
                self.y = self.y[torch.randperm(len(self.y))]

        def rows(self, step):
            return torch.randint(0, 1500, (64,), generator=self.random)

        def make_optimizer(self):
            return torch.optim.Adam(self.model.parameters(), 1e-3)

    findings = run_rules(Metric().run(tmp_path / "run"), ["unrelated_labels"])
    assert len(findings) == found


@pytest.mark.parametrize(
    ("trained", "held", "falls", "found"),
    [(0.6, 0.0, 0.0, 1), (0.2, 0.0, 0.0, 1), (0.2, 0.4, 0.0, 0), (0.2, 0.0, 0.3, 0)],
    ids=["known by heart", "hardly known", "held out, too", "loss held out falls"],
)
def test_numbers_that_rows_held_out_have_nothing_to_do_with_are_found(tmp_path, trained, held, falls, found):
    made = Made(tmp_path / "run")
    facts = {"kind": 7.0, "samples": 150.0, "target_min": -2.0, "target_max": 2.0}
    for step in range(300):
        loss = {"loss/MSELoss": 1.0 - 0.1 * step / 300, "optimizer/update_ratio/a.weight": 1e-3}
        made.step(step, loss | facts_of("MSELoss", correlation=trained, **facts))
        if step % 50 == 49:
            loss = {"loss/MSELoss": 1.05 - falls * step / 300}
            made.step(step, loss | facts_of("MSELoss", correlation=held, **facts), mode="eval")
    findings = made.check("unrelated_labels")[0]
    assert ["not with those of 150 rows" in one.message for one in findings] == [True] * found


@pytest.mark.parametrize("gathers", [False, True])
def test_numbers_that_a_program_expects_itself_are_no_labels(tmp_path, gathers):
    """One that learns by acting predicts what it expects itself, and loses more as it earns more."""
    made = Made(tmp_path / "run")
    facts = {"kind": 7.0, "samples": 32.0, "target_min": -2.0, "target_max": 2.0, "correlation": 0.0}
    for step in range(300):
        loss = {"loss/objective": 1.0 + step / 300, "optimizer/update_ratio/a.weight": 1e-3}
        made.step(step, loss | facts_of("objective", **facts) | ({"check/gathers": 3.0} if gathers else {}))
    findings = made.check("unrelated_labels", "loss_not_decreasing")[0]
    found = {one.rule: one.message for one in findings}
    assert set(found) == (set() if gathers else {"unrelated_labels", "loss_not_decreasing"})
    assert gathers or "do not go with the labels (correlation 0.00)" in found["unrelated_labels"]


@pytest.mark.parametrize(
    ("held_loss", "right", "found"),
    [(0.69, 0.53, 1), (0.66, 0.53, 0), (0.69, 0.62, 0)],
    ids=["no better than nothing", "better", "told"],
)
def test_classes_that_evaluations_are_never_better_than_guessing_at_are_found(
    tmp_path, held_loss, right, found
):
    made = Made(tmp_path / "run")
    facts = {"kind": 5.0, "chance": 0.5, "samples": 2000.0, "labels": 2.0, "entropy": 0.693}
    for step in range(240):
        loss = {"loss/BCEWithLogitsLoss": 0.69 - 0.05 * step / 240, "optimizer/update_ratio/a.weight": 1e-3}
        made.step(step, loss | facts_of("BCEWithLogitsLoss", hits=0.6, **facts))
        if step % 60 == 59:
            loss = {"loss/BCEWithLogitsLoss": held_loss}
            made.step(step, loss | facts_of("BCEWithLogitsLoss", hits=right, **facts), mode="eval")
    findings = made.check("unrelated_labels")[0]
    assert ["never below that" in one.message for one in findings] == [True] * found


@pytest.mark.parametrize(
    ("trained", "held", "predicted", "found"),
    [(100.0, 1.0, 60.0, 1), (1.0, 100.0, 0.8, 1), (1.0, 100.0, 80.0, 0), (5.0, 1.0, 4.0, 0)],
    ids=["training in cents", "evaluations in cents", "predictions turned back", "other rows"],
)
def test_numbers_that_evaluations_have_in_other_units_are_found(tmp_path, trained, held, predicted, found):
    made = Made(tmp_path / "run")

    def given(size: float, told: float) -> dict[str, float]:
        ends = {
            "target_min": -3 * size,
            "target_max": 3 * size,
            "prediction_min": -told,
            "prediction_max": told,
        }
        sizes = {"target_size": size, "target_broken": 0.0, "prediction_size": told, "prediction_broken": 0.0}
        return {"loss/MSELoss": 1.0} | facts_of("MSELoss", kind=7.0, samples=64.0, **ends, **sizes)

    for step in range(60):
        made.step(step, given(trained * (1 + 0.01 * (step % 7)), predicted if trained > held else 0.8))
        if step % 15 == 14:
            made.step(step, given(held, predicted), mode="eval")
    assert len(made.check("label_range")[0]) == found


@pytest.mark.parametrize(
    ("least", "largest", "found"),
    [
        *((-999.0, 4.2, 1), (-99.0, -3.0, 1), (-999.0, 950.0, 0)),
        *((-100.0, 4.2, 0), (-9.0, 0.1, 0), (-np.inf, 4.2, 0)),
    ],
)
def test_numbers_that_stand_in_for_unknown_labels_are_found(tmp_path, least, largest, found):
    made = Made(tmp_path / "run")
    for step in range(4):
        ends = {"target_min": least, "target_max": largest, "prediction_max": 1.0, "correlation": 0.3}
        made.step(step, facts_of("MSELoss", kind=7.0, **ends))
    assert len(made.check("label_range")[0]) == found


@pytest.mark.parametrize(("most", "held", "found"), [(9.0, 3.7, 1), (4.0, 3.7, 0), (None, 3.7, 0)])
def test_a_number_that_only_training_has_in_every_batch_is_found(tmp_path, most, held, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        ends = {"target_min": -2 - step % 7 / 7, "target_max": 9 + step % 5 / 9 if most is None else most}
        known = {"prediction_max": 1.0, "correlation": 0.3, "target_broken": 0.0}
        made.step(step, facts_of("MSELoss", kind=7.0, **ends, **known))
        if step % 15 == 14:
            ends = {"target_min": -3.5, "target_max": held}
            made.step(step, facts_of("MSELoss", kind=7.0, **ends, **known), mode="eval")
    assert len(made.check("label_range")[0]) == found


def test_masks_of_bytes_are_found_by_their_zeros_and_their_size(tmp_path):
    for largest, found in ((255.0, 1), (1.0, 0)):
        made = Made(tmp_path / str(largest))
        for step in range(4):
            mask = {"min": 0.0, "max": largest, "zeros": 0.75, "size": 0.5 * largest}
            facts = {f"target_{name}": value for name, value in mask.items()}
            facts |= {"prediction_max": 1.0, "correlation": 0.3}
            made.step(step, {f"check/loss/Dice/{name}": value for name, value in facts.items()})
        assert len(made.check("label_range")[0]) == found


@pytest.mark.parametrize(
    ("held", "found"), [((0.0, 1.0), 1), ((1.0, 2.0), 0), ((1.0, 1.0), 0), ((0.0, 0.0), 0)]
)
def test_labels_that_evaluations_number_otherwise_are_found(tmp_path, held, found):
    made = Made(tmp_path / "run")
    for step in range(40):
        for mode, ends in (("train", (1.0, 2.0)), ("eval", held)):
            if mode == "eval" and step % 10 < 9:
                continue
            facts = {"target_min": ends[0], "target_max": ends[1], "prediction_max": 3.0}
            made.step(
                step, {f"check/loss/Own/{name}": value for name, value in facts.items()}, mode=mode, micro=1
            )
    assert len(made.check("label_range")[0]) == found


@pytest.mark.parametrize(("collapsed", "found"), [(60, True), (4, False)])
def test_labels_are_suspected_though_outputs_became_alike_later(tmp_path, collapsed, found):
    made = Made(tmp_path / "run")
    random = np.random.default_rng(0)
    for step in range(300):
        classes = {"hits": 0.1, "chance": 0.1, "samples": 64.0, "labels": 10.0, "entropy": 2.3}
        facts = {f"check/loss/CrossEntropyLoss/{name}": value for name, value in classes.items()}
        spread = 0.5 if step < collapsed else 1e-6
        for name, value in own_facts(spread, 1.0, prediction_max=1.0).items():
            facts[name.replace("/Own/", "/CrossEntropyLoss/")] = value
        made.step(step, {"loss/CrossEntropyLoss": 2.3 + 0.02 * random.normal()} | facts)
    rules = {one.rule for one in made.check("constant_output", "unrelated_labels")[0]}
    assert rules == {"constant_output", "unrelated_labels"} if found else {"constant_output"}


def test_labels_that_are_all_zero_are_compared_without_an_error(tmp_path):
    made = Made(tmp_path / "run")
    for step in range(40):
        facts = {"target_min": 0.0, "target_max": 0.0, "prediction_max": 3.0}
        made.step(step, {f"check/loss/Own/{name}": value for name, value in facts.items()})
        if step % 10 == 9:
            facts["target_max"] = 1.0
            made.step(step, {f"check/loss/Own/{name}": value for name, value in facts.items()}, mode="eval")
    assert made.check("label_range")[0] == []
