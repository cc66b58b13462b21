"""What more workers of a data loader would gain."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["LoadingAdvice", "advise"]

_LEAST_GAIN = 0.05
_MOST_WORKERS = 32


@dataclass(frozen=True, slots=True)
class LoadingAdvice:
    """How many workers, and what they would save."""

    workers: int
    gain: float
    """Share of the step time that would be saved, at best, from 0 to 1."""


def advise(wait_s: float, busy_s: float, *, workers: int, cores: int | None) -> LoadingAdvice | None:
    """The least number of workers that keep up with training; None when more would gain little.

    Without workers a batch takes `wait_s` to load. With `workers` that cannot keep up, they are all
    busy: each delivers one batch every ``workers`` steps. With w workers a step then takes
    ``max(busy_s, load / w)``, as far as there are cores for them.

    Parameters
    ----------
    wait_s
        Mean time that a step waits for its batch.
    busy_s
        Mean time of the rest of a step.
    workers
        ``num_workers`` as it is; 0: the training process loads.
    cores
        Cores of the machine, or None when they are not known.
    """
    step_s = wait_s + busy_s
    if step_s <= 0 or wait_s <= 0:
        return None
    load_s = wait_s if workers == 0 else workers * step_s
    room = _MOST_WORKERS if cores is None else max(1, min(cores, _MOST_WORKERS))
    wanted = min(max(math.ceil(load_s / max(busy_s, 1e-9)), 1), room)
    if wanted <= workers:
        return None
    gain = 1 - max(busy_s, load_s / wanted) / step_s
    return LoadingAdvice(wanted, gain) if gain >= _LEAST_GAIN else None
