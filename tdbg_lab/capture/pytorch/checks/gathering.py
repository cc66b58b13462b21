"""Whether a program gathers its own data: it trains on what came of what its model did.

It shows the model a few rows at a time without gradients, new ones each time, which come again in training.
An evaluation shows rows that training never sees, or the same ones each time. Or it trains on whole episodes:
row after row, with gradients, until one is over, be it sooner or later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

from tdbg_lab.capture.pytorch.values import raw_array, readable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.notes import Notes

__all__ = ["GatherWatch"]

_FACT = "gathers"
_FEW_ROWS = 64
"""Rows that are shown at a time, at most: of as many environments."""
_LARGER = 4
"""A batch has so many times more rows than are shown at a time, at least, if it may be of the same step:
targets that the model itself gives are of as many rows."""
_OF_EPISODES = 3
"""Axes of a batch whose rows are those of several environments, or episodes, at each of their steps."""
_REMEMBERED = 4096
"""Rows that are remembered."""
_LOOKED_AT = 512
"""Rows of a batch of training that are looked at."""
_CERTAIN = 8
"""Different rows that came again: an example that is drawn now and then is one, or a few."""
_TURNS = 3
"""Steps before which such rows were shown, after which one looks no longer."""
_IN_VAIN = 64
"""Batches without such rows after which one looks no longer."""
_EPISODES = 5
"""Different numbers of single rows before a step: a batch taken row by row has one, and its last another."""
_PROVEN = 64
"""Steps before which rows were shown, new ones each time, after which one knows and looks no longer."""
_VALUES = 64
"""Values of a row that tell it from others."""
_NEW = 0.75
"""Share of the rows that must be new when they are shown: those of an evaluation come each time."""


class GatherWatch:
    """Notes before how many steps, `_TURNS` at most, rows were shown that were then trained on: ``gathers``.

    Of whole episodes, and of batches of many rows that were shown by few at a time, that is as many.
    """

    __slots__ = (
        "_again", "_by_few", "_engine", "_found", "_fresh", "_left", "_lengths", "_notes", "_rows", "_shown",
        "_shown_last", "_times", "active",
    )  # fmt: skip

    def __init__(self, engine: Engine, notes: Notes) -> None:
        self._engine = engine
        self._notes = notes
        self.active = True
        """Whether anything may be found out still."""
        self._rows: dict[int, tuple[int, int]] = {}
        """Before which step a row was shown first, and with how many others, by its digest."""
        self._fresh = False
        """Whether rows were shown since the last ones were found."""
        self._shown = self._again = 0
        """Rows shown of which it is known whether they are new, and those that are not."""
        self._found: dict[int, int] = {}
        """Rows that came in training, and before which step they were shown."""
        self._by_few: set[int] = set()
        """Those of them that were shown by few at a time."""
        self._times = 0
        """Steps before which rows were shown."""
        self._shown_last = -1
        """The last of them."""
        self._left = _IN_VAIN
        self._lengths: set[int] = set()
        """Numbers of single rows before a step."""

    def shows(self, inputs: Sequence[torch.Tensor]) -> None:
        """A root is called without gradients."""
        first = inputs[0] if inputs else None
        if first is None or not (first.is_floating_point() and first.ndim and readable(first)):
            return
        rows = first if first.ndim > 1 else first[None]
        if not 0 < len(rows) <= _FEW_ROWS:
            return
        now = (self._engine.step, len(rows))
        if now[0] != self._shown_last:
            self._shown_last = now[0]
            self._times += 1
        for digest in _digests(rows):
            known = self._rows.get(digest)
            if known is None and len(self._rows) >= _REMEMBERED:
                continue
            self._shown += 1
            if known is None:
                self._rows[digest] = now
                self._fresh = True
            else:
                self._again += known[0] != now[0]
        if self._shown > _CERTAIN and self._shown - self._again < _NEW * self._shown:
            self._notes.clear(_FACT)
            self._end()

    def trains(self, inputs: Sequence[torch.Tensor]) -> None:
        """A root is called with gradients; not every call must be told of."""
        first = inputs[0] if inputs and self._fresh else None
        if first is None or not (first.is_floating_point() and first.ndim > 1 and readable(first)):
            return
        rows = first.flatten(0, 1) if first.ndim == _OF_EPISODES else first
        if not self._come_again(rows):
            self._left -= 1
        elif len(self._found) >= _CERTAIN:
            self._fresh = False
            certain = len(self._by_few) >= _CERTAIN
            turns = _TURNS if certain else min(len(set(self._found.values())), _TURNS)
            self._notes.set(_FACT, float(turns))
            if certain and self._times >= _PROVEN:
                self._end()
        if not self._left and not self._notes.value(_FACT):
            self._end()

    def _come_again(self, rows: torch.Tensor) -> bool:
        """Whether some of the rows of a batch were shown."""
        step, found = self._engine.step, False
        for digest in _digests(rows[:: -(-len(rows) // _LOOKED_AT) or 1]):
            known = self._rows.get(digest)
            if known is None:
                continue
            by_few = _LARGER * known[1] <= len(rows)
            if by_few or known[0] < step:
                self._found[digest] = known[0]
                found = True
            if by_few:
                self._by_few.add(digest)
        return found

    def acted(self, rows: int) -> None:
        """A step follows on so many calls with gradients, each of a single row."""
        if len(self._lengths) < _EPISODES:
            self._lengths.add(rows)
            if len(self._lengths) == _EPISODES:
                self._notes.set(_FACT, float(_TURNS))
                self._end()

    def _end(self) -> None:
        self.active = self._fresh = False
        self._rows, self._found, self._by_few = {}, {}, set()


def _digests(rows: torch.Tensor) -> list[int]:
    """A checksum of each row, of values that are evenly spread over it."""
    flat = rows.detach().flatten(1)
    values = raw_array(flat[:, :: -(-flat.shape[1] // _VALUES) or 1])
    size = values.shape[1] * values.itemsize
    whole = values.tobytes()
    return [crc32(whole[start : start + size]) for start in range(0, len(whole), size)] if size else []
