"""How long steps take that nobody profiles: profiling makes every call of the CPU longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tdbg_lab.rules.view import RunView
    from tdbg_lab.store.profile_use import ProfileUse

__all__ = ["UsualStep", "usual_step"]

_LEAST = 5
_COMPUTING = ("forward", "backward", "optimizer", "step")


class UsualStep(NamedTuple):
    """The typical step; times in seconds."""

    length_s: float
    """Without what capture does."""
    computing_s: float
    """Of it, time in forward, backward and optimizer."""


def usual_step(run: RunView, profile: ProfileUse) -> UsualStep | None:
    """The typical step of the profile's rank outside of it; None when there are fewer than five."""
    times = run.phase_times(profile.rank).training()
    times = times[(times.step < profile.first_step) | (times.step > profile.last_step)]
    if len(times) < _LEAST:
        return None
    return UsualStep(float(np.median(times.besides("capture"))), float(np.median(times.of(*_COMPUTING))))
