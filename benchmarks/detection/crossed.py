"""Faults of a task put into others of its family: a source of faults that no rule was tuned on.

They are for developing: not every fault means something to another task, some do no harm, a few never end.
Silent errors stay where they are: their trigger is that of a step. The name of one tells both tasks,
``task!fault~origin``.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.detection.program import Program

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from benchmarks.detection.program import Fault, Task

__all__ = ["crossing", "crossings"]

_FROM = "~"


def crossing(name: str, tasks: Iterable[Task]) -> Program | None:
    """The program of such a name, or None for a name of another kind.

    Raises
    ------
    KeyError
        When there is no such task, or no such fault.
    """
    task, _, rest = name.partition("!")
    fault, crossed, origin = rest.partition(_FROM)
    if not crossed:
        return None
    known = {one.name: one for one in tasks}
    return _put({one.name: one for one in known[origin].faults}[fault], known[origin], known[task])


def crossings(tasks: Sequence[Task], each: int) -> list[Program]:
    """Each task as it is, and with `each` faults of others of its family, in turns; always the same."""
    made = []
    for family in sorted({one.family for one in tasks}):
        chance = random.Random(family)
        own = [one for one in tasks if one.family == family]
        choice = [(fault, one) for one in own for fault in one.faults if fault.group != "silent"]
        chance.shuffle(choice)
        for task in own:
            made.append(Program(task))
            names = {fault.name for fault in task.faults}
            others = [pair for pair in choice if pair[0].name not in names][:each]
            choice = [pair for pair in choice if pair not in others] + others
            made += [_put(fault, origin, task) for fault, origin in others]
    return made


def _put(fault: Fault, origin: Task, task: Task) -> Program:
    return Program(task, fault=replace(fault, name=f"{fault.name}{_FROM}{origin.name}"))
