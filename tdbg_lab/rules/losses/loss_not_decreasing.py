"""A loss that has not fallen, or rises, or is worse than that of knowing nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.evidence import (
    has_no_floor,
    keeps_labels,
    learnt_labels,
    sees_labels,
    targets_explain,
)
from tdbg_lab.rules.losses.state import is_game, is_policy, knows
from tdbg_lab.rules.losses.worse import worse_than_nothing
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.schedule import has_ended, warming_up
from tdbg_lab.rules.setup.rounds import is_last_round, weighs_classes
from tdbg_lab.rules.trend import noise_of, trend_of

if TYPE_CHECKING:
    from tdbg_lab.records import Finding
    from tdbg_lab.rules.series import Scalars
    from tdbg_lab.rules.trend import Trend
    from tdbg_lab.rules.view import RunView

__all__ = ["LossNotDecreasing"]

_DOWN_Z = 3.0
"""Standard errors of a fall that is no noise."""
_FROM_ZERO = re.compile(
    r"(?i)(^|[^a-z0-9])(multi_|binary_|m)?(logloss|rmse|rmsle|mae|l1|l2|mphe|huber|gamma-deviance)$"
)
"""Boosting losses whose least value is zero, whatever the labels are."""
_ENDS = 0.7
"""Share of a limit below which what was above it ends."""
_FIRST = 5
"""Losses of the untrained model, nearly: the rate is least when it begins to warm up."""


@rule("loss_not_decreasing", title="Loss not decreasing")
@dataclass(frozen=True, kw_only=True)
class LossNotDecreasing(Rule):
    """A training loss that is still where it began, or that went up and stayed up.

    Noise is measured from point to point, so that a noisy loss that falls slowly is told from one
    that does not fall. A loss that fell and then stays is a converged one and healthy, and so is one
    of a model that was good when it began: below half of the entropy of the labels. Nor is one stuck whose
    predictions have come to go with the labels better than by chance: labels that are mostly noise leave a
    loss where it is. Where labels are not seen, a small fall that is no chance makes it a notice. A loss
    around zero, as that of a policy, has nowhere to fall to; nor need one of a program that gathers its own
    data, as long as labels are not seen. One that rises is left alone while it comes
    down again (harder data, a restart), or its targets have grown as much (a value function's returns).

    Boosted trees whose classes weigh by their number are grown for that, and not for the loss that is shown.

    The rule waits while the learning rate is warming up, and says nothing about runs with several losses
    (GANs) unless `tensor` names one. While another rule has an open finding, a loss that does not fall is its
    consequence and is not reported again (unless actions are attached to this rule).

    *Stuck*: less than `min_drop` percent below its start after `patience` steps, by a standard error, and no
    fall of `min_z` standard errors within the last two thirds of what was recorded.
    Of boosting whose rounds are over: less than `min_drop_boosted` percent since the first of them.
    *Rising*: above its best by more than `max_rise` percent of all it had fallen, beyond the noise, at
    every one of the last `patience_rise` recorded points, of at least three times as many.
    *Worse than nothing*: however far it fell, after `patience_ended` steps predictions are worse than those
    of a model that knows the labels and not the inputs, by more than `worse` times.

    With `classic`, the condition of SageMaker Debugger to the letter: every `num_steps` steps the loss
    is compared with the newest one saved at least `num_steps` before; it fires when it fell by
    less than `diff_percent` (AWS developer guide, LossNotDecreasing).
    """

    tensor: str | None = None
    """Name of the loss; None for the only one there is."""
    regex: str | None = None
    """Classic: names of the losses to look at; None for all."""
    patience: int = 150
    """Steps, warm-up not counted, before a loss is judged to be stuck."""
    patience_ended: int = 100
    """The same where the learning rate has come down to a tenth: little is to come."""
    min_points: int = 20
    """Recorded losses that are needed, whatever the steps between them."""
    min_drop: float = 5.0
    """Fall since the start, percent of the start, that counts as learning."""
    min_z: float = 2.0
    """A fall of this many standard errors counts as learning, too."""
    min_drop_boosted: float = 1.0
    """Boosting: fall in all rounds that are planned, percent, that counts as learning; of losses that can
    come to zero."""
    little_z: float = 4.0
    """A smaller fall than `min_drop`, of this many standard errors and of `little_drop`, is a notice."""
    little_drop: float = 1.0
    """Percent of the start."""
    max_rise: float = 30.0
    """Rise above the best, percent of the whole fall before it; restarts of a cyclic rate rise less."""
    patience_rise: int = 20
    """Recorded points in a row that must be above."""
    worse: float = 2.0
    """Cross-entropy over the entropy of the labels, or size of predictions over that of numbers with which
    they hardly go, at the last `patience_worse` saved steps. Losses that are sums, or weigh classes, do not
    count. In healthy trainings of numbers that predictions hardly went with, these were smaller than them."""
    patience_worse: int = 10
    """Saved steps in a row at which predictions are worse than none."""
    classic: bool = False
    num_steps: int = 10
    """Classic: steps between two checks, and between the losses compared."""
    diff_percent: float = 0.1
    """Classic: least fall, percent of the earlier loss."""
    increase_threshold_percent: float = 5.0
    """Classic: a rise above this, percent of the earlier loss, fires whatever `diff_percent` is (how the two
    go together is not documented)."""

    _STUCK: ClassVar = (
        "Check that the optimizer holds the model's parameters and that it steps after backward().",
        "Try a learning rate ten times larger, then ten times smaller.",
        "Overfit a single batch first: if that fails, the model, the loss or the labels are wrong.",
        "Look at the gradients layer by layer: dead units or vanishing gradients keep a loss where it is.",
    )
    _RISING: ClassVar = (
        "Lower the learning rate or add a warm-up.",
        "Clip the gradients (torch.nn.utils.clip_grad_norm_).",
        "Go back to the checkpoint before the rise.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("patience", "patience_ended", "min_points", "patience_rise", "num_steps", at_least=1)
        self.require("patience_worse", "worse", at_least=1)
        self.require(
            "min_drop", "min_drop_boosted", "min_z", "max_rise", "increase_threshold_percent", at_least=0
        )
        self.require("little_z", "little_drop", at_least=0)
        self.require("diff_percent", at_least=0, below=100)

    def needs(self) -> Needs:
        """A loss, of a module or logged."""
        return Needs(kinds=(Kind.LOSS, Kind.SCALAR, Kind.CUSTOM))

    def not_applicable(self, run: RunView) -> str:
        """No loss, or several."""
        if self.tensor is not None:
            known = len(run.scalars(self.tensor).steps) > 0
            return "" if known else f"No loss {self.tensor!r} was recorded so far."
        losses = run.losses()
        if not losses:
            return "No training loss was recorded so far: give attach() the loss module or log 'loss'."
        if not self.classic and is_game(run):
            return (
                "Several models are trained: in a game no loss need fall. Name one that should (tensor=...)."
            )
        if not self.classic and is_policy(run):
            return (
                "The program gathers its own data, as one that learns by acting: its loss need not fall. "
                "Name one that should (tensor=...)."
            )
        if len(losses) > 1 and not self.classic:
            names = ", ".join(losses[:5])
            return f"There are {len(losses)} losses ({names}): name the one that should fall (tensor=...)."
        return ""

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look at the loss up to this step: at every hundredth part of its points, once there are many."""
        if self._is_consequence(run) or (weighs_classes(run) and not self.classic):
            return None
        for name in self._names(run):
            loss = run.scalars(name)
            if len(loss.steps) and loss.steps[-1] == step:
                if not self.classic and len(loss.steps) % max(1, len(loss.steps) // 100):
                    return run.active
                found = self._check_classic(name, loss) if self.classic else self._check(name, loss, run)
                if found is not None:
                    return found
        return None

    def _names(self, run: RunView) -> list[str]:
        if self.tensor is not None:
            return [self.tensor]
        return [name for name in run.losses() if self.regex is None or re.search(self.regex, name)]

    def _is_consequence(self, run: RunView) -> bool:
        """Another rule has found why the loss does not fall: that is the finding."""
        others = any(one.rule != self.name and one.severity is not Severity.NOTICE for one in run.open)
        return others and run.active is None and not self.actions and not self.classic

    def _check(self, name: str, loss: Scalars, run: RunView) -> Finding | None:
        if len(loss.steps) < self.min_points or not np.isfinite(loss.values[-1]):
            return None
        warm = warming_up(run)
        if warm.now or has_no_floor(loss.values):
            return None
        if is_last_round(run, int(loss.steps[-1])) and _FROM_ZERO.search(name):
            return self._of_rounds(name, loss)
        after = loss.steps >= warm.until_step
        stuck = (
            None
            if self._fell_before(loss, after) or knows(run, name)
            else self._stuck(name, loss.steps[after], loss.values[after], run)
        )
        return stuck or self._rising(name, loss, run) or self._worse(name, loss.steps[after], run)

    def _fell_before(self, loss: Scalars, after: np.ndarray) -> bool:
        """Whether something was learnt while the rate warmed up: the loss began higher and is lower still."""
        first = loss.values[~after][:_FIRST]
        first = first[np.isfinite(first)]
        trend = trend_of(loss.values[after])
        if not len(first) or trend is None:
            return False
        start = float(median(first))
        return start - trend.now > max(self.min_drop / 100.0 * abs(start), self.min_z * trend.noise)

    def _stuck(self, name: str, steps: np.ndarray, values: np.ndarray, run: RunView) -> Finding | None:
        if len(steps) < self.min_points:
            return None
        passed = steps[-1] - steps[0]
        if passed < self.patience and (passed < self.patience_ended or not has_ended(run)):
            return None
        trend = trend_of(values)
        if trend is None or 100.0 * trend.drop_frac >= self.min_drop or trend.fall_z >= self.min_z:
            return None
        if run.active is None and 100.0 * (trend.drop_frac + trend.drop_error_frac) >= self.min_drop:
            return None  # it may well have fallen: noise hides it
        if 100.0 * (trend.start - trend.best) >= self.min_drop * abs(trend.start) + 300.0 * trend.noise:
            return None  # it had learned something: rising or converged, not stuck
        if learnt_labels(run, name):
            return None  # of labels that are mostly noise, a loss tells little
        little = not sees_labels(run, name) and self._falls_a_little(values, trend)
        return self.finding(
            int(steps[-1]),
            f"{name} is {trend.now:.4g} after {steps[-1] - steps[0]} steps and began at {trend.start:.4g}: "
            + (
                f"it has decreased by {100.0 * trend.drop_frac:.2g} % only."
                if little
                else f"it has not decreased beyond its noise of {trend.noise:.2g}."
            ),
            severity=Severity.NOTICE if little else Severity.WARNING,
            tensor=name,
            evidence={
                "loss_start": trend.start,
                "loss_now": trend.now,
                "loss_noise": trend.noise,
                "fall_percent": round(100.0 * trend.drop_frac, 3),
                "fall_standard_errors": round(trend.fall_z, 3) if np.isfinite(trend.fall_z) else 0.0,
                "points_count": trend.points,
            },
            advice=self._STUCK,
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _of_rounds(self, name: str, loss: Scalars) -> Finding | None:
        """Boosting that is at its end: training rows alone let any trees fall by more."""
        start, now = float(loss.values[0]), float(loss.values[-1])
        fall = 100.0 * (start - now) / max(abs(start), 1e-12)
        if fall >= self.min_drop_boosted:
            return None
        return self.finding(
            int(loss.steps[-1]),
            f"{name} is {now:.4g} after all {len(loss.steps)} rounds and was {start:.4g} after the first: it "
            f"has fallen by {fall:.2g} %, though trees can learn that much by heart.",
            tensor=name,
            evidence={"loss_start": start, "loss_now": now, "fall_percent": round(fall, 3)},
            advice=(
                "Look at what holds leaves down: learning rate, max_delta_step, lambda, alpha, gamma.",
                "Look at what keeps trees from splitting: min_child_weight, min_data_in_leaf, max_depth.",
            ),
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _falls_a_little(self, values: np.ndarray, trend: Trend) -> bool:
        """Whether a fall too small to be learning for certain is too large for chance: targets may be noise.

        Where predictions and labels are seen, they say it: a fall may be all that labels' frequencies tell.
        """
        known = values[np.isfinite(values)]
        first, rest = np.split(known, [max(3, len(known) // 10)])
        fall = float(first.mean() - rest.mean())
        error = trend.noise * np.sqrt(1.0 / len(first) + 1.0 / len(rest))
        least = max(self.little_z * float(error), self.little_drop / 100.0 * abs(trend.start))
        return fall > least

    def _rising(self, name: str, loss: Scalars, run: RunView) -> Finding | None:
        values = loss.values[np.isfinite(loss.values)]
        # early losses come and go: a codebook or a penalty begins to count once there is something to it
        if len(values) < max(self.min_points, 2 * self.patience_rise) + self.patience_rise:
            return None
        trend = trend_of(values)
        if trend is None:
            return None
        fall = max(trend.start - trend.best, 0.05 * abs(trend.start), 3.0 * trend.noise)
        last = values[-self.patience_rise :]
        limit = trend.best + (0.5 if run.active else 1.0) * self.max_rise / 100.0 * fall
        error = noise_of(values) / np.sqrt(len(last))
        if last.min() <= limit or last.mean() - limit <= 3.0 * error:
            return None
        rise = float(last.mean()) / trend.start if trend.start > 0 else 1.0
        since = values[int(np.flatnonzero(values <= limit)[-1]) + 1 :]
        if (
            _comes_down(since[-max(len(last), 3 * len(since) // 4) :])
            or targets_explain(run, name, rise)
            or keeps_labels(run, name)
        ):
            return None
        above = last.mean() > trend.start + max(0.5 * abs(trend.start), 3.0 * trend.noise)
        if not above and trend.best < 0 <= trend.start + trend.noise:
            return None  # what a policy is rewarded for goes up and down by nature
        unknown = last.mean() < 0 and not sees_labels(run, name)  # it may be a policy's: one cannot tell
        return self.finding(
            int(loss.steps[-1]),
            f"{name} has risen to {last.mean():.4g} from its best of {trend.best:.4g} and stays there"
            f"{', above where it began' if above else ''}.",
            severity=(Severity.NOTICE if unknown else Severity.CRITICAL if above else Severity.WARNING),
            tensor=name,
            evidence={
                "loss_start": trend.start,
                "loss_best": trend.best,
                "loss_now": float(last.mean()),
                "loss_noise": trend.noise,
                "rise_percent_of_fall": round(100.0 * float(last.mean() - trend.best) / fall, 2),
                "points_above_count": len(last),
            },
            advice=self._RISING,
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _worse(self, name: str, steps: np.ndarray, run: RunView) -> Finding | None:
        if not len(steps) or steps[-1] - steps[0] < self.patience_ended:
            return None
        times = (1.0 if run.active is None else _ENDS) * self.worse
        found = worse_than_nothing(run, name, self.patience_worse, times)
        if found is None:
            return None
        return self.finding(
            int(steps[-1]),
            f"After {steps[-1] - steps[0]} steps {name} {found.sentence}.",
            tensor=name,
            evidence=found.evidence,
            advice=self._STUCK[1:],
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _check_classic(self, name: str, loss: Scalars) -> Finding | None:
        pair = self._classic_pair(loss.steps)
        if pair is None:
            return None
        before, now = float(loss.values[pair]), float(loss.values[-1])
        fall_percent = 100.0 * (before - now) / abs(before) if before else 0.0
        fell = fall_percent > 0 if self.diff_percent == 0 else fall_percent >= self.diff_percent
        if fell and -fall_percent <= self.increase_threshold_percent:
            return None
        return self.finding(
            int(loss.steps[-1]),
            f"{name} is {now:.4g}; it was {before:.4g} at step {loss.steps[pair]} and should have fallen by "
            f"{self.diff_percent} %.",
            tensor=name,
            evidence={"loss_before": before, "loss_now": now, "fall_percent": fall_percent},
            advice=self._STUCK,
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _classic_pair(self, steps: np.ndarray) -> int | None:
        """Index of the loss the last one is compared with; None when the last one is not checked."""
        checked, pair = -(10**18), None
        for now, step in enumerate(steps):
            pair = None
            earlier = int(np.searchsorted(steps, step - self.num_steps, side="right")) - 1
            if earlier >= 0 and step - checked >= self.num_steps:
                checked, pair = step, min(earlier, now)
        return pair


def _comes_down(last: np.ndarray) -> bool:
    """Whether the loss is on its way down again, as after harder data, or a restart of the schedule.

    The longer it has been up, the longer is what is looked at: a slow fall shows in many points only.
    """
    half = len(last) // 2
    fall = float(last[:half].mean() - last[-half:].mean())
    return fall > _DOWN_Z * noise_of(last) * float(np.sqrt(2.0 / half)) > 0
