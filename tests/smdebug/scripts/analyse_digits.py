"""Questions a notebook asks a trial, as the predecessor's documentation lists them."""

import json
import sys

import smdebug
from smdebug.analysis.utils import no_refresh, refresh
from smdebug.core.tensor import StepState
from smdebug.trials import create_trial

modes = smdebug.modes
trial = create_trial(sys.argv[1])
loss = trial.tensor("CrossEntropyLoss_output_0")
grad = trial.tensor("gradient/Net_fc.weight")
relu = trial.tensor("relu_output_0")


def ask(question):
    try:
        found = question()
    except Exception as error:
        return type(error).__name__
    if hasattr(found, "dtype"):
        return [round(float(one), 6) for one in found.ravel()[:6]] if found.ndim else round(float(found), 6)
    if isinstance(found, StepState):
        return found.name
    if isinstance(found, modes):
        return found.name
    return found if isinstance(found, (int, float, str, bool, list, type(None))) else sorted(map(str, found))


questions = {
    "tensor_names mode": lambda: trial.tensor_names(mode=modes.EVAL),
    "tensor_names step": lambda: trial.tensor_names(step=0),
    "tensor_names mode step": lambda: trial.tensor_names(step=4, mode=modes.TRAIN),
    "tensor_names unsaved": lambda: trial.tensor_names(step=1),
    "tensor_names regex": lambda: trial.tensor_names(regex="fc"),
    "tensor_names regexes": lambda: trial.tensor_names(regex=["conv.weight", "^relu"]),
    "tensor_names collection": lambda: trial.tensor_names(collection="gradients"),
    "tensor_names collection object": lambda: trial.tensor_names(collection=trial.collection("weights")),
    "tensor_names custom": lambda: trial.tensor_names(collection="relu_output"),
    "tensor_names nothing": lambda: trial.tensor_names(regex="nothing"),
    "has_tensor": lambda: trial.has_tensor("scalar/lr"),
    "has_tensor not": lambda: trial.has_tensor("nothing"),
    "steps train": lambda: trial.steps(mode=modes.TRAIN),
    "steps eval": lambda: trial.steps(modes.EVAL),
    "steps predict": lambda: trial.steps(mode=modes.PREDICT),
    "steps incomplete": lambda: trial.steps(show_incomplete_steps=True),
    "mode": lambda: trial.mode(0),
    "mode unsaved": lambda: trial.mode(1),
    "mode_step": lambda: trial.mode_step(trial.steps(mode=modes.GLOBAL)[-1]),
    "global_step": lambda: trial.global_step(modes.EVAL, 2),
    "global_step unsaved": lambda: trial.global_step(modes.EVAL, 1),
    "workers": trial.workers,
    "collections": lambda: sorted(trial.collections()),
    "collection regex": lambda: trial.collection("weights").include_regex,
    "collection names": lambda: trial.collection("losses").tensor_names,
    "passed": lambda: trial.has_passed_step(4),
    "passed unsaved": lambda: trial.has_passed_step(5),
    "passed eval": lambda: trial.has_passed_step(2, modes.EVAL),
    "passed behind": lambda: trial.has_passed_step(1000),
    "passed before": lambda: trial.has_passed_step(-1),
    "wait": lambda: trial.wait_for_steps([0, 4]),
    "wait unsaved": lambda: trial.wait_for_steps([0, 1]),
    "wait behind": lambda: trial.wait_for_steps([1000]),
    "wait mode": lambda: trial.wait_for_steps([2], mode=modes.EVAL),
    "loaded": lambda: trial.loaded_all_steps,
    "last complete": lambda: trial.last_complete_step,
    "loss steps": loss.steps,
    "loss eval steps": lambda: loss.steps(mode=modes.EVAL),
    "loss value": lambda: loss.value(0),
    "loss eval value": lambda: loss.value(2, mode=modes.EVAL),
    "loss unsaved": lambda: loss.value(1),
    "loss behind": lambda: loss.value(1000),
    "loss worker": lambda: loss.value(0, worker="worker_0"),
    "loss wrong worker": lambda: loss.value(0, worker="worker_7"),
    "loss values": lambda: list(loss.values(mode=modes.EVAL)),
    "loss reductions": lambda: loss.reduction_values(0),
    "loss prev": lambda: loss.prev_steps(9, 2),
    "loss prev all": lambda: loss.prev_steps(9),
    "loss prev mode": lambda: loss.prev_steps(6, 1, mode=modes.TRAIN),
    "loss workers": lambda: loss.workers(0),
    "loss workers unsaved": lambda: loss.workers(1),
    "loss shape": lambda: list(loss.shape(0)),
    "grad eval": lambda: grad.steps(mode=modes.EVAL),
    "grad value": lambda: grad.value(4),
    "grad at eval": lambda: grad.value(0, modes.EVAL),
    "grad mean": lambda: float(grad.reduction_value(4, "mean", abs=True)) > 0,
    "grad std": lambda: grad.reduction_value(4, "std"),
    "grad wrong": lambda: grad.reduction_value(4, "median"),
    "relu value": lambda: relu.value(0),
    "relu mean": lambda: relu.reduction_value(0, "mean", abs=True),
    "relu std": lambda: relu.reduction_value(0, "std"),
    "relu l2": lambda: relu.reduction_value(0, "l2"),
    "relu names": lambda: [str(one) for one in sorted(relu.reduction_values(0))],
    "relu shape": lambda: list(relu.shape(0)),
    "relu prod": lambda: relu.reduction_value(0, "prod"),
    "scalar": lambda: trial.tensor("scalar/lr").value(4),
    "both": lambda: trial.tensor_names(regex="a", collection="losses"),
    "ranged": lambda: create_trial(sys.argv[1], range_steps=(4, 12)).steps(),
    "ranged open": lambda: create_trial(sys.argv[1], range_steps=(12, None)).steps(),
}
answer = {name: ask(question) for name, question in questions.items()}
with no_refresh(trial):
    answer["no_refresh"] = trial.steps()
with refresh([trial]):
    answer["refresh"] = trial.steps()
print("ANSWER " + json.dumps(answer))
