"""A rule: something to be looked for at each step of a trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tdbg_lab.smdebug.analysis.utils import no_refresh
from tdbg_lab.smdebug.core.logger import get_logger
from tdbg_lab.smdebug.exceptions import RuleEvaluationConditionMet, SMDebugTypeError
from tdbg_lab.smdebug.rules.action.action import Actions
from tdbg_lab.smdebug.rules.req_tensors import RequiredTensors
from tdbg_lab.smdebug.trials.profiler_trial import ProfilerTrial
from tdbg_lab.smdebug.trials.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Rule"]


class Rule(ABC):
    """Base of rules; a subclass says what it looks for in `invoke_at_step`.

    ::

        class SmallGradient(Rule):
            def __init__(self, base_trial, threshold=1e-7):
                super().__init__(base_trial)
                self.threshold = float(threshold)

            def invoke_at_step(self, step):
                for name in self.base_trial.tensor_names(collection="gradients", step=step):
                    tensor = self.base_trial.tensor(name)
                    if tensor.reduction_value(step, "mean", abs=True) < self.threshold:
                        return True
                return False

    Parameters
    ----------
    base_trial
        What is looked at. A rule on a `ProfilerTrial` says what it does in `invoke`.
    action_str
        What to do when it is found, as JSON: ``{"name": "stoptraining"}``,
        ``{"name": "email", "endpoint": "mailto://..."}``, or a list of such.
    other_trials
        What it is compared with.

    Raises
    ------
    SMDebugTypeError
        If `base_trial` is none.
    SMDebugValueError
        If an action is not known.
    """

    def __init__(
        self,
        base_trial: Trial | ProfilerTrial,
        action_str: str = "",
        other_trials: Sequence[Trial] | None = None,
    ) -> None:
        if not isinstance(base_trial, (Trial, ProfilerTrial)):
            raise SMDebugTypeError(f"base_trial is {base_trial!r:.80}; expected what create_trial gives.")
        trial: Any = base_trial  # a rule knows of which kind its trial is
        self.base_trial = trial
        self.other_trials = list(other_trials or ())
        self.trials = [trial, *self.other_trials]
        self.rule_name = type(self).__name__
        self.req_tensors = RequiredTensors(trial, self.other_trials)
        self.actions = Actions(action_str, rule_name=self.rule_name, run_path=base_trial.path)
        self.logger = get_logger()
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 - many rules need to say nothing
        """Say what is needed at a step, with ``self.req_tensors.add``; by default nothing."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Whether what the rule looks for is there at a global step."""

    def invoke(self, step: int) -> None:
        """Check one step; waits until it is there.

        Raises
        ------
        RuleEvaluationConditionMet
            If the rule has found something; its actions have been done.
        StepUnavailable, NoMoreData
            If the step never comes.
        SMDebugTypeError
            If the trial is one of profiler data, which has no steps.
        """
        if isinstance(self.base_trial, ProfilerTrial):
            raise SMDebugTypeError(
                f"Rule {self.rule_name} looks at profiler data, which has no steps to wait for; "
                "it must have an invoke(step) of its own."
            )
        self.base_trial.wait_for_steps([step])
        with no_refresh(self.trials):
            self.req_tensors.clear()
            self.set_required_tensors(step)
            self.req_tensors.fetch()
            found = self.invoke_at_step(step)
        if found:
            self.actions.invoke(f"Rule {self.rule_name} met its condition at step {step}.", step=step)
            raise RuleEvaluationConditionMet(self.rule_name, step)
