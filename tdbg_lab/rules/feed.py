"""From what is written of a run to steps that can be checked."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from typing import TYPE_CHECKING

from tdbg_lab.rules.activity_feed import ActivityFeed
from tdbg_lab.rules.decoding import Decoder
from tdbg_lab.rules.order import known_keys
from tdbg_lab.rules.raw_values import RawValues
from tdbg_lab.rules.view import RunView
from tdbg_lab.store.attempts import attempts_stamp, rank_attempts_stamp
from tdbg_lab.store.layout import rank_path
from tdbg_lab.store.source import source_of
from tdbg_lab.store.tail import tail, tailed_ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tdbg_lab.records import Mode
    from tdbg_lab.rules.base import Needs
    from tdbg_lab.rules.decoding import Part
    from tdbg_lab.store.tail import Chunk

__all__ = ["Feed"]

log = logging.getLogger(__name__)

_INFO_S = 1.0
_HOLD_S = 0.3


class Feed:
    """Follows a run and puts it into a `RunView`, step by step.

    A step can be checked once a later one was begun, or when nothing more came for a moment. What
    comes later still (another rank, a late micro-step) makes the step come again.

    Parameters
    ----------
    run_path
        Run directory.
    view
        Where it goes.
    settle_s
        Silence after which the newest step counts as complete, s.
    hold_s
        Time a step waits for what is written in the background, s.
    activity
        Follow what training and its machines did, too.
    clock
        Monotonic clock, s.
    """

    def __init__(
        self,
        run_path: Path,
        view: RunView,
        *,
        settle_s: float = 0.15,
        hold_s: float = 0.0,
        activity: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view = view
        self._settle_s = settle_s
        self._hold_s = hold_s
        self._clock = clock
        self._run_path = run_path
        self._ranks: dict[int, _Rank] = {}
        self._decoder = Decoder()
        self._pending: dict[int, list[Part]] = {}
        self._read_s: dict[int, float] = {}
        """When the last part of each pending step was read."""
        self._last_write_s = clock()
        self._refused = False
        self._source = source_of(run_path)
        self._info_s = -math.inf
        self._look_at_info()
        self._attempts_stamp = attempts_stamp(run_path)
        self._activity = ActivityFeed(run_path) if activity else None
        view.activity = None if self._activity is None else self._activity.activity

    @classmethod
    def of(cls, run_path: Path, needs: Iterable[Needs]) -> Feed:
        """Follow a run for rules that need all this."""
        wanted = list(needs)
        view = RunView(
            max([1, *(one.steps for one in wanted)]),
            per_rank=any(one.per_rank for one in wanted),
            raw=RawValues(run_path) if any(one.raw for one in wanted) else None,
        )
        view.expect(known_keys(run_path))
        hold_s = _HOLD_S if any(one.raw for one in wanted) else 0.0
        return cls(run_path, view, hold_s=hold_s, activity=any(one.activity for one in wanted))

    @property
    def view(self) -> RunView:
        """Where what is read goes."""
        return self._view

    @property
    def quiet_s(self) -> float:
        """Time since something new was read, or since the feed was made, s."""
        return self._clock() - self._last_write_s

    @property
    def waiting(self) -> bool:
        """Whether a step waits for the moment of silence."""
        return bool(self._pending)

    def steps(self, *, last: bool = False) -> Iterator[int]:
        """Read what is new; give each step as soon as the view ends with it.

        Who takes no more of them is given the others by the next call.

        Parameters
        ----------
        last
            Nothing more will come: give the newest step, too.
        """
        self._look_at_info()
        self._look_for_ranks()
        while (part := self._next()) is not None:
            self._last_write_s = self._read_s[part.step] = self._clock()
            self._pending.setdefault(part.step, []).append(part)
            for step in sorted(step for step in self._pending if step != part.step):
                if last or not self._is_held(step):
                    yield self._give(step)
        quiet = self._clock() - self._last_write_s >= self._settle_s
        newest = max(self._read_s, key=self._read_s.__getitem__, default=-1)
        due = [s for s in sorted(self._pending) if last or (not self._is_held(s) and (quiet or s != newest))]
        for step in due:
            yield self._give(step, final=last and step == due[-1])
        if last and not due and self._finish_activity():
            yield self._view.step  # once more, with what training did after it was given

    def _is_held(self, step: int) -> bool:
        """Whether raw values of a step may still be on their way: they are written in the background."""
        return self._clock() - self._read_s[step] < self._hold_s

    def _look_at_info(self) -> None:
        """Read what the run says about itself, at most once a second; broken words leave the old ones."""
        if self._clock() - self._info_s < _INFO_S:
            return
        self._info_s = self._clock()
        with contextlib.suppress(OSError, ValueError):
            self._view.info = self._source.info()

    def _look_for_ranks(self) -> None:
        for number in tailed_ranks(self._run_path):
            if number not in self._ranks:
                self._ranks[number] = _Rank(self._run_path, number, self._decode)

    def _next(self) -> Part | None:
        """What comes next, of the rank that is furthest behind: ranks stay side by side.

        Nothing more once the run goes on from a checkpoint: what was followed so far is not what it is now.
        """
        for rank in self._ranks.values():
            rank.look()
        lowest = rank_path(self._run_path, min(self._ranks, default=0))
        if rank_attempts_stamp(lowest) != self._attempts_stamp:
            return None
        ahead = [rank.ahead for rank in self._ranks.values() if rank.ahead]
        return min(ahead, key=lambda parts: parts[0].step).popleft() if ahead else None

    def _finish_activity(self) -> bool:
        """Read what is left of phases and load; True when a step is to be checked again for it."""
        if self._activity is None or not self._activity.finish():
            return False
        if self._activity.is_foreign and self._view.step < 0:  # a profile without a single tensor
            steps = self._view.phase_times().step
            self._view.step = int(steps[-1]) if len(steps) else 0
        return self._view.step >= 0

    def _give(self, step: int, *, final: bool = False) -> int:
        self._read_s.pop(step, None)
        modes: dict[Mode, list[Part]] = {}
        written_ns: dict[int, int] = {}
        for part in self._pending.pop(step):
            modes.setdefault(part.mode, []).append(part)
            written_ns[part.rank] = max(part.time_ns, written_ns.get(part.rank, 0))
        for mode, parts in modes.items():
            newest = max(part.time_ns for part in parts)
            joined = self._decoder.join(parts, self._view.places)
            ranks = [part.rank for part in joined]
            self._view.put(mode, step, newest, [(part.keys, part.block) for part in joined], ranks)
        self._view.step = step
        if final:
            self._finish_activity()
        elif self._activity is not None:
            self._activity.move_to(written_ns)
        return step

    def _decode(self, chunk: Chunk) -> list[Part]:
        try:
            return self._decoder.parts(chunk)
        except (ValueError, KeyError, TypeError) as error:  # a run directory is untrusted
            if not self._refused:
                log.warning("A batch of statistics is left out: %s", error)
            self._refused = True
            return []


class _Rank:
    """What one rank writes."""

    def __init__(self, run_path: Path, number: int, decode: Callable[[Chunk], list[Part]]) -> None:
        self._tail = tail(run_path, rank=number)
        self._number = number
        self._decode = decode
        self.ahead: deque[Part] = deque()
        """The next batch, read but not used."""

    def look(self) -> None:
        """Have the next batch at hand, if there is one."""
        while not self.ahead:
            chunk = next(self._tail)
            if chunk is None:
                return
            self.ahead.extend(self._decode(chunk))
