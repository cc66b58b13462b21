"""What the learning rate does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tdbg_lab.rules.view import RunView

__all__ = ["WarmUp", "has_ended", "warming_up"]

_RISING = 1.01
_ENDED = 0.1
"""Share of the largest rate below which a schedule is at its end."""


class WarmUp(NamedTuple):
    """The time in which the learning rate rises from little to its full size."""

    now: bool
    """It still rises."""
    until_step: int
    """First step at 90 % of the largest rate so far; 0 when it did not rise."""


def warming_up(run: RunView) -> WarmUp:
    """Tell whether the learning rate is warming up, from the first recorded parameter group."""
    steps, rates = _rates(run)
    if len(rates) < 2 or rates[0] * _RISING >= rates.max():
        return WarmUp(now=False, until_step=0)
    top = int(np.argmax(rates >= 0.9 * rates.max()))
    rising = len(rates) > 2 and rates[-1] >= rates[-3] * _RISING and rates[-1] >= 0.999 * rates.max()
    return WarmUp(now=bool(rising), until_step=int(steps[top]))


def has_ended(run: RunView) -> bool:
    """Whether the learning rate of the first parameter group has come down to next to nothing."""
    _, rates = _rates(run)
    return len(rates) > 0 and bool(rates[-1] < _ENDED * rates.max())


def _rates(run: RunView) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Steps and learning rates of the first recorded parameter group; those that are finite."""
    keys = run.tensors(Kind.OPTIMIZER, Kind.SCALAR, regex=r"(?i)(^|[/._])(lr|learning_rate)([/._].*)?$")
    steps, rates = run.scalars(keys[0].name) if keys else (np.zeros(0, np.int64), np.zeros(0))
    known = np.isfinite(rates)
    return steps[known], rates[known]
