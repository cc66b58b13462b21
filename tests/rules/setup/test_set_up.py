"""Each wrong set-up is found by its rule; the same training without it has no alarm."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import tdbg_lab as tdbg
from tdbg_lab.errors import ConfigError
from tdbg_lab.records import Severity
from tdbg_lab.rules import list_rules, run_rules
from tdbg_lab.rules.registry import find_rule
from tdbg_lab.views import list_views
from tests.rules.healthy_loops import digits, mlp
from tests.rules.made import Made
from tests.rules.silent.loops import Loop

from .faulty_set_ups import FAULTY, Shuffled
from .healthy_set_ups import HEALTHY, Numbers

OURS = [one.name for one in list_rules() if one.group == "setup"]


@pytest.mark.parametrize("loop", HEALTHY, ids=lambda one: one.__name__)
def test_healthy_set_up_has_no_alarm(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    assert [one for one in found if one.severity is not Severity.NOTICE] == []


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loop", FAULTY, ids=lambda one: one.__name__)
def test_wrong_set_up_is_found_by_its_rule(tmp_path, loop):
    found = run_rules(loop().run(tmp_path / "run"), OURS)
    rules = [one.rule for one in found if one.severity is not Severity.NOTICE]
    assert loop.rule in rules
    assert set(rules) <= {loop.rule, "learning_rate"}, [one.message for one in found]
    assert rules.count(loop.rule) == 1
    finding = next(one for one in found if one.rule == loop.rule)
    assert finding.advice
    assert finding.view is not None
    assert finding.view.name in {one.name for one in list_views()}


@pytest.mark.parametrize(("ends", "cause"), [(180, "unrelated_labels"), (40, "frozen_schedule")])
def test_shuffled_labels_are_told_beside_a_schedule_that_ended_after_time_to_learn(tmp_path, ends, cause):
    class Ending(Shuffled):
        def before(self, step):
            self.optimizer.param_groups[0]["lr"] = 0.1 * max(0.0, 1 - step / ends)

    found = run_rules(Ending().run(tmp_path / "run"), ["frozen_schedule", "unrelated_labels"])
    alarms = {one.rule for one in found if one.severity is not Severity.NOTICE}
    assert cause in alarms
    assert alarms <= {cause, "frozen_schedule"}


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
        given = _given(0.5 if step < 6 else spread, 1.0)
        loss = {"loss/MSELoss": 1.0 if step < 6 else 0.9}
        made.step(step, given | loss | {"optimizer/update_ratio/a.weight": ratio if step == 4 else 1e-3})
    made.end()
    findings, _ = made.check("constant_output", "learning_rate")
    assert [one.rule for one in findings].count("learning_rate") == found


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("wrong_output", {"patience": 0}, "at least 1"),
        ("learning_rate", {"high": -1.0}, "above 0"),
        ("unscaled_inputs", {"largest": "much"}, "expected"),
    ],
)
def test_wrong_threshold_is_told(name, wrong, sentence):
    with pytest.raises(ConfigError, match=sentence):
        find_rule(name)(**wrong)


def _of(loss: str, **facts: float) -> dict[str, float]:
    """Facts about what a loss was given at a step."""
    return {f"check/loss/{loss}/{name}": value for name, value in facts.items()}


def _given(spread: float, size: float, **facts: float) -> dict[str, float]:
    """The same of a loss of the program's own."""
    told = {"spread": spread, "prediction_size": size, "prediction_max": size, "samples": 64, **facts}
    return _of("Own", **told)


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
        made.step(step, {"loss/Own": spread} | _given(spread, max(size, spread), **more))
    assert len(made.check("constant_output")[0]) == found


@pytest.mark.parametrize(
    ("spread", "low", "growing", "found"),
    [(0.005, -1.0, 0.0, 1), (0.2, -1.0, 0.0, 0), (0.005, 0.9, 0.0, 0), (0.005, -1.0, 0.5, 0)],
    ids=["collapsed", "tells samples apart", "targets are as near", "learns the mean"],
)
def test_outputs_that_are_alike_in_evaluation_are_found(tmp_path, spread, low, growing, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        made.step(step, {"loss/Own": 1.0} | _given(0.3, 1.0, target_min=low, target_max=1.0))
        if step % 10 == 9:
            size = 1.0 + growing * step
            made.step(step, _given(spread * size, size, target_min=low, target_max=1.0), mode="eval")
    assert len(made.check("constant_output")[0]) == found


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
        made.step(step, loss | _of("MSELoss", correlation=trained, **facts))
        if step % 50 == 49:
            loss = {"loss/MSELoss": 1.05 - falls * step / 300}
            made.step(step, loss | _of("MSELoss", correlation=held, **facts), mode="eval")
    findings = made.check("unrelated_labels")[0]
    assert ["not with those of 150 rows" in one.message for one in findings] == [True] * found


@pytest.mark.parametrize("gathers", [False, True])
def test_numbers_that_a_program_expects_itself_are_no_labels(tmp_path, gathers):
    """One that learns by acting predicts what it expects itself, and loses more as it earns more."""
    made = Made(tmp_path / "run")
    facts = {"kind": 7.0, "samples": 32.0, "target_min": -2.0, "target_max": 2.0, "correlation": 0.0}
    for step in range(300):
        loss = {"loss/objective": 1.0 + step / 300, "optimizer/update_ratio/a.weight": 1e-3}
        made.step(step, loss | _of("objective", **facts) | ({"check/gathers": 3.0} if gathers else {}))
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
        made.step(step, loss | _of("BCEWithLogitsLoss", hits=0.6, **facts))
        if step % 60 == 59:
            loss = {"loss/BCEWithLogitsLoss": held_loss}
            made.step(step, loss | _of("BCEWithLogitsLoss", hits=right, **facts), mode="eval")
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
        return {"loss/MSELoss": 1.0} | _of("MSELoss", kind=7.0, samples=64.0, **ends, **sizes)

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
        made.step(step, _of("MSELoss", kind=7.0, **ends))
    assert len(made.check("label_range")[0]) == found


@pytest.mark.parametrize(("most", "held", "found"), [(9.0, 3.7, 1), (4.0, 3.7, 0), (None, 3.7, 0)])
def test_a_number_that_only_training_has_in_every_batch_is_found(tmp_path, most, held, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        ends = {"target_min": -2 - step % 7 / 7, "target_max": 9 + step % 5 / 9 if most is None else most}
        known = {"prediction_max": 1.0, "correlation": 0.3, "target_broken": 0.0}
        made.step(step, _of("MSELoss", kind=7.0, **ends, **known))
        if step % 15 == 14:
            ends = {"target_min": -3.5, "target_max": held}
            made.step(step, _of("MSELoss", kind=7.0, **ends, **known), mode="eval")
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


@pytest.mark.parametrize(("left", "found"), [(0.0016, 1), (0.3, 0)])
def test_representations_that_only_shrank_are_found(tmp_path, left, found):
    made = Made(tmp_path / "run")
    for step in range(60):
        kept = 0.04 ** (step / 59)
        facts = _given(0.5 * kept, 2.4 * kept if step < 40 else 0.1, classes=48.0)
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


def test_rate_that_left_a_constant_output_is_named(tmp_path):
    for ratio, found in ((2.0, 1), (0.05, 0)):
        made = Made(tmp_path / str(ratio))
        for step in range(60):
            facts = _given(0.5 if step < 4 else 1e-6, 1.0, target_min=-1.0, target_max=1.0)
            facts |= {"optimizer/update_ratio/a.weight": ratio if step == 0 else 0.01}
            made.step(step, {"loss/Own": 2.7 if step == 0 else 2.4} | facts)
        findings = made.check("constant_output", "learning_rate")[0]
        assert len([one for one in findings if one.rule == "learning_rate"]) == found


@pytest.mark.parametrize(("spread", "found"), [(0.1, 1), (1e-5, 0)])
def test_constants_between_0_and_1_say_nothing_of_a_sigmoid(tmp_path, spread, found):
    made = Made(tmp_path / "run")
    ends = {"prediction_min": 0.1, "prediction_max": 0.5, "row_sum_min": 1.2, "row_sum_max": 1.3}
    facts = {"prediction_zeros": 0.0, "prediction_broken": 0.0, "prediction_size": 0.3, "spread": spread}
    facts |= {"kind": 1.0, "classes": 6.0, "samples": 64.0} | ends
    for step in range(40):
        made.step(step, {"loss/CrossEntropyLoss": 1.8} | _of("CrossEntropyLoss", **facts))
    assert len(made.check("wrong_output")[0]) == found


@pytest.mark.parametrize(("collapsed", "found"), [(60, True), (4, False)])
def test_labels_are_suspected_though_outputs_became_alike_later(tmp_path, collapsed, found):
    made = Made(tmp_path / "run")
    random = np.random.default_rng(0)
    for step in range(300):
        classes = {"hits": 0.1, "chance": 0.1, "samples": 64.0, "labels": 10.0, "entropy": 2.3}
        facts = {f"check/loss/CrossEntropyLoss/{name}": value for name, value in classes.items()}
        spread = 0.5 if step < collapsed else 1e-6
        for name, value in _given(spread, 1.0, prediction_max=1.0).items():
            facts[name.replace("/Own/", "/CrossEntropyLoss/")] = value
        made.step(step, {"loss/CrossEntropyLoss": 2.3 + 0.02 * random.normal()} | facts)
    rules = {one.rule for one in made.check("constant_output", "unrelated_labels")[0]}
    assert rules == {"constant_output", "unrelated_labels"} if found else {"constant_output"}


def test_what_only_noise_varies_is_alike_in_evaluation(tmp_path):
    for in_training, found in ((1.0, 1), (0.06, 0)):
        made = Made(tmp_path / str(in_training))
        for step in range(40):
            made.step(step, _given(in_training, 1.0, target_min=-3.0, target_max=3.0))
            if step % 10 == 9:
                made.step(step, _given(0.05, 1.0, target_min=-3.0, target_max=3.0), mode="eval")
        assert len(made.check("constant_output")[0]) == found


def test_labels_that_are_all_zero_are_compared_without_an_error(tmp_path):
    made = Made(tmp_path / "run")
    for step in range(40):
        facts = {"target_min": 0.0, "target_max": 0.0, "prediction_max": 3.0}
        made.step(step, {f"check/loss/Own/{name}": value for name, value in facts.items()})
        if step % 10 == 9:
            facts["target_max"] = 1.0
            made.step(step, {f"check/loss/Own/{name}": value for name, value in facts.items()}, mode="eval")
    assert made.check("label_range")[0] == []


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
