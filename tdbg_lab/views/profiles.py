"""The captured profile that a view draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.profiles import ProfileInfo, read_digest
from tdbg_lab.views.common import RANK
from tdbg_lab.views.labels import count
from tdbg_lab.views.param import Param
from tdbg_lab.views.recent import Range, zero_ns
from tdbg_lab.views.style import empty

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from tdbg_lab.run import Run

__all__ = ["PROFILE", "RANK_OF_PROFILE", "Chosen", "choose"]

PROFILE = Param(
    "profile",
    "Profile",
    "int",
    minimum=1,
    maximum=10_000,
    help="Number of the profile, oldest first. Default: the last with something to draw.",
)
RANK_OF_PROFILE = Param(
    RANK.name, RANK.label, "int", minimum=0, maximum=100_000, help="Default: the first one."
)
_HOW = (
    "Profile the next steps of a running training: "
    "handle.profile(steps=5), %tdbg profile --steps 5 or tdbg profile RUN --steps 5."
)


_DRAWN = ("trace", "python.speedscope")
"""Files of a profile with operators or a tree of calls; the calls that cProfile counts have neither."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A profile and what was made of its traces."""

    info: ProfileInfo
    digest: dict[str, Any]
    title: str
    """Which one it is, in words."""

    @property
    def missing(self) -> str:
        """What could not be recorded or kept, as a sentence; empty where nothing is missing."""
        later = self.digest.get("problems")
        problems = [*self.info.problems, *(map(str, later) if isinstance(later, list) else ())]
        return f"Not recorded: {'; '.join(problems[:3])}." if problems else ""


def choose(
    run: Run,
    profile: int | None,
    rank: int | None,
    range: Range = None,  # noqa: A002 - its name on the wire
) -> Chosen | go.Figure:
    """The profile asked for, else the last one (of the range), or a figure that says why there is none."""
    infos = run.profiles()
    ranks = sorted({one.rank for one in infos})
    if rank is not None:
        infos = [one for one in infos if one.rank == rank]
    elif ranks:
        infos = [one for one in infos if one.rank == ranks[0]]
    if not infos:
        if rank is not None and ranks:
            return empty(
                f"Rank {rank} has no profile.", f"There are some of rank {', '.join(map(str, ranks[:20]))}."
            )
        return empty("Nothing was profiled on demand yet.", _HOW)
    info = _one(infos, profile, zero_ns(run), range)
    if not isinstance(info, ProfileInfo):
        return info
    if not info.ready:
        return empty("The profile is being prepared.", "It appears here by itself in a moment.")
    try:
        digest = read_digest(info)
    except (OSError, ValueError) as error:
        return empty("The profile cannot be read.", getattr(error, "strerror", None) or str(error))
    steps = f"step {info.first_step:,}"
    if info.last_step > info.first_step:
        steps = f"steps {info.first_step:,} to {info.last_step:,}"
    return Chosen(info, digest, f"{steps} of rank {info.rank}" if len(ranks) > 1 else steps)


def _one(infos: list[ProfileInfo], number: int | None, zero: int, wanted: Range) -> ProfileInfo | go.Figure:
    if number is not None and number > len(infos):
        return empty(
            f"There is no profile {number}.",
            f"The run has {count(len(infos), 'profile')}; the last is shown by default.",
        )
    if number is not None:
        return infos[number - 1]
    low, high = (None, None) if wanted is None else wanted
    first = -np.inf if low is None else zero + low * 1e9
    last = np.inf if high is None else zero + high * 1e9
    found = [one for one in infos if one.start_ns <= last and one.start_ns + one.duration_ns >= first]
    if not found:
        return empty("Nothing was profiled on demand in this range.", "What was is shown for the whole run.")
    drawn = [one for one in found if any(name.startswith(_DRAWN) for name in one.files)]
    return (drawn or found)[-1]
