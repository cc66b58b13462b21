"""Every program there is, and in which set it is: that is declared here and nowhere else.

All programs of a task, healthy and faulty, are in the same set, so that no rule was tuned on a network or on
data it is reported on. A set is held out as long as no rule was asked about its programs; once its misses
were looked at it moves down in `SETS_OF_PROGRAMS`, and new programs have to be written to be held out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.detection.crossed import crossing
from benchmarks.detection.program import Program, Task
from benchmarks.detection.programs import boosting, conv, dense, generative, keras_nets, sequence, tuned
from benchmarks.detection.programs.eighth import attention as minded
from benchmarks.detection.programs.eighth import boosting as summed
from benchmarks.detection.programs.eighth import keras_nets as stacked
from benchmarks.detection.programs.eighth import pairs as weighed
from benchmarks.detection.programs.eighth import pictures as sketched
from benchmarks.detection.programs.eighth import sequences as tracked
from benchmarks.detection.programs.eighth import tables as tallied
from benchmarks.detection.programs.eighth import ways as mingled
from benchmarks.detection.programs.eighth import ways_games as rehearsed
from benchmarks.detection.programs.eleventh import attention as noticed
from benchmarks.detection.programs.eleventh import boosting as budded
from benchmarks.detection.programs.eleventh import games as gambled
from benchmarks.detection.programs.eleventh import keras_nets as assembled
from benchmarks.detection.programs.eleventh import pairs as suited
from benchmarks.detection.programs.eleventh import pictures as printed
from benchmarks.detection.programs.eleventh import sequences as timed
from benchmarks.detection.programs.eleventh import tables as registered
from benchmarks.detection.programs.eleventh import tuning as resumed
from benchmarks.detection.programs.eleventh import ways as woven
from benchmarks.detection.programs.fifth import frameworks as borrowed
from benchmarks.detection.programs.fifth import pairs as compared
from benchmarks.detection.programs.fifth import pictures as painted
from benchmarks.detection.programs.fifth import sequences as followed
from benchmarks.detection.programs.fifth import sequences_attention as attended
from benchmarks.detection.programs.fifth import tables as counted
from benchmarks.detection.programs.fifth import ways_games as played
from benchmarks.detection.programs.fifth import ways_precision as halved
from benchmarks.detection.programs.fourth import frameworks as brought
from benchmarks.detection.programs.fourth import lessons, players
from benchmarks.detection.programs.fourth import makers as made
from benchmarks.detection.programs.fourth import pictures as shown
from benchmarks.detection.programs.fourth import rows as heard
from benchmarks.detection.programs.fourth import tables as asked
from benchmarks.detection.programs.held import pictures, sequences, tabular, trees
from benchmarks.detection.programs.ninth import attention as pondered
from benchmarks.detection.programs.ninth import boosting as raised
from benchmarks.detection.programs.ninth import games as wagered
from benchmarks.detection.programs.ninth import keras_nets as piled
from benchmarks.detection.programs.ninth import pairs as chosen
from benchmarks.detection.programs.ninth import pictures as rendered
from benchmarks.detection.programs.ninth import sequences as sequenced
from benchmarks.detection.programs.ninth import tables as tabulated
from benchmarks.detection.programs.ninth import tuning as refined
from benchmarks.detection.programs.ninth import ways as blended
from benchmarks.detection.programs.second import others, pairs, rows, tables
from benchmarks.detection.programs.second import pictures as drawn
from benchmarks.detection.programs.seventh import attention as attentive
from benchmarks.detection.programs.seventh import boosting as grown
from benchmarks.detection.programs.seventh import keras_nets as layered
from benchmarks.detection.programs.seventh import pairs as likened
from benchmarks.detection.programs.seventh import pictures as imaged
from benchmarks.detection.programs.seventh import pictures_tuning as retrained
from benchmarks.detection.programs.seventh import sequences as recalled
from benchmarks.detection.programs.seventh import tables as listed
from benchmarks.detection.programs.seventh import ways as varied
from benchmarks.detection.programs.seventh import ways_games as contested
from benchmarks.detection.programs.sixth import attention as heeded
from benchmarks.detection.programs.sixth import boosting as boosted
from benchmarks.detection.programs.sixth import keras_nets as fitted
from benchmarks.detection.programs.sixth import pairs as matched
from benchmarks.detection.programs.sixth import pictures as pictured
from benchmarks.detection.programs.sixth import sequences as traced
from benchmarks.detection.programs.sixth import tables as tabled
from benchmarks.detection.programs.sixth import tuning as adapted
from benchmarks.detection.programs.sixth import ways_games as opposed
from benchmarks.detection.programs.sixth import ways_precision as rounded
from benchmarks.detection.programs.sixth import ways_tasks as shared
from benchmarks.detection.programs.tenth import attention as queried
from benchmarks.detection.programs.tenth import boosting as pruned
from benchmarks.detection.programs.tenth import boosting_asked as balanced
from benchmarks.detection.programs.tenth import games as staked
from benchmarks.detection.programs.tenth import keras_nets as compiled
from benchmarks.detection.programs.tenth import pairs as coupled
from benchmarks.detection.programs.tenth import pictures as shaded
from benchmarks.detection.programs.tenth import sequences as unrolled
from benchmarks.detection.programs.tenth import tables as charted
from benchmarks.detection.programs.tenth import tuning as transferred
from benchmarks.detection.programs.tenth import ways as combined
from benchmarks.detection.programs.third import frameworks, makers
from benchmarks.detection.programs.third import pictures as looked_at
from benchmarks.detection.programs.third import rows as read
from benchmarks.detection.programs.third import tables as told
from benchmarks.detection.programs.twelfth import attention as regarded
from benchmarks.detection.programs.twelfth import boosting as sprouted
from benchmarks.detection.programs.twelfth import games as bargained
from benchmarks.detection.programs.twelfth import keras_nets as erected
from benchmarks.detection.programs.twelfth import pairs as befriended
from benchmarks.detection.programs.twelfth import pictures as etched
from benchmarks.detection.programs.twelfth import sequences as paced
from benchmarks.detection.programs.twelfth import tables as filed
from benchmarks.detection.programs.twelfth import tuning as retuned
from benchmarks.detection.programs.twelfth import ways as merged

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

__all__ = ["HELD_OUT", "SETS_OF_PROGRAMS", "SetOfPrograms", "find", "programs", "tasks"]


@dataclass(frozen=True)
class SetOfPrograms:
    """Programs that are reported together."""

    title: str
    purpose: str
    """What its figures are good for: a clause."""
    seeds: int = 1
    """How many seeds each of them is trained with."""


def _once_held_out(which: str, report: str = "in an earlier report", seeds: int = 2) -> SetOfPrograms:
    return SetOfPrograms(
        f"Programs of the {which} held-out set",
        f"were held out {report}; their misses and false alarms were looked at since, and rules mended.",
        seeds,
    )


def _once_tuned_on(which: str) -> SetOfPrograms:
    return SetOfPrograms(
        f"The tuned half of the {which} set",
        f"rules were tuned on them before the {which} held-out set was asked about.",
        seeds=2,
    )


HELD_OUT = "held_out"
SETS_OF_PROGRAMS = {
    HELD_OUT: SetOfPrograms(
        "Held-out programs",
        "other data, networks, losses and schedules than those of the earlier sets; written by people who "
        "had not read the rules; faults of the kinds that the rules are to find. Tasks of each family took "
        "turns in being tuned on or held out. They were asked about once, and what is mended after that "
        "does not change their figures.",
        seeds=2,
    ),
    "twelfth_tuned": SetOfPrograms(
        "The tuned half of the twelfth set",
        "tasks of each family took turns in being tuned on or held out; these are the ones to tune on.",
        seeds=2,
    ),
    "held_out_eleventh": _once_held_out("eleventh", "in the last report"),
    "eleventh_tuned": _once_tuned_on("eleventh"),
    "held_out_tenth": _once_held_out("tenth"),
    "tenth_tuned": _once_tuned_on("tenth"),
    "held_out_ninth": _once_held_out("ninth"),
    "ninth_tuned": _once_tuned_on("ninth"),
    "held_out_eighth": _once_held_out("eighth"),
    "eighth_tuned": _once_tuned_on("eighth"),
    "held_out_seventh": _once_held_out("seventh"),
    "seventh_tuned": _once_tuned_on("seventh"),
    "held_out_sixth": _once_held_out("sixth"),
    "sixth_tuned": _once_tuned_on("sixth"),
    "held_out_fifth": _once_held_out("fifth"),
    "fifth_tuned": _once_tuned_on("fifth"),
    "held_out_fourth": _once_held_out("fourth"),
    "held_out_third": _once_held_out("third"),
    "held_out_second": _once_held_out("second", seeds=1),
    "held_out_before": SetOfPrograms(
        "Programs held out first",
        "were the held-out ones of a still earlier report; their misses were looked at since.",
    ),
    "seen": SetOfPrograms(
        "Programs seen since",
        "only reported at first; their misses were looked at and rules mended, so they count as tuned on.",
    ),
    "tuned": SetOfPrograms("Tuned programs", "rules and thresholds were made with them."),
}
"""By name, the ones to go by first. A set may be empty: until the next programs to hold out are written."""


def tasks() -> list[Task]:
    """All tasks, each with its set."""
    return [
        *_turns("tuned", "seen", dense, conv, sequence, generative, tuned, boosting, keras_nets),
        *_whole("held_out_before", tabular, pictures, sequences, trees),
        *_whole("held_out_second", tables, drawn, rows, pairs, others),
        *_whole("held_out_third", told, looked_at, read, makers, frameworks),
        *_whole("held_out_fourth", asked, lessons, shown, heard, made, players, brought),
        *_turns(
            "fifth_tuned",
            "held_out_fifth",
            *(counted, painted, borrowed, followed, attended, compared, halved, played),
        ),
        *_turns(
            "sixth_tuned",
            "held_out_sixth",
            *(tabled, pictured, adapted, boosted, fitted),
            *(traced, heeded, matched, opposed, rounded, shared),
        ),
        *_turns(
            "seventh_tuned",
            "held_out_seventh",
            *(listed, imaged, retrained, grown, layered),
            *(recalled, attentive, likened, contested, varied),
        ),
        *_turns(
            "eighth_tuned",
            "held_out_eighth",
            *(tallied, sketched, summed, stacked),
            *(tracked, minded, weighed, mingled, rehearsed),
        ),
        *_turns(
            "ninth_tuned",
            "held_out_ninth",
            *(tabulated, raised, refined),
            *(rendered, piled, chosen, wagered),
            *(sequenced, pondered, blended),
        ),
        *_turns(
            "tenth_tuned",
            "held_out_tenth",
            *(charted, transferred),
            *(shaded, compiled, coupled, staked),
            *(unrolled, queried, combined),
        ),
        *_whole("tenth_tuned", pruned),
        *_whole("held_out_tenth", balanced),
        *_turns(
            "eleventh_tuned",
            "held_out_eleventh",
            *(registered, budded, resumed),
            *(timed, noticed, woven),
            *(printed, assembled, suited, gambled),
        ),
        *_turns(
            "twelfth_tuned",
            HELD_OUT,
            *(filed, sprouted, retuned),
            *(paced, regarded, merged),
            *(etched, erected, befriended, bargained),
        ),
    ]


def _turns(first: str, second: str, *rooms: ModuleType) -> Iterable[Task]:
    """Tasks of a family take turns in being of one set and of the other."""
    before: Counter[str] = Counter()
    for task in (task for room in rooms for task in room.TASKS):
        yield replace(task, half=(first, second)[before[task.family] % 2])
        before[task.family] += 1


def _whole(name: str, *rooms: ModuleType) -> Iterable[Task]:
    """All programs of some modules."""
    return (replace(task, half=name) for room in rooms for task in room.TASKS)


def programs(half: str = "", pattern: str = "") -> list[Program]:
    """Healthy ones first within each task; of one set, or whose name holds a text."""
    found = []
    for task in tasks():
        if half and task.half != half:
            continue
        found += [Program(task), *(Program(task, variant) for variant in task.variants)]
        found += [Program(task, fault=fault) for fault in task.faults]
    return [one for one in found if pattern in one.name]


def find(name: str) -> Program:
    """The program of a name, of a crossing as well.

    Raises
    ------
    KeyError
        When there is none.
    """
    return crossing(name, tasks()) or {one.name: one for one in programs(pattern=name)}[name]
