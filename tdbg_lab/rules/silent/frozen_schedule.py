"""A learning-rate scheduler that is never stepped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact, noted

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["FrozenSchedule"]


@rule("frozen_schedule", title="Scheduler never stepped")
@dataclass(frozen=True, kw_only=True)
class FrozenSchedule(LoopRule):
    """A scheduler was made for the optimizer, but ``scheduler.step()`` is never called: the rate is frozen.

    Schedulers may be stepped once an epoch, and where epochs end is not known for sure. So it is a warning
    after two evaluations, or at once where the rate stands at zero (a warm-up that never begins); else a
    notice after `patience` steps.
    """

    patience: int = 100
    """Optimizer steps after which it is worth a notice."""
    evaluations: int = 2
    """Evaluations after which an epoch must have ended."""
    crawl: float = 3e-5
    """Median update ratio ``|dw| / |w|`` below which one evaluation is enough: a warm-up that stands."""
    stuck: int = 5
    """Steps at a learning rate of zero."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_LEARNING, "unchanged_tensor", "weight_update_ratio")
    _ADVICE: ClassVar = (
        "Call scheduler.step() after optimizer.step(): each step or each epoch, as the schedule is meant.",
        "Check that the scheduler was made for the optimizer that steps.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "evaluations", "stuck", at_least=1)
        self.require("crawl", at_least=0)

    def not_applicable(self, run: RunView) -> str:
        """Without a scheduler."""
        if why := super().not_applicable(run):
            return why
        return "" if noted(run, "schedulers") else "No learning-rate scheduler was found so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Whether the scheduler was ever stepped."""
        if fact(run, "scheduler_steps") > 0:
            return None
        begun = int(run.scalars("check/schedulers").steps[0])
        steps = step - begun + 1
        rates = [run.scalars(key.name).values for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/")]
        zero = bool(rates) and all(len(one) and one[-1] == 0 for one in rates)
        evaluated = fact(run, "evaluations") >= (1 if _crawls(run, self.crawl) else self.evaluations)
        certain = (zero and steps >= self.stuck) or (evaluated and steps >= self.stuck)
        if not certain and steps < self.patience:
            return None
        rate = f"{rates[0][-1]:.3g}" if rates and len(rates[0]) else "what it was"
        return self.finding(
            step,
            f"A learning-rate scheduler was not stepped in {steps} steps: the rate stays at {rate}.",
            severity=Severity.WARNING if certain else Severity.NOTICE,
            tensor="optimizer/lr/0",
            evidence={
                "steps_count": steps,
                "evaluations_count": fact(run, "evaluations"),
                "scheduler_steps_count": 0,
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": ["optimizer/lr/0"]}),
        )


def _crawls(run: RunView, limit: float) -> bool:
    """Whether the weights hardly move, by the last update ratios."""
    keys = run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/update_ratio/.*weight$")
    ratios = [values[-1] for key in keys if len(values := run.scalars(key.name).values)]
    return bool(ratios) and float(np.median(ratios)) < limit
