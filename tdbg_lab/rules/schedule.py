"""What the learning rate does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView

__all__ = ["WarmUp", "warming_up"]

_RISING = 1.01


class WarmUp(NamedTuple):
    """The time in which the learning rate rises from little to its full size."""

    now: bool
    """It still rises."""
    until_step: int
    """First step at 90 % of the largest rate so far; 0 when it did not rise."""


def warming_up(run: RunView) -> WarmUp:
    """Tell whether the learning rate is warming up, from the first recorded parameter group."""
    names = [
        key.name
        for key in run.tensors(
            Kind.OPTIMIZER, Kind.SCALAR, regex=r"(?i)(^|[/._])(lr|learning_rate)([/._].*)?$"
        )
    ]
    if not names:
        return WarmUp(now=False, until_step=0)
    steps, rates = run.scalars(names[0])
    known = np.isfinite(rates)
    steps, rates = steps[known], rates[known]
    if len(rates) < 2 or rates[0] * _RISING >= rates.max():
        return WarmUp(now=False, until_step=0)
    top = int(np.argmax(rates >= 0.9 * rates.max()))
    rising = len(rates) > 2 and rates[-1] >= rates[-3] * _RISING and rates[-1] >= 0.999 * rates.max()
    return WarmUp(now=bool(rising), until_step=int(steps[top]))
