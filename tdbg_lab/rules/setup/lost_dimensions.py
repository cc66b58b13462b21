"""Representations that are drawn together along all but a few directions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tdbg_lab.records import Kind, ViewRef
from tdbg_lab.rules.losses.state import is_game
from tdbg_lab.rules.registry import rule
from tdbg_lab.rules.setup.given import LossRule, facts_of, spoken
from tdbg_lab.rules.silent.loop import fact

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.records import Finding
    from tdbg_lab.rules.view import RunView

__all__ = ["LostDimensions"]

_FIRST = 3
"""Saved steps of the untrained model, of which the best counts: dimensions are lost at once."""
_FEW_LABELS = 3
"""Different labels up to which one or two directions tell all that is to be told."""
_APART = 5
"""Saved steps from one window to the next."""
_FALLS = 0.98
"""Effective rank over the least of earlier windows below which it still falls. Of ranks as low as that, the
least in healthy trainings was 1.04, and the most in those that lost their dimensions 0.95."""


class _Lost(NamedTuple):
    """Effective ranks: the best of the beginning, and the median of now."""

    first: float
    now: float
    step_first: int


@rule("lost_dimensions", title="Representation lost its dimensions")
@dataclass(frozen=True, kw_only=True)
class LostDimensions(LossRule):
    """What a loss of one's own is given differs along hardly more than two directions, and did along many.

    Known as dimensional collapse (Jing et al., ICLR 2022): views that are drawn together with nothing to push
    their dimensions apart. Judged by the effective rank, that is by how many principal axes share the
    variance, of up to 128 samples at each saved step.

    Many representations lose dimensions in their first steps, and get them back: so those are told that are
    at their least, and fall on, after three windows of `patience` saved steps. Where the loss compares two of
    one shape, both must have lost theirs: predictions of something begin with its mean, and targets keep what
    they have. Where labels come with the rows, two or three of them need no more than that.
    """

    patience: int = 20
    """Saved steps whose median is judged."""
    rank: float = 2.2
    """Effective rank below which hardly more than two directions are left."""
    kept: float = 0.3
    """The same as a share of that of the first saved steps. In healthy trainings with labels the least was
    0.33."""

    explains: ClassVar[tuple[str, ...]] = ("overfit",)
    _ADVICE: ClassVar = (
        "Check the term that keeps dimensions apart (off-diagonal correlations, covariance, negatives).",
        "Self-distilling training: check the stop-gradient, the predictor, and the centring of the teacher.",
        "Normalise the representation before the loss (BatchNorm), or widen the projection.",
    )

    def __post_init__(self) -> None:
        """Check the thresholds."""
        super().__post_init__()
        self.require("rank", at_least=1)
        self.require("kept", at_least=0, at_most=1)

    def not_applicable(self, run: RunView) -> str:
        """Without representations that a loss of one's own compares."""
        if run.tensors(Kind.CHECK, regex="^check/loss/[^/:]+/rank$"):
            return ""
        return "No loss of one's own was given rows of eight numbers or more so far: attach(loss=...)."

    def check(self, step: int, run: RunView) -> Finding | None:
        """Every loss that was given rows of numbers at this step."""
        if is_game(run):
            return None
        for key in run.tensors(Kind.CHECK, regex="^check/loss/[^/:]+/rank$"):
            name = key.name.split("/")[2]
            lost = self._lost(run, name, "rank")
            if lost is None or not _needs_more(run, name):
                continue
            if fact(run, f"loss/{name}/target_rank") and self._lost(run, name, "target_rank") is None:
                continue
            return self._found(step, name, lost, run)
        return None

    def _lost(self, run: RunView, name: str, what: str) -> _Lost | None:
        """Ranks that fell, and stay low."""
        series = run.scalars(f"check/loss/{name}/{what}")
        seen = len(series.steps) > 0 and (int(series.steps[-1]) == run.step or run.active is not None)
        if not seen or len(series.values) < 3 * self.patience:
            return None
        first, now = float(series.values[:_FIRST].max()), _median(series.values[-self.patience :])
        if now > min(self.rank, self.kept * first):
            return None
        if run.active is None and now > _FALLS * self._least_before(series.values):
            return None
        return _Lost(first, now, int(series.steps[-self.patience]))

    def _least_before(self, ranks: NDArray[np.float64]) -> float:
        """The least median of the windows that ended half a window ago and earlier."""
        windows = sliding_window_view(ranks[: -(self.patience // 2)], self.patience)[::_APART]
        return float(np.median(windows, axis=1).min())

    def _found(self, step: int, name: str, lost: _Lost, run: RunView) -> Finding:
        return self.finding(
            step,
            f"{spoken(name)} is given rows that differ along {lost.now:.2g} directions (effective rank, "
            f"median of {self.patience} saved steps), and along {lost.first:.2g} in the beginning.",
            tensor=f"loss/{name}",
            evidence={
                "effective_rank": round(lost.now, 3),
                "effective_rank_first": round(lost.first, 3),
                "width": int(fact(run, f"loss/{name}/classes")),
                "saved_steps_count": self.patience,
            },
            advice=self._ADVICE,
            view=ViewRef("scalars", {"tensors": [f"loss/{name}"]}),
            step_first=lost.step_first,
        )


def _needs_more(run: RunView, name: str) -> bool:
    """Whether more is to be told than one or two directions hold, as far as labels say."""
    labels = facts_of(run, name, "labels")
    return not len(labels) or float(labels.max()) > _FEW_LABELS


def _median(values: NDArray[np.float64]) -> float:
    return float(np.median(values))
