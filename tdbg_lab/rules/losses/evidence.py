"""What speaks against a loss that does not fall: predictions that have become better than chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.rules.middle import median
from tdbg_lab.rules.trend import noise_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["has_no_floor", "keeps_labels", "learnt_labels", "sees_labels", "targets_explain"]

_LEAST_POINTS = 9
_LEAST_KAPPA = 0.05
"""Share of what chance leaves that must be told rightly: less is no learning, however significant."""
_LEAST_SLOPE = 0.05
"""The same of numbers: their correlation times the size of predictions over that of the targets."""
_TINY = 1e-30
_SURE_Z, _GAIN_Z = 4.0, 1.64
"""Standard errors of what is told better than by chance: beyond doubt; and of the gain: one in twenty."""
_WORSE_Z = 3.0
"""Standard errors below its best from which it has become worse."""
_SIDES = 0.05
"""Share of the points below, and above zero, from which a loss has no floor to fall to."""
_FIRST = 3
"""Saved steps of the untrained model where much is learnt at once; else a tenth, or a third, tell more."""
_GROWN = 1.5, 100.0
"""Growth of targets that is none, and that is divergence itself, as of values that teach themselves."""


class _Level(NamedTuple):
    """A mean and its standard error."""

    mean: float
    error: float


def sees_labels(run: RunView, loss: str) -> bool:
    """Whether predictions of a loss were compared with its labels."""
    return len(_above_chance(run, loss, Mode.TRAIN)) > 0


def sees_classes(run: RunView, loss: str) -> bool:
    """Whether these labels are classes, or yes and no."""
    return sees_labels(run, loss) and len(run.scalars(f"check/{loss}/hits").values) > 0


def learnt_labels(run: RunView, loss: str) -> bool:
    """Whether predictions go with the labels better than by chance, and better than when training began.

    Of classes, that is the share of right predictions above that of predictions as frequent as these by luck;
    of numbers, their correlation times their relative size, which begins small. An untrained network may be
    better than chance by itself, so it is the gain since the beginning that counts, and more than
    a trace. Where dropout or augmentation hide it in training, evaluations count as well.

    Parameters
    ----------
    run
        What was recorded.
    loss
        Name of a loss whose predictions and targets were seen, ``"loss/CrossEntropyLoss"``.
    """
    trained = _above_chance(run, loss, Mode.TRAIN)
    if len(trained) < _LEAST_POINTS:
        return False
    firsts = [
        _level(trained[:count]) for count in {_FIRST, max(_FIRST, len(trained) // 10), len(trained) // 3}
    ]
    held = _above_chance(run, loss, Mode.EVAL)[-3:]
    late = [trained[-(len(trained) // 3) :], held] if len(held) else [trained[-(len(trained) // 3) :]]
    return any(_is_gain(first, _level(one)) for one in late for first in firsts)


def keeps_labels(run: RunView, loss: str) -> bool:
    """Whether predictions go with the labels as well as ever, whatever the loss does: see `learnt_labels`.

    What a policy is rewarded for weighs its loss; that goes up while it becomes sure of what is best.
    """
    trained = _above_chance(run, loss, Mode.TRAIN)
    if not learnt_labels(run, loss):
        return False
    part = max(3, len(trained) // 5)
    now = _level(trained[-part:])
    levels = [_level(trained[at : at + part]) for at in range(0, len(trained) - part, part)]
    best = max(levels, key=lambda level: level.mean, default=now)
    return now.mean >= best.mean - _WORSE_Z * float(np.hypot(now.error, best.error))


def _is_gain(first: _Level, now: _Level) -> bool:
    """Whether there is an association beyond doubt, and more of it than in the few steps of the beginning."""
    gain = now.mean - max(0.0, first.mean)
    known = now.mean > max(1.0, _SURE_Z * now.error)
    return known and gain > _GAIN_Z * float(np.hypot(first.error, now.error))


def _above_chance(run: RunView, loss: str, mode: Mode) -> NDArray[np.float64]:
    """How far predictions go with labels at each saved step, and its error: 1 is the least that counts.

    Shape ``(S, 2)``.
    """
    base = f"check/{loss}/"
    correlation, samples = (run.scalars(base + fact, mode).values for fact in ("correlation", "samples"))
    if len(correlation) and len(correlation) == len(samples):
        told, wanted = (run.scalars(f"{base}{whose}_size", mode).values for whose in ("prediction", "target"))
        if not len(told) == len(wanted) == len(samples):
            return np.zeros((0, 2))
        size = np.minimum(told / max(float(median(wanted)), _TINY), 1.0)
        return np.stack([correlation * size, size / np.sqrt(np.maximum(samples, 1.0))], axis=1) / _LEAST_SLOPE
    hits, chance = (run.scalars(base + fact, mode).values for fact in ("hits", "chance"))
    if not len(hits) or not len(hits) == len(chance) == len(samples):
        return np.zeros((0, 2))
    left = np.maximum(1.0 - chance, 1e-3)
    error = np.sqrt(np.maximum(chance * (1.0 - chance), 1e-4) / np.maximum(samples, 1.0))
    return np.stack([(hits - chance) / left, error / left], axis=1) / _LEAST_KAPPA


def _level(points: NDArray[np.float64]) -> _Level:
    """Mean over steps; its error is that of the samples, or what the steps differ by if that is more."""
    values, errors = points[:, 0], points[:, 1]
    count = len(values)
    between = float(values.std(ddof=1)) / np.sqrt(count) if count > 2 else 0.0
    return _Level(float(values.mean()), max(float(np.sqrt((errors**2).sum())) / count, between))


def has_no_floor(values: NDArray[np.float64]) -> bool:
    """Whether a loss is around zero by nature, as that of a policy: it has nowhere to fall to.

    The advantage that weighs a policy's log-probabilities has a mean of zero; so has what a critic tells
    apart. Such a loss is now above and now below zero; or no farther from it than its own noise; or comes up
    to it from below, as the policy becomes sure of what it does.
    """
    below = float((values < 0).mean()) if len(values) else 0.0
    if _SIDES <= below <= 1.0 - _SIDES:
        return True
    part = max(3, len(values) // 10)
    start, now = float(median(values[:part])), float(median(values[-part:]))
    noise = noise_of(values)
    return below > 0 and (abs(start) <= noise or (start < now <= noise))


def targets_explain(run: RunView, loss: str, rise: float) -> bool:
    """Whether the targets of a regression have grown so much that its loss may have risen to `rise` times.

    The returns that a value function is taught grow while its policy gets better; the square of their
    errors grows with the square of their size. Boundless growth is no excuse.
    """
    sizes = run.scalars(f"check/{loss}/target_size").values
    if len(sizes) < 2 * _FIRST or not np.isfinite(sizes).all():
        return False
    first, last = float(median(sizes[:_FIRST])), float(median(sizes[-_FIRST:]))
    least, most = _GROWN
    return 0 < least * first < last < most * first and rise <= 2.0 * (last / first) ** 2
