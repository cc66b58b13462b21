"""The last recorded steps, in bounded memory."""

from __future__ import annotations

from itertools import dropwhile, islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tdbg_lab.records import Kind, Mode
    from tdbg_lab.rules.frame import Frame

__all__ = ["Recent"]


class Recent:
    """Frames by step, for each mode and kind of tensor by itself: kinds may be saved at different steps.

    Parameters
    ----------
    keep
        Recorded steps of each kind that are kept.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._frames: dict[tuple[Mode, Kind], dict[int, Frame]] = {}
        self._newest: dict[Mode, Frame] = {}
        """The frame that was put last."""

    @property
    def modes(self) -> list[Mode]:
        """Modes in the order of their first appearance."""
        return list(self._newest)

    def put(self, frame: Frame) -> None:
        """Add a frame, or replace the one of its step."""
        self._newest[frame.mode] = frame
        for kind in frame.kinds:
            slot = (frame.mode, kind)
            frames = self._frames.setdefault(slot, {})
            last = next(reversed(frames), -1)
            frames[frame.step] = frame
            if frame.step < last:  # a late write, or training that went back to a checkpoint
                self._frames[slot] = frames = dict(sorted(frames.items()))
            while len(frames) > self._keep:
                oldest = next(iter(frames))
                del frames[oldest if oldest != frame.step else next(reversed(frames))]

    def at(self, mode: Mode, step: int) -> Frame | None:
        """What was recorded at a step, or None."""
        newest = self._newest.get(mode)
        if newest is None or newest.step == step:
            return newest
        for (of_mode, _), frames in self._frames.items():
            if of_mode == mode and step in frames:
                return frames[step]
        return None

    def last(self, mode: Mode, kind: Kind, n: int, until: int) -> list[Frame]:
        """The last `n` frames with tensors of a kind up to step `until`, oldest first."""
        newest_first = reversed(self._frames.get((mode, kind), {}).values())
        found = list(islice(dropwhile(lambda frame: frame.step > until, newest_first), n))
        return found[::-1]
