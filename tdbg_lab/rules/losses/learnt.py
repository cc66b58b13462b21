"""How much of what is learnt of the training rows holds for others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Mode
from tdbg_lab.rules.setup.given import facts_of, kind_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["Learnt", "learnt_by_trees", "learnt_of_labels"]

_LAST = 3
"""Evaluations that say how it is now."""
_NEVER = 0.05
"""Share that is none: half as much needs to be learnt of the training rows to say so."""


class Learnt(NamedTuple):
    """Two losses before anything was learnt, and now."""

    train_start: float
    train: float
    held_start: float
    held: float

    @property
    def share(self) -> float:
        """What the evaluation loss fell by over what the training loss fell by."""
        return (self.held_start - self.held) / (self.train_start - self.train)


def learnt_by_trees(train: NDArray[np.float64], held: NDArray[np.float64], *, fall: float) -> Learnt | None:
    """What boosted trees learnt since the first round; the largest share of four times in the training.

    Parameters
    ----------
    train, held
        Losses by round, ``(rounds,)``; at least 3.
    fall
        Of the training loss, as a share of its start, that is needed; half of it where the other never fell.

    Returns
    -------
    None where too little was learnt, or the training loss is not above zero.
    """
    rounds = len(train)
    looked = np.unique([max(2, rounds // 10), rounds // 4, rounds // 2, rounds - 1])
    fell = train[0] - train[looked]
    if not (fell > 0).all() or not train[0] > 0:
        return None
    shares = (held[0] - held[looked]) / fell
    needed = fall / 2.0 if float(shares.max()) <= _NEVER else fall
    if train[-1] > (1.0 - needed) * train[0]:
        return None
    at = int(looked[np.argmax(shares)])
    return Learnt(float(train[0]), float(train[at]), float(held[0]), float(held[at]))


def learnt_of_labels(
    run: RunView, name: str, train: NDArray[np.float64], held: NDArray[np.float64], *, fall: float
) -> Learnt | None:
    """What a network learnt of labels beyond their frequencies; the largest share of the last evaluations.

    Parameters
    ----------
    run
        What was recorded: the entropy of the labels is what either loss is that knows their frequencies only.
    name
        Of the loss: ``loss/CrossEntropyLoss``.
    train, held
        Losses by evaluation, ``(evaluations,)``; at least 3.
    fall
        Of the training loss, as a share of the entropy, that is needed.

    Returns
    -------
    None for other losses than cross-entropies, and where too little was learnt.
    """
    short = name.removeprefix("loss/")
    if not kind_of(run, short).is_cross_entropy:
        return None
    entropies = [facts_of(run, short, "entropy", mode) for mode in (Mode.TRAIN, Mode.EVAL)]
    if any(not len(one) for one in entropies):
        return None
    ours, theirs = (float(np.median(one)) for one in entropies)
    now = float(train[-_LAST:].max())
    if not now < (1.0 - fall) * ours:
        return None
    return Learnt(ours, now, theirs, float(held[-_LAST:].min()))
