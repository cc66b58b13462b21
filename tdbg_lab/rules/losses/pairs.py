"""Which training loss goes with which evaluation loss."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import ON_TRAINING_DATA, Kind, Mode

if TYPE_CHECKING:
    from tdbg_lab.rules.series import Scalars
    from tdbg_lab.rules.view import RunView

__all__ = ["LossPair", "find_pair", "missing_pair"]

_EVAL_NAME = re.compile(
    r"(?i)^(?:epoch[/_. ])?(?:val|valid|validation|eval|evaluation|test|dev)[/_. -]"
    r"(?:\w*[_-])?(?:loss|nll|ce|mse)$"
)
_TRAIN_NAME = re.compile(r"(?i)^(?:epoch[/_. ])?(?:train(?:ing)?[/_. -])?loss$")


class LossPair(NamedTuple):
    """A training loss and the evaluation loss that is compared with it."""

    train_name: str
    eval_name: str
    train: Scalars
    held: Scalars
    """The evaluation loss."""

    def train_at(self) -> np.ndarray:
        """Training loss at each evaluation: the mean since the evaluation before; NaN where there is none."""
        upper = np.searchsorted(self.train.steps, self.held.steps, side="right")
        lower = np.r_[0, upper[:-1]]
        sums = np.cumsum(np.r_[0.0, np.where(np.isfinite(self.train.values), self.train.values, 0.0)])
        counts = np.cumsum(np.r_[0, np.isfinite(self.train.values)])
        n = counts[upper] - counts[lower]
        return np.where(n > 0, (sums[upper] - sums[lower]) / np.maximum(n, 1), np.nan)


def find_pair(run: RunView, regex: str | None = None) -> LossPair | None:
    """Find the losses to compare.

    A loss in evaluation mode goes with the one of its name in training mode (of boosting, with the
    same metric); a logged one like ``val_loss`` with the only training loss. An evaluation in which zeros
    stand in for the targets, as of values that teach themselves, measures nothing; nor do attacks on the
    model that are trained on.

    Parameters
    ----------
    run
        What was recorded.
    regex
        Only losses with names like this.
    """
    held = _held(run, regex)
    trains = [name for name in run.losses() if regex is None or re.search(regex, name)]
    logged = [key.name for key in run.tensors(Kind.SCALAR, Kind.LOSS, regex=_TRAIN_NAME.pattern)]
    trains += [name for name in logged if name not in trains and len(run.scalars(name).steps)]
    for name, series in held:
        partner = _partner(name, trains)
        if partner is not None:
            return LossPair(partner, name, run.scalars(partner), series)
    return None


def missing_pair(run: RunView) -> str:
    """Why there is no pair, and how to record one; ``""`` when there is one."""
    if find_pair(run) is not None:
        return ""
    if not run.losses():
        return "No training loss was recorded so far: give attach() the loss module or log 'loss'."
    return (
        "No evaluation loss was recorded so far: evaluate with the attached loss inside handle.mode('eval'), "
        "or log it as 'val_loss'."
    )


def _held(run: RunView, regex: str | None) -> list[tuple[str, Scalars]]:
    found: list[tuple[str, Scalars]] = []
    losses = [] if _attacks(run) else run.losses(Mode.EVAL)
    losses = [name for name in losses if not name.partition(":")[0].endswith(ON_TRAINING_DATA)]
    names = [name for name in losses if regex is None or re.search(regex, name)]
    if names and all(_stands_in(run, name) for name in names):  # what is logged of it says no more
        return []
    found += [(name, run.scalars(name, Mode.EVAL)) for name in names]
    for key in run.tensors(Kind.SCALAR, Kind.LOSS, regex=_EVAL_NAME.pattern):
        if regex is not None and not re.search(regex, key.name):
            continue
        for mode in (Mode.TRAIN, Mode.EVAL):
            series = run.scalars(key.name, mode)
            if len(series.steps) and all(key.name != name for name, _ in found):
                found.append((key.name, series))
    return found


def _attacks(run: RunView) -> bool:
    """Whether most steps look for inputs that mislead the model, in eval mode: that is no evaluation.

    The fact grows at the powers of two, so that it is more than half of how many there were.
    """
    found = run.scalars("check/attacks").values
    return len(found) > 0 and 4 * float(found[-1]) > run.step


def _stands_in(run: RunView, loss: str) -> bool:
    """Whether all targets of a loss are zero in every evaluation, and not so in training."""
    trained, held = (
        run.scalars(f"check/{loss}/target_zeros", mode).values for mode in (Mode.TRAIN, Mode.EVAL)
    )
    return len(held) > 0 and bool((held == 1.0).all()) and bool((trained < 1.0).any())


def _partner(name: str, trains: list[str]) -> str | None:
    if name in trains:
        return name
    metric = name.rpartition("-")[2]
    same = [one for one in trains if "-" in name and one.rpartition("-")[2] == metric]
    if same:
        return same[0]
    if name.startswith("epoch/"):
        own = [one for one in trains if one == "epoch/loss"]
        if own:
            return own[0]
    return trains[0] if len(trains) == 1 or (_EVAL_NAME.match(name) and trains) else None
