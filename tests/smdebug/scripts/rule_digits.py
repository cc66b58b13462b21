"""A rule of the user's own, invoked over a finished trial, as the predecessor's documentation shows it."""

import json
import sys

from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, StepUnavailable, TensorUnavailable
from smdebug.rules import Rule, invoke_rule
from smdebug.trials import create_trial

trial = create_trial(path=sys.argv[1], name="digits")
answer = {"seen": []}


class VanishingGradientRule(Rule):
    def __init__(self, base_trial, threshold="0.0000001"):
        super().__init__(base_trial, "", other_trials=None)
        self.threshold = float(threshold)

    def set_required_tensors(self, step):
        for name in self.base_trial.tensor_names(collection="gradients"):
            self.req_tensors.add(name=name, steps=[step])

    def invoke_at_step(self, step):
        for tensor in self.req_tensors.get():
            mean = tensor.reduction_value(step, "mean", abs=True)
            answer["seen"].append([step, tensor.name, round(float(mean), 6)])
            if mean < self.threshold:
                return True
        return False


def outcome(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return "done"


answer["quiet"] = outcome(invoke_rule, VanishingGradientRule(trial), start_step=0, end_step=None)
answer["range"] = outcome(invoke_rule, VanishingGradientRule(trial), start_step=4, end_step=9)
met = VanishingGradientRule(trial, threshold="100")
answer["met"] = outcome(invoke_rule, met, raise_eval_cond=True)
answer["logged"] = outcome(invoke_rule, VanishingGradientRule(trial, threshold="100"), end_step=5)
answer["unsaved"] = outcome(met.invoke, 1)
answer["classes"] = [one.__name__ for one in (NoMoreData, RuleEvaluationConditionMet, StepUnavailable)]
answer["missing"] = outcome(trial.tensor, "nothing")
answer["is"] = TensorUnavailable.__name__
print("ANSWER " + json.dumps(answer))
