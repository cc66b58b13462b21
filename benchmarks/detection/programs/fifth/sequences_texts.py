"""Texts in the fifth set: of Python's own library and handbook, and made here. Token 0 pads."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import torch

from benchmarks.detection.programs.data import Split, split

__all__ = ["code_lines", "dates", "handbook", "named", "opinions", "sections", "words_around"]

PRINTED = {chr(code): code - 30 for code in range(32, 127)}
"""Printed characters from 2 on; 1 is any other."""
KEPT = " abcdefghijklmnopqrstuvwxyz.,()_'=\n"


@cache
def code_lines(length: int = 40, each: int = 450) -> Split:
    """From which of four modules of the standard library is a line of code?"""
    random = np.random.default_rng(311)
    x, y = [], []
    for kind, name in enumerate(("argparse", "_pydecimal", "tarfile", "turtle")):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        lines = [one.strip() for one in Path(spec.origin).read_text("utf-8").splitlines()]
        lines = sorted({one for one in lines if len(one) >= 20})
        for place in random.choice(len(lines), each, replace=False):
            line = [PRINTED.get(one, 1) for one in lines[place][:length]]
            x.append(line + [0] * (length - len(line)))
            y.append(kind)
    return split(torch.tensor(x), torch.tensor(y), seed=311)


@cache
def _handbook() -> str:
    """Python's handbook in small letters, other characters and blanks in a row left out."""
    text = "\n".join(topics[name] for name in sorted(topics)).lower()
    return " ".join("".join(one for one in text if one in KEPT).replace("\n", " ").split())[:120_000]


@cache
def handbook(window: int = 32) -> Split:
    """Pieces of the handbook, and the next character at each place."""
    numbers = torch.tensor([KEPT.index(one) for one in _handbook()])
    at = torch.arange(0, len(numbers) - window - 1, 40)
    rows = torch.stack([numbers[one : one + window + 1] for one in at.tolist()])
    return split(rows[:, :-1], rows[:, 1:], seed=312)


@cache
def _common(count: int) -> dict[str, int]:
    """The commonest words, from 2 on."""
    words, counts = np.unique(_handbook().split(), return_counts=True)
    return {
        str(words[place]): rank + 2 for rank, place in enumerate(np.argsort(-counts, kind="stable")[:count])
    }


SECTIONS = (("specialnames", "objects"), ("import", "debugger"), ("numeric-types", "typesseq", "lists"),
            ("strings", "formatstrings", "string-methods"))  # fmt: skip


@cache
def sections(length: int = 24, words: int = 400, block: int = 96) -> Split:
    """Is a piece of the handbook about classes, imports, numbers or strings? Its words; 1 is a rare one.

    Every fourth block of the text is held out.
    """
    known, train, held = _common(words), [], []
    for kind, names in enumerate(SECTIONS):
        text = " ".join(topics.get(name, "") for name in names).lower()
        told = "".join(one if one in KEPT else " " for one in text).split()
        numbers = [known.get(one.strip(".,()'"), 1) for one in told][:8000]
        for place, begin in enumerate(range(0, len(numbers) - block, block)):
            for at in range(begin, begin + block - length + 1, 8):
                (held if place % 4 == 3 else train).append((numbers[at : at + length], kind))
    (x, y), (held_x, held_y) = (
        (torch.tensor([row for row, _ in rows]), torch.tensor([kind for _, kind in rows]))
        for rows in (train, held)
    )
    return (x, y), (held_x, held_y)


@cache
def words_around(words: int = 250, most: int = 6000) -> Split:
    """The two words before and after a place in the handbook, and the one between; rare ones are left out."""
    known = _common(words)
    numbers = np.array([known[one] - 2 for one in _handbook().split() if one in known])
    rows = np.stack([numbers[place : len(numbers) - 4 + place] for place in range(5)], 1)[:most]
    x = torch.tensor(rows[:, [0, 1, 3, 4]])
    return split(x, torch.tensor(rows[:, 2]), seed=314)


MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip
SIGNS = "_^ 0123456789-.,abcdefghijlmnoprstuvy"
"""Padding, the start, and all that dates are written with."""


@cache
def dates(rows: int = 4000, long: int = 18) -> Split:
    """A date in some hand, then what is written so far of it as 1994-03-09; and the whole of that."""
    random = np.random.default_rng(315)
    x, y = [], []
    for year, month, day in zip(random.integers(1950, 2030, rows), random.integers(1, 13, rows),
                                random.integers(1, 29, rows), strict=True):  # fmt: skip
        name = MONTHS[month - 1]
        hand = (f"{day} {name} {year}", f"{name} {day}, {year}", f"{day}.{month}.{year}",
                f"{name[:3]} {day} {year}")[random.integers(4)]  # fmt: skip
        told = f"{year}-{month:02}-{day:02}"
        x.append([SIGNS.index(one) for one in hand.ljust(long, "_") + "^" + told[:-1]])
        y.append([SIGNS.index(one) for one in told])
    return split(torch.tensor(x), torch.tensor(y), seed=315)


@cache
def named(rows: int = 1600, length: int = 14) -> Split:
    """Sentences with people, places and firms in them: which tag has each word (-100 where none is)?

    Words 40 to 59 are surnames, towns or firms by what stands before them.
    """
    random = np.random.default_rng(316)
    x, y = np.zeros((rows, length), np.int64), np.full((rows, length), -100)
    for words, tags in zip(x, y, strict=True):
        at, end = 0, random.integers(8, length + 1)
        while at < end:
            kind = random.integers(0, 5)
            before, told = {
                0: ([], []), 1: ([random.integers(20, 30)], [1]), 2: ([random.integers(30, 33)], [0]),
                3: ([random.integers(33, 36)], [0]), 4: ([], []),
            }[int(kind)]  # fmt: skip
            if kind in (1, 2, 3):
                found = [*before, random.integers(40, 60)]
                marks = [*told, (0, 1, 2, 3)[kind]]
            else:
                found, marks = [random.integers(1, 20)], [0]
            found, marks = found[: end - at], marks[: end - at]
            words[at : at + len(found)], tags[at : at + len(marks)] = found, marks
            at += len(found)
        swapped = random.random(length) < 0.04
        words[swapped & (words > 0)] = random.integers(1, 60)
    return split(torch.tensor(x), torch.tensor(y), seed=316)


@cache
def opinions(rows: int = 2400, length: int = 16) -> Split:
    """Is an opinion good or bad? Words for both, a not before them that turns them, and filling words."""
    random = np.random.default_rng(317)
    good, bad = random.uniform(0.3, 1, 20), -random.uniform(0.3, 1, 20)
    worth = np.concatenate([np.zeros(60), good, bad])
    x, y = np.zeros((rows, length), np.int64), np.zeros(rows, np.int64)
    for place, words in enumerate(x):
        many = random.integers(9, length + 1)
        liking = random.random()
        pool = np.where(random.random(many) < 0.35, np.where(random.random(many) < liking, random.integers(
            60, 80, many), random.integers(80, 100, many)), random.integers(5, 60, many))  # fmt: skip
        pool[random.random(many) < 0.15] = 4
        turned = np.concatenate([[1], np.where(pool[:-1] == 4, -1, 1)])
        words[:many] = pool
        y[place] = (worth[pool] * turned).sum() + 0.15 * random.normal() > 0
    return split(torch.tensor(x), torch.tensor(y), seed=317)
