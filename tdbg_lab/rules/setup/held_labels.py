"""Classifiers that tell the rows they are trained on, and of rows held out nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["HeldLabels", "held_labels"]

_EVALUATIONS, _LAST = 5, 4
"""Evaluations that are needed, and those of them that say how good predictions are now."""
_FEW, _GAP = 3, 0.02
"""Fewer of them, that do where the training loss is lower by so much: either over its entropy."""
_LITTLE, _HARDLY = 0.15, 0.985
"""Then a little may be told of rows held out: share of what chance leaves, and least loss over entropy. In
healthy trainings with labels of the same frequencies it was below 0.9, but for a loss that weighs classes."""
_NEVER, _WORSE = 0.99, 1.02
"""Least loss of all evaluations, and of the last ones, over the entropy of their labels: predictions were
never better than knowing how frequent each label is, and are worse than that by now."""
_TRAINED = 0.99
"""Training loss over the entropy below which something is learnt of the training rows."""
_ALIKE = 0.05
"""Share by which entropies of training and evaluation may differ: else their labels are others by nature."""
_Z, _SURE_Z = 1.64, 4.0
"""Standard errors that leave one chance in twenty, and none."""
_TOLD = 0.1
"""Share of what chance leaves that must be ruled out for rows held out, by their number."""


class HeldLabels(NamedTuple):
    """Shares of right predictions, and of those right by luck; least loss of the evaluations, and entropy."""

    trained: float
    held: float
    chance: float
    least_loss: float
    entropy: float

    @property
    def sentence(self) -> str:
        """What is told of either."""
        return (
            f"training rows are told better than by chance ({100 * self.trained:.1f} % right), and the "
            "evaluation loss was never below that of knowing only how frequent each label is "
            f"({100 * self.held:.1f} % right, {100 * self.chance:.1f} % by chance)"
        )

    @property
    def evidence(self) -> dict[str, float]:
        """The numbers behind it."""
        return {
            "right_percent_training": round(100 * self.trained, 2),
            "right_percent_evaluation": round(100 * self.held, 2),
            "chance_percent": round(100 * self.chance, 2),
            "evaluation_loss_least": self.least_loss,
            "entropy_of_labels": self.entropy,
        }


def held_labels(run: RunView, name: str, last: int) -> HeldLabels | None:
    """What is told of rows held out, if it is nothing though the training rows are learnt; else None.

    Parameters
    ----------
    run
        What was recorded.
    name
        Class of a loss that evaluations called, too, with labels of about the same frequencies.
    last
        Saved steps of the training that are looked at.
    """
    if not kind_of(run, name).is_cross_entropy:
        return None
    losses = run.scalars(f"loss/{name}", Mode.EVAL).values
    entropies = [facts_of(run, name, "entropy", mode) for mode in (Mode.TRAIN, Mode.EVAL)]
    if len(losses) < _FEW or any(not len(one) for one in entropies):
        return None
    ours, theirs = (float(np.median(one)) for one in entropies)
    if abs(ours - theirs) > _ALIKE * theirs or losses.min() < _HARDLY * theirs:
        return None
    trained = run.scalars(f"loss/{name}").values[-last:]
    worse = bool((losses[-_LAST:] > _WORSE * theirs).all())
    worse = worse and len(losses) >= _EVALUATIONS and float(losses.min()) >= _NEVER * theirs
    known = float(np.mean(trained)) / ours
    if known >= _TRAINED or not (worse or losses[-1] / theirs - known > _GAP):
        return None
    held, shown = _told(run, name, Mode.EVAL, _LAST), _told(run, name, Mode.TRAIN, last)
    if held is None or shown is None:
        return None
    by_chance = held.above < _Z * held.error and held.above + _Z * held.error < _TOLD
    if (
        not (by_chance if worse else held.above + _Z * held.error < _LITTLE)
        or shown.above < _SURE_Z * shown.error
    ):
        return None
    return HeldLabels(shown.right, held.right, held.chance, float(losses.min()), theirs)


class _Told(NamedTuple):
    right: float
    chance: float
    above: float
    """Share of what chance leaves that is told rightly (Cohen's kappa)."""
    error: float


def _told(run: RunView, name: str, mode: Mode, last: int) -> _Told | None:
    hits, chance, samples = (
        facts_of(run, name, fact, mode)[-last:] for fact in ("hits", "chance", "samples")
    )
    if not len(hits) == len(chance) == len(samples) > 0:
        return None
    right, lucky = float(hits.mean()), float(chance.mean())
    # Evaluations see the same rows again and again.
    count = float(samples.max()) if mode is Mode.EVAL else float(samples.sum())
    left = max(1.0 - lucky, 1e-3)
    error = float(np.sqrt(max(lucky * (1.0 - lucky), 1e-4) / max(count, 1.0)))
    return _Told(right, lucky, (right - lucky) / left, error / left)
