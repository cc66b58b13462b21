"""A learning rate that is out by orders of magnitude, seen by how far steps move the weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.consequences import NOT_LEARNING
from tdbg_lab.rules.losses.state import knows, knows_nothing
from tdbg_lab.rules.memo import remembered
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.rounds import rate_of, untold_share
from tdbg_lab.rules.silent.loop import fact
from tdbg_lab.rules.trend import trend_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.frame import Frame
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.trend import Trend
    from tdbg_lab.rules.view import RunView

__all__ = ["LearningRate"]

_LEAST_HEALTHY = 5e-4
"""The least typical update ratio of healthy trainings."""
_HALF = 0.5
_RATIOS = r"^optimizer/update_ratio/.*(weight\w*|kernel)$"
"""Recurrent layers of PyTorch call theirs ``weight_ih_l0``, layers of Keras ``kernel``."""

_ALIKE = "layer_collapse"
"""Rule that tells layers apart from which samples no longer can be told."""


@rule("learning_rate", title="Learning rate out of scale")
@dataclass(frozen=True, kw_only=True)
class LearningRate(Rule):
    """Steps move the weights by far too much or too little, and the loss shows it.

    Judged by the update ratio ``|dw| / |w|`` of the weight matrices, which is about 1e-3 in healthy
    training. Too high: the typical ratio is large and the loss is above where it began; or some step was
    larger than the weights themselves, so that nothing is left of their initialisation, and the loss has
    not come back to that of the untrained model, or the output, or what a layer gives, is nearly the same
    for all samples ever since. Too low: the ratio is tiny though there are gradients, the
    loss hardly falls, and the rate is neither at its end nor in a warm-up, unless that takes so long that it
    was counted in something else than steps. Or the loss falls, but creeps, with steps that are smaller than
    those of any healthy training.

    Boosted trees have no weights to move. Each round adds the learning rate's share of what its tree tells,
    so that ``(1 - rate) ** rounds`` is left untold after all rounds that are to come, whatever they show. A
    rate above one adds more than the trees tell, and overshoots.
    """

    high: float = 0.1
    """Typical (median) update ratio from which a rate may be too high."""
    replaced: float = 1.0
    """Typical update ratio of a single step from which it has replaced the weights."""
    pushed: float = 0.3
    """The same from which it has pushed them where the output is the same for all samples since."""
    low: float = 2e-5
    """Typical update ratio below which a rate may be too low: 50 steps move weights by a thousandth at most.
    Of healthy trainings the least had 5e-4."""
    creeping: float = 1e-4
    """The same where the loss falls, but creeps: not half the way down, of a model that knew nothing at
    first. What a trained one is tuned with may be as little."""
    patience: int = 5
    """Saved steps in a row."""
    min_points: int = 30
    """Losses that are needed: many trainings start with a loss that shoots up and comes back."""
    little_fall: float = 0.02
    """Fall of the loss since the start, as a share of it, that counts as none."""

    certain_fall: float = 3.0
    """Standard errors of the fall since the start below which it is noise."""
    warm_up_steps: int = 1000
    """Steps after which a rate that still rises is too low all the same. Warm-ups of 10,000 steps have passed
    a tenth of their way by then, and what they move is far above `low`."""
    warm_up_evaluations: int = 4
    """Evaluations after which it is, and a tenth of the steps: nobody waits for so many before anything is
    learnt."""
    longest_warm_up: int = 20_000
    """Steps, twice as many as the longest in use, after which a rate that rises as it does now would come to
    what the least of healthy trainings had: if it takes more, it is too low all the same."""

    untold: float = 0.8
    """Share that boosted trees leave untold in all rounds from which the rate is too low for so few. In
    healthy trainings the most was 0.21."""
    rounds: int = 10
    """Rounds after which that is told."""
    whole: float = 1.0
    """Rate of boosted trees above which it is too high: each tree is added more than once."""

    explains: ClassVar[tuple[str, ...]] = (
        *NOT_LEARNING,
        "exploding_tensor",
        "dead_relu",
        "weight_update_ratio",
        "layer_collapse",
    )
    _HIGH: ClassVar = (
        "Lower the learning rate by a factor of 10, or warm it up.",
        "Clip gradients (torch.nn.utils.clip_grad_norm_) to bound single steps.",
        "Normalise inputs: large inputs make large gradients.",
    )
    _LOW: ClassVar = (
        "Raise the learning rate by a factor of 10 to 100.",
        "Check the schedule: a warm-up that never ends, or a decay that began at once.",
        "Check the scale of the loss: a mean over too much makes small gradients (not with Adam).",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("high", "low", "creeping", "replaced", "pushed", "whole", above=0)
        self.require("patience", "min_points", "warm_up_steps", "warm_up_evaluations", at_least=1)
        self.require("longest_warm_up", "rounds", at_least=1)
        self.require("untold", at_least=0, at_most=1)
        self.require("little_fall", "certain_fall", at_least=0)

    def needs(self) -> Needs:
        """Update ratios, or boosted trees."""
        kinds = (Kind.OPTIMIZER, Kind.CUSTOM)
        return Needs(kinds=kinds, regex=f"{_RATIOS}|^trees/", steps=max(4, self.patience))

    def not_applicable(self, run: RunView) -> str:
        """Without an optimizer, or without a loss to judge its steps by."""
        if untold_share(run) is not None:
            return ""
        if not run.tensors(Kind.OPTIMIZER, regex=_RATIOS):
            return "No update ratios were recorded so far: give attach() the optimizer."
        return "" if run.losses() else "No training loss was recorded so far."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Compare the ratios of the last saved steps, and look at the loss."""
        untold = untold_share(run)
        if untold is not None:
            return self._of_trees(step, run, untold)
        if not len(run.frame().rows(Kind.OPTIMIZER)):
            return None
        ratio = self._typical(run)
        losses = run.losses()
        if not np.isfinite(ratio) or not losses:
            return None
        lost = self._lost(step, run, losses[0])
        if lost is not None or max(self.low, self.creeping) < ratio < self.high:
            return lost
        trend = trend_of(run.scalars(losses[0]).values)
        if trend is None or trend.points < self.min_points:
            return None
        if ratio >= self.high:
            wrong, what, advice, factor = trend.now >= trend.start + 2 * trend.noise, "much", self._HIGH, 0.1
        else:
            wrong, what, advice, factor = self._is_slow(step, run, ratio, trend), "little", self._LOW, 10.0
        if not wrong:
            return None
        return self.finding(
            step,
            f"A step changes weights by {100 * ratio:.2g} % (median of the layers), which is too {what}: "
            f"the loss went from {trend.start:.4g} to {trend.now:.4g}.",
            severity=Severity.WARNING,
            tensor="optimizer/lr/0",
            evidence={
                "update_ratio_median": ratio,
                "loss_at_start": trend.start,
                "loss_now": trend.now,
                "saved_steps_count": self.patience,
            },
            advice=advice,
            fix={"setting": "learning_rate", "factor": factor},
            view=ViewRef("scalars", {"tensors": ["optimizer/lr/0", losses[0]]}),
        )

    def _is_slow(self, step: int, run: RunView, ratio: float, trend: Trend) -> bool:
        """Whether the loss stands, or creeps with steps smaller than healthy ones, for no other reason."""
        falls = trend.drop_frac > self.little_fall and trend.drop_z > self.certain_fall
        creeps = falls and trend.drop_frac < _HALF and knows_nothing(run) and _largest(run) < _LEAST_HEALTHY
        if trend.points < 50 or not (creeps or (ratio <= self.low and not falls)):
            return False
        explained = self._will_change(step, run, ratio) or _has_no_gradient(run)
        return not explained and not knows(run, run.losses()[0])

    def _of_trees(self, step: int, run: RunView, untold: float) -> Finding | None:
        if rate_of(run.info.hyperparameters) > self.whole:
            return self._of_more_than_all(step, run)
        low = untold > self.untold and step + 1 >= self.rounds
        return self._of_rounds(step, run, untold) if low else None

    def _of_more_than_all(self, step: int, run: RunView) -> Finding:
        """A rate that adds more than a tree tells."""
        rate = rate_of(run.info.hyperparameters)
        return self.finding(
            step,
            f"Each round adds {rate:.3g} times what its tree tells: more than is missing, so that the next "
            "tree must take it back.",
            tensor="hyperparameters/eta",
            evidence={"learning_rate": rate},
            advice=("Use a rate of 0.3 or less.", "Halve the rate and double the rounds for better trees."),
            view=ViewRef("scalars", {"tensors": run.losses()[:2]}),
        )

    def _of_rounds(self, step: int, run: RunView, untold: float) -> Finding:
        """A rate for many more rounds than there are."""
        known = run.info.hyperparameters
        rate, rounds = rate_of(known), int(known["num_boost_round"])
        return self.finding(
            step,
            f"Each of {rounds} rounds adds {100 * rate:.3g} % of what its tree tells: {100 * untold:.0f} % "
            "is left untold after all of them. The rate is too low for so few rounds.",
            tensor="hyperparameters/eta",
            evidence={
                "learning_rate": rate,
                "rounds_count": rounds,
                "untold_percent": round(100 * untold, 1),
            },
            advice=(
                "Raise the learning rate: 0.3 for some tens of rounds, 0.1 for some hundreds.",
                "Or boost for many more rounds, and stop early on the evaluation set.",
            ),
            view=ViewRef("scalars", {"tensors": run.losses()[:2]}),
        )

    def _lost(self, step: int, run: RunView, loss: str) -> Finding | None:
        """A step that replaced the weights, after which the loss never came back to that without training.

        Or it is better only by what a constant output is better than one of chance. The weights are by then
        as large as the steps, so that the ratio of later ones looks healthy. A loss that does not come back
        is looked at often at first, and at every hundredth part of its points.
        """
        values = run.scalars(loss).values
        points = len(values)
        if points > self.min_points and points % max(1, points // 100):
            return run.active
        if points <= self.min_points:
            return None
        constant = any(one.rule == "constant_output" for one in run.open)
        alike = constant or any(
            one.rule == _ALIKE and one.severity is not Severity.NOTICE for one in run.open
        )
        if not alike and not median(values[-self.min_points :]) >= values[0]:
            return None
        ratio = _largest(run)
        if ratio < (min(self.pushed, self.replaced) if constant else self.replaced):
            return None
        what = "replaces them" if ratio >= self.replaced else "is far too much"
        now = float(median(values[-self.min_points :]))
        return self.finding(
            step,
            f"A step changed weights by {100 * ratio:.3g} % of their size (median of the layers), which "
            f"{what}: the loss began at {values[0]:.4g} and is {now:.4g}"
            f"{', and the output is the same for all samples' if constant else ''}.",
            tensor="optimizer/lr/0",
            evidence={"update_ratio_largest": ratio, "loss_at_start": float(values[0]), "loss_now": now},
            advice=self._HIGH,
            fix={"setting": "learning_rate", "factor": 0.1},
            view=ViewRef("scalars", {"tensors": ["optimizer/lr/0", loss]}),
        )

    def _typical(self, run: RunView) -> float:
        """Median over layers of the medians over the last saved steps."""
        frames = run.frames(Kind.OPTIMIZER, self.patience)
        alike = len(frames) == self.patience and all(frame.layout is frames[0].layout for frame in frames)
        if alike and len(_ratios(frames[-1])):
            return float(median(median(np.array([_ratios(frame) for frame in frames]))))
        found = []
        for key in run.tensors(Kind.OPTIMIZER, regex=_RATIOS):
            values = run.scalars(key.name).values[-self.patience :]
            if len(values) == self.patience:
                found.append(float(np.median(values)))
        return float(np.median(found)) if found else float("nan")

    def _will_change(self, step: int, run: RunView, ratio: float) -> bool:
        """Whether the rate is at its end, or in a warm-up that one can still wait for."""
        rates = [run.scalars(key.name).values for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/")]
        rates = [values for values in rates if len(values)]
        if any(values[-1] < 0.3 * values.max() for values in rates):
            return True
        rises = any(values[-1] > 1.001 * values[: len(values) // 2 + 1].max() for values in rates)
        evaluated = fact(run, "evaluations") >= self.warm_up_evaluations and step >= self.warm_up_steps / 10
        in_time = step * _LEAST_HEALTHY < self.longest_warm_up * ratio
        return rises and step < self.warm_up_steps and not evaluated and in_time


def _largest(run: RunView) -> float:
    """Median over layers of the largest ratio there was."""
    series = [run.scalars(key.name).values for key in run.tensors(Kind.OPTIMIZER, regex=_RATIOS)]
    largest = [float(known.max()) for one in series if len(known := one[np.isfinite(one)])]
    return float(np.median(largest)) if largest else 0.0


def _has_no_gradient(run: RunView) -> bool:
    """Whether most weights get a gradient of exactly zero: no rate moves them, dead units are the trouble."""
    frames = run.frames(Kind.GRADIENT, 1)
    sizes = frames[-1].block.l2[frames[-1].layout.matrices(Kind.GRADIENT)] if frames else np.zeros(0)
    return bool(len(sizes)) and float(np.median(sizes)) == 0.0


@remembered
def _ratios(frame: Frame) -> NDArray[np.float64]:
    """Update ratios of the weight matrices."""
    found: NDArray[np.float64] = frame.scalar_values[_ratio_rows(frame.layout)]
    return found


@remembered
def _ratio_rows(layout: Layout) -> NDArray[np.int64]:
    rows = layout.rows((Kind.OPTIMIZER,)).tolist()
    return np.array([row for row in rows if re.search(_RATIOS, layout.keys[row].name)], np.int64)
