"""A loss that swings back and forth instead of falling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tdbg_lab.records import Kind, Severity, ViewRef
from tdbg_lab.rules.base import Needs, Rule
from tdbg_lab.rules.losses.evidence import has_no_floor
from tdbg_lab.rules.losses.state import no_single_loss
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.registry import rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["OscillatingLoss"]


_FIRST = 8
"""Losses of the beginning."""
_FALLS = 6
"""Falls in a row: by chance one in 5000."""


class _Swing(NamedTuple):
    period: int
    """Points after which it comes again."""
    strength: float
    """The lesser of how alike points a period apart are, and how opposed points within it: 0 to 1."""
    size: float
    """Standard deviation as a share of the mean, without the trend."""


@rule("oscillating_loss", title="Loss oscillates")
@dataclass(frozen=True, kw_only=True)
class OscillatingLoss(Rule):
    """The training loss swings with a steady period, by a share of its size, and does not fall.

    The noise of small batches goes up and down, too, but without a period: its autocorrelation is small at
    every lag (below 0.4 at the best of 15 lags over 64 points). A step beyond what the curvature bears makes
    the loss swing from one side of the valley to the other, which is seen as a strong positive
    autocorrelation at a period and a strong negative one within it. What swings because the learning rate
    or the order of the batches does is not reported, nor a swing under which the loss goes on falling, nor
    that of a loss around zero, as of a policy, which has no size to swing by.

    Without a steady period, a loss oscillates that falls far, step by step, and is thrown back to where it
    began again and again. Six falls in a row before each throw are no work of small batches.
    """

    window: int = 64
    """Last losses that are looked at: at least four periods."""
    min_strength: float = 0.5
    """Autocorrelation, positive at the period and negative within it. Noise reaches 0.4."""
    min_size: float = 0.05
    """Size of the swing, standard deviation as a share of the mean: a smaller one does little harm."""
    min_returns: int = 3
    """Times within the window that the loss is thrown back to its beginning from below half of it."""
    confirmations: int = 8
    """Steps in a row."""

    explains: ClassVar[tuple[str, ...]] = ("loss_not_decreasing", "overfit", "overtraining")
    _ADVICE: ClassVar = (
        "Lower the learning rate by a factor of 2 to 10: steps jump over the valley.",
        "Lower the momentum, or warm the learning rate up and let it decay.",
        "Clip gradients, or use larger batches where the swings follow single batches.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("window", at_least=16)
        self.require("min_strength", above=0, at_most=1)
        self.require("min_size", at_least=0)
        self.require("min_returns", at_least=1)

    def needs(self) -> Needs:
        """Losses."""
        return Needs(kinds=(Kind.LOSS, Kind.SCALAR))

    def not_applicable(self, run: RunView) -> str:
        """Without a loss, or with several."""
        return no_single_loss(run, "may swing")

    def check(self, step: int, run: RunView) -> Finding | None:
        """Look for a period in the last losses."""
        name = run.losses()[0]
        series = run.scalars(name)
        values = series.values[-self.window :]
        if len(values) < self.window or series.steps[-1] != step or not np.isfinite(values).all():
            return None
        back = _returns(values, float(median(series.values[:_FIRST])))
        if back >= self.min_returns and not _is_made(
            run, int(series.steps[-self.window]), len(values) // back
        ):
            return self._returning(step, name, values, back)
        swing = _swing(values, self.min_size)
        if swing.strength < self.min_strength or has_no_floor(series.values):
            return None
        if _is_made(run, int(series.steps[-self.window]), swing.period):
            return None
        return self.finding(
            step,
            f"{name} swings with a period of {swing.period} steps by {100 * swing.size:.2g} % of its mean "
            f"{values.mean():.4g}, and does not fall.",
            severity=Severity.WARNING,
            tensor=name,
            evidence={
                "period_steps": swing.period,
                "autocorrelation": round(swing.strength, 3),
                "size_percent": round(100 * swing.size, 2),
                "loss_mean": float(values.mean()),
                "points_count": len(values),
            },
            advice=self._ADVICE,
            fix={"setting": "learning_rate", "factor": 0.3},
            view=ViewRef("scalars", {"tensors": [name]}),
        )

    def _returning(self, step: int, name: str, values: NDArray[np.float64], back: int) -> Finding:
        return self.finding(
            step,
            f"{name} fell below half of where it began and was thrown back to it {back} times in the last "
            f"{len(values)} steps.",
            severity=Severity.WARNING,
            tensor=name,
            evidence={
                "returns_count": back,
                "loss_least": float(values.min()),
                "loss_largest": float(values.max()),
                "points_count": len(values),
            },
            advice=self._ADVICE,
            fix={"setting": "learning_rate", "factor": 0.3},
            view=ViewRef("scalars", {"tensors": [name]}),
        )


def _returns(values: NDArray[np.float64], level: float) -> int:
    """How often a loss came back to a level after it had fallen below half of it without a rise between."""
    if not (level > 0 and values.min() < 0.5 * level and values.max() >= level):  # as in healthy runs
        return 0
    back, falls, low = 0, 0, False
    for before, now in zip(values[:-1].tolist(), values[1:].tolist(), strict=True):
        if now < before:
            falls += 1
        else:
            low = low or (falls >= _FALLS and before < 0.5 * level)
            falls = 0
        if now >= level:
            back, low = back + low, False
    return back


def _swing(values: NDArray[np.float64], min_size: float) -> _Swing:
    """The strongest period of at most a quarter of the points; none where they fall or hardly differ."""
    count = len(values)
    half = count // 2
    at = np.arange(count) - (count - 1) / 2
    rest = values - values.mean() - at * (at @ values) / (at @ at)
    power = float(rest @ rest)
    spread = float(np.sqrt(power / count))
    size = spread / max(abs(float(values.mean())), float(np.finfo(np.float64).tiny))
    falls = values[half:].mean() < values[:half].mean() - 0.5 * spread
    if falls or power <= 0 or size < min_size:
        return _Swing(0, 0.0, size)
    lags = np.correlate(rest, rest, "full")[count - 1 : count + count // 4] / power
    opposed = -np.minimum.accumulate(lags[1:-1])
    strengths = np.minimum(lags[2:], opposed)
    best = int(np.argmax(strengths))
    return _Swing(best + 2, float(strengths[best]), size)


def _is_made(run: RunView, since: int, period: int) -> bool:
    """Whether the learning rate swings, too, or the same batches come again with that period."""
    for key in run.tensors(Kind.OPTIMIZER, regex=r"^optimizer/lr/"):
        series = run.scalars(key.name)
        rates = series.values[series.steps >= since]
        if len(rates) > 2 and rates.max() > 1.05 * rates.min() and (np.diff(rates) > 0).any():
            return True
    batches = run.scalars("check/batch").values[-4 * period :]
    one = len(np.unique(batches)) == 1  # all data at once
    return len(batches) > period and not one and bool((batches[period:] == batches[:-period]).mean() > 0.5)
