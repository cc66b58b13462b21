"""Trials and rules over stores that the predecessor wrote, finished and growing."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tdbg_lab.smdebug import modes
from tdbg_lab.smdebug.core.tensor import StepState
from tdbg_lab.smdebug.exceptions import NoMoreData, ShapeUnavailableForStep, TensorUnavailableForStep
from tdbg_lab.smdebug.rules import Rule, invoke_rule
from tdbg_lab.smdebug.trials import create_trial
from tests.store.smdebug.writing import StoreWriter

GRADIENT = np.array([[-1.0, 2.0], [3.0, -4.0]], np.float32)


@pytest.fixture
def writer(tmp_path):
    made = StoreWriter(
        tmp_path / "store",
        {"gradients": {"include_regex": ["^gradient"]}, "losses": {"tensor_names": ["loss_output_0"]}},
    )
    for step, (mode, mode_step) in enumerate([("TRAIN", 0), ("EVAL", 0), ("TRAIN", 2)]):
        tensors = {"loss_output_0": np.float32(step)}
        if mode == "TRAIN":
            tensors["gradient/w"] = GRADIENT * (step + 1)
            tensors["smdebug/reductions/abs_mean/act"] = np.float32(0.5)
        made.write(step * 2, tensors, mode=mode, mode_step=mode_step)
    return made


def test_finished_store_answers_as_a_run_does(writer):
    writer.end()
    trial = create_trial(writer.path)
    assert trial.steps() == [0, 2, 4]
    assert trial.steps(modes.TRAIN) == [0, 2]
    assert trial.global_step(modes.TRAIN, 2) == 4
    assert trial.modes() == [modes.TRAIN, modes.EVAL]
    assert trial.tensor_names() == ["act", "gradient/w", "loss_output_0"]
    assert trial.tensor_names(collection="gradients") == ["gradient/w"]
    assert trial.tensor_names(step=2) == ["loss_output_0"]
    assert trial.collection("losses").tensor_names == {"loss_output_0"}
    gradient = trial.tensor("gradient/w")
    np.testing.assert_array_equal(gradient.value(2, modes.TRAIN), GRADIENT * 3)
    assert sorted(gradient.values()) == [0, 4]
    assert gradient.shape(0) == (2, 2)
    assert gradient.reduction_value(0, "l2") == pytest.approx(np.sqrt(30))
    assert trial.loaded_all_steps
    activation = trial.tensor("act")
    assert activation.reduction_values(0) == {("mean", True): np.float32(0.5)}
    assert activation.reduction_value(0, "mean", abs=True) == np.float32(0.5)
    with pytest.raises(TensorUnavailableForStep, match="ask for reduction_value"):
        activation.value(0)
    with pytest.raises(TensorUnavailableForStep):
        activation.reduction_value(0, "mean")
    with pytest.raises(ShapeUnavailableForStep):
        activation.shape(0)


def test_growing_store_is_waited_for(writer):
    trial = create_trial(writer.path)
    assert trial.has_passed_step(6) is StepState.NOT_YET_AVAILABLE
    done = threading.Event()
    waiting = threading.Thread(target=lambda: (trial.wait_for_steps([6]), done.set()), daemon=True)
    waiting.start()
    writer.write(6, {"loss_output_0": np.float32(3)}, mode_step=3)
    assert done.wait(60)
    writer.end()
    assert trial.has_passed_step(8) is StepState.UNAVAILABLE


def test_rule_runs_over_a_store(writer):
    writer.end()

    class Loud(Rule):
        seen = ()

        def invoke_at_step(self, step):
            for name in self.base_trial.tensor_names(collection="gradients", step=step):
                mean = self.base_trial.tensor(name).reduction_value(step, "mean", abs=True)
                self.seen = (*self.seen, (step, float(mean)))
            return False

    rule = Loud(create_trial(writer.path))
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.seen == ((0, 2.5), (4, 7.5))


def test_all_workers_must_have_written_a_step(writer):
    writer.num_workers = 2
    writer.describe("worker_0")  # written anew: it says how many there are
    writer.write(0, {"loss_output_0": np.float32(7)}, worker="worker_1")
    trial = create_trial(writer.path)
    assert trial.steps() == [0]
    assert trial.steps(show_incomplete_steps=True) == [0, 2, 4]
    assert trial.tensor("loss_output_0").value(0, worker="worker_1") == 7
    writer.end()
    assert trial.steps() == [0, 2, 4]
