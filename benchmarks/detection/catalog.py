"""Every program there is, in three sets.

- *tuned*: rules and thresholds were made with these.
- *seen*: was only reported at first. What was missed in it has been looked at since, and rules were mended:
  it counts as tuned on.
- *held_out*: written after that, on other data, with other networks and optimizers, before any rule was asked
  about them. These are what is reported.

The first two are halves of the older programs: the tasks of a family took turns. All programs of a task,
healthy and faulty, are in the same set, so that no rule was tuned on a network or on data it is reported on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from benchmarks.detection.program import Program, Task
from benchmarks.detection.programs import boosting, conv, dense, generative, keras_nets, sequence, tuned
from benchmarks.detection.programs.held import pictures, sequences, tabular, trees

__all__ = ["HELD_OUT", "SETS_OF_PROGRAMS", "programs", "tasks"]

HALVES = ("tuned", "seen")
HELD_OUT = "held_out"
SETS_OF_PROGRAMS = (HELD_OUT, "seen", "tuned")


def tasks() -> list[Task]:
    """All tasks, each with its set."""
    seen: Counter[str] = Counter()
    found = []
    rooms = (dense, conv, sequence, generative, tuned, boosting, keras_nets)
    for task in (task for room in rooms for task in room.TASKS):
        found.append(replace(task, half=HALVES[seen[task.family] % 2]))
        seen[task.family] += 1
    fresh = (task for room in (tabular, pictures, sequences, trees) for task in room.TASKS)
    return [*found, *(replace(task, half=HELD_OUT) for task in fresh)]


def programs(half: str = "", pattern: str = "") -> list[Program]:
    """Healthy ones first within each task; of one set, or whose name holds a text."""
    found = []
    for task in tasks():
        if half and task.half != half:
            continue
        found += [Program(task), *(Program(task, variant) for variant in task.variants)]
        found += [Program(task, fault=fault) for fault in task.faults]
    return [one for one in found if pattern in one.name]
