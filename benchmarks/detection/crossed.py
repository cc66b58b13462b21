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

    from benchmarks.detection.program import Task

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
    found = {one.name: one for one in known[origin].faults}[fault]
    return Program(known[task], fault=replace(found, name=f"{fault}{_FROM}{origin}"))


def crossings(tasks: Sequence[Task], each: int) -> list[Program]:
    """Each task as it is, and with `each` faults of others of its family, in turns; always the same."""
    made = []
    for family in sorted({one.family for one in tasks}):
        chance = random.Random(family)
        own = [one for one in tasks if one.family == family]
        choice = [(fault.name, one) for one in own for fault in one.faults if fault.group != "silent"]
        chance.shuffle(choice)
        for task in own:
            made.append(Program(task))
            names = {fault.name for fault in task.faults}
            others = [(name, origin) for name, origin in choice if name not in names]
            for name, origin in others[:each]:
                choice.append(choice.pop(choice.index((name, origin))))
                made.append(_put(task, name, origin))
    return made


def _put(task: Task, fault: str, origin: Task) -> Program:
    program = crossing(f"{task.name}!{fault}{_FROM}{origin.name}", (task, origin))
    assert program is not None
    return program
