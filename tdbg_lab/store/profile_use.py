"""How profiled steps used their device, as rules read it: ``rank-*/profile/step-*/use.json``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tdbg_lab.store.jsonable import float_in
from tdbg_lab.store.layout import read_json
from tdbg_lab.store.profiles import USE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.store.profiles import ProfileInfo

__all__ = ["ProfileUse", "Wait", "latest_uses"]

_MAX_BYTES: Final = 2**18
_MAX_WAITS: Final = 20
_MAX_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Wait:
    """Calls of one kind, from one place, that wait until the device is done; times of all of them, s."""

    cause: str
    """item, cpu, to_device, condition, mask, print, synchronize, or an operator."""
    place: str
    """Python function, ``file(line): name``; empty when calls were not recorded."""
    calls: int
    waited_s: float
    lost_s: float
    """What the device lost by it: it had nothing to do afterwards, for so long at most as was waited."""


@dataclass(frozen=True, slots=True)
class ProfileUse:
    """One profile of one rank. Times are those of the profiled steps, which profiling makes longer."""

    rank: int
    name: str
    """Of its folder."""
    first_step: int
    last_step: int
    steps: int
    """Steps with operators."""
    steps_s: float
    """Their time."""
    kernels: int
    """Computations of a GPU; 0 when none was used."""
    kernel_median_s: float
    busy_s: float
    """Time in which a GPU was at work."""
    operators: int
    """Operators that no other one called."""
    waits: tuple[Wait, ...]
    """Worst first."""


def latest_uses(
    profiles: Sequence[ProfileInfo], until_ns: int, known: Sequence[ProfileUse] = ()
) -> tuple[ProfileUse, ...]:
    """The last profile of each rank that was over at `until_ns`, by rank; what cannot be read is left out.

    Parameters
    ----------
    profiles
        Oldest first.
    known
        What was read before, and need not be read again.
    """
    latest: dict[int, ProfileInfo] = {}
    for info in profiles:
        if info.ready and info.start_ns + info.duration_ns <= until_ns:
            latest[info.rank] = info
    read = {(one.rank, one.name): one for one in known}
    found = [read.get((info.rank, info.name)) or _use(info) for _, info in sorted(latest.items())]
    return tuple(one for one in found if one is not None)


def _use(info: ProfileInfo) -> ProfileUse | None:
    try:
        facts = read_json(info.path / USE, _MAX_BYTES)
        return ProfileUse(
            rank=info.rank,
            name=info.name,
            first_step=info.first_step,
            last_step=info.last_step,
            steps=_count(facts, "steps"),
            steps_s=_seconds(facts, "step_us"),
            kernels=_count(facts, "kernels"),
            kernel_median_s=_seconds(facts, "kernel_median_us"),
            busy_s=_seconds(facts, "busy_us"),
            operators=_count(facts, "operators"),
            waits=tuple(_wait(row) for row in list(facts["waits"])[:_MAX_WAITS]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _wait(row: dict[str, Any]) -> Wait:
    return Wait(
        cause=str(row["cause"])[:_MAX_CHARS],
        place=str(row["place"])[:_MAX_CHARS],
        calls=_count(row, "calls"),
        waited_s=_seconds(row, "wait_us"),
        lost_s=_seconds(row, "lost_us"),
    )


def _count(facts: dict[str, Any], name: str) -> int:
    value = facts[name]
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{name} is no count")
    return value


def _seconds(facts: dict[str, Any], name: str) -> float:
    value = float_in(facts[name])
    if value is None or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is no time")
    return value / 1e6
