"""A learning-rate schedule that stands still: never stepped, or at its end long before the training is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs
from tdbg_lab.rules.consequences import NOT_TOLD_APART
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.silent.loop import LoopRule, fact, noted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["FrozenSchedule"]

_RATES = r"^optimizer/lr/"


@rule("frozen_schedule", title="Scheduler never stepped")
@dataclass(frozen=True, kw_only=True)
class FrozenSchedule(LoopRule):
    """A scheduler was made for the optimizer, but ``scheduler.step()`` is never called: the rate is frozen.

    Schedulers may be stepped once an epoch, and where epochs end is not known for sure. So it is a warning
    after two evaluations, or at once where the rate stands at zero (a warm-up that never begins); else a
    notice after `patience` steps.

    A schedule that was stepped too often comes to its end long before the training does: a rate that was on,
    and then is zero step after step, while training goes on for nothing.
    """

    patience: int = 100
    """Optimizer steps after which it is worth a notice."""
    evaluations: int = 2
    """Evaluations after which an epoch must have ended."""
    crawl: float = 3e-5
    """Median update ratio ``|dw| / |w|`` below which one evaluation is enough: a warm-up that stands."""
    stuck: int = 5
    """Steps at a learning rate of zero."""
    ended: int = 10
    """Recorded rates of zero in a row after which a schedule has ended too early. Restarts pass by zero, and
    a schedule may be a few steps shorter than the training: a tenth of those before must be over, too."""
    nothing: float = 1e-6
    """Rate, as a share of the largest so far, up to which it is zero."""

    explains: ClassVar[tuple[str, ...]] = (*NOT_TOLD_APART, "unchanged_tensor", "weight_update_ratio")
    """Not labels that are unrelated: that rule waits by itself where there was no time to learn."""
    _ADVICE: ClassVar = (
        "Call scheduler.step() after optimizer.step(): each step or each epoch, as the schedule is meant.",
        "Check that the scheduler was made for the optimizer that steps.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "evaluations", "stuck", "ended", at_least=1)
        self.require("crawl", "nothing", at_least=0)

    def needs(self) -> Needs:
        """Facts about the loop, and learning rates."""
        return Needs(kinds=(Kind.CHECK, Kind.LOSS, Kind.OPTIMIZER))

    def not_applicable(self, run: RunView) -> str:
        """Without a scheduler, and without learning rates."""
        if run.tensors(Kind.OPTIMIZER, regex=_RATES):
            return ""
        if why := super().not_applicable(run):
            return why
        return "" if noted(run, "schedulers") else "No learning-rate scheduler was found so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Whether the scheduler was ever stepped, and whether it has come to its end."""
        rates = [run.scalars(key.name).values for key in run.tensors(Kind.OPTIMIZER, regex=_RATES)]
        # The steps of a scheduler that has a ``step`` of its own may not count, but they move the rate.
        moved = any(len(one) and np.ptp(one) > 0 for one in rates)
        if moved or fact(run, "scheduler_steps") > 0 or not noted(run, "schedulers"):
            return self._ended(step, run, rates)
        begun = int(run.scalars("check/schedulers").steps[0])
        steps = step - begun + 1
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

    def _ended(self, step: int, run: RunView, rates: list[NDArray[np.float64]]) -> Finding | None:
        """Rates that were on, and are all zero for long."""
        if not rates or not all(len(one) for one in rates):
            return None
        over = [_zeros_at_end(one, self.nothing) for one in rates]
        count, before = min(over), max(len(one) - end for one, end in zip(rates, over, strict=True))
        if count < self.ended or count < 0.1 * before or not before:
            return None
        steps = run.scalars(run.tensors(Kind.OPTIMIZER, regex=_RATES)[0].name).steps
        since = int(steps[-count])
        return self.finding(
            step,
            f"The learning rate is zero since step {since}: nothing was learnt in the "
            f"{step - since + 1} steps since then.",
            severity=Severity.WARNING,
            tensor="optimizer/lr/0",
            evidence={
                "steps_count": step - since + 1,
                "largest_rate": max(float(one.max()) for one in rates),
            },
            advice=(
                "Count the length of the schedule in what it is stepped with: steps, or epochs.",
                "End the training where the schedule ends, or restart it.",
            ),
            view=ViewRef("scalars", {"tensors": ["optimizer/lr/0"]}),
            step_first=since,
        )


def _zeros_at_end(rates: NDArray[np.float64], nothing: float) -> int:
    """How many of the last rates are zero; 0 where the rate was never on."""
    on = np.flatnonzero(rates > nothing * rates.max()) if rates.max() > 0 else np.zeros(0, np.int64)
    return len(rates) - 1 - int(on[-1]) if len(on) else 0


def _crawls(run: RunView, limit: float) -> bool:
    """Whether the weights hardly move, by the last update ratios."""
    keys = run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/update_ratio/.*weight$")
    ratios = [values[-1] for key in keys if len(values := run.scalars(key.name).values)]
    return bool(ratios) and float(np.median(ratios)) < limit
