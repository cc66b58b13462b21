"""Every program there is, in two halves that were set before anything was tuned.

The tasks of a family take turns: the first, third, ... of a family are tuned on, the second, fourth, ...
are only reported. All programs of a task, healthy and faulty, are in the same half, so that no rule was
tuned on a network or on data it is reported on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchmarks.detection.program import Program, Task
from benchmarks.detection.programs import boosting, conv, dense, generative, keras_nets, sequence, tuned

__all__ = ["programs", "tasks"]

HALVES = ("tuned", "reported")


def tasks() -> list[Task]:
    """All tasks, each with its half."""
    seen: Counter[str] = Counter()
    found = []
    rooms = (dense, conv, sequence, generative, tuned, boosting, keras_nets)
    for task in (task for room in rooms for task in room.TASKS):
        found.append(replace(task, half=HALVES[seen[task.family] % 2]))
        seen[task.family] += 1
    return found


def programs(half: str = "", pattern: str = "") -> list[Program]:
    """Healthy ones first within each task; of one half, or whose name holds a text."""
    found = []
    for task in tasks():
        if half and task.half != half:
            continue
        found += [Program(task), *(Program(task, variant) for variant in task.variants)]
        found += [Program(task, fault=fault) for fault in task.faults]
    return [one for one in found if pattern in one.name]
