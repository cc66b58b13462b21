"""Raw values for rules that need them: read when asked for, bounded in bytes."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.store.limits import MAX_RULE_RAW_BYTES
from tdbg_lab.store.raw import raw_header
from tdbg_lab.store.raw_index import RawIndex

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tdbg_lab.records import Mode
    from tdbg_lab.store.raw import RawFile

__all__ = ["RawValues"]

_CACHED = 64


class RawValues:
    """Raw values of a run, by tensor and step.

    Parameters
    ----------
    run_path
        Run directory.
    """

    def __init__(self, run_path: Path) -> None:
        self._index = RawIndex(run_path)
        self._cache: OrderedDict[tuple[str, int, Mode, int | None], NDArray[Any]] = OrderedDict()

    def get(self, name: str, step: int, mode: Mode, rank: int | None = None) -> NDArray[Any] | None:
        """Value at a step; several ranks and micro-steps are joined along the first axis.

        None when it was not saved, cannot be read or is larger than a rule may ask for.
        """
        slot = (name, step, mode, rank)
        if slot not in self._cache:
            value = self._read(*slot)
            if value is None:  # perhaps it is on its way
                return None
            self._cache[slot] = value
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)
        return self._cache[slot]

    def _read(self, name: str, step: int, mode: Mode, rank: int | None) -> NDArray[Any] | None:
        files = self._files(name, step, mode, rank)
        if not files and self._index.refresh():
            files = self._files(name, step, mode, rank)
        found: list[NDArray[Any]] = []
        left = MAX_RULE_RAW_BYTES
        for file in files:
            try:
                entry = raw_header(file.path)[name]
                left -= max(entry.size, 8 * math.prod(entry.shape))
                if left < 0:
                    return None
                found.append(self._index.read(file, name))
            except (OSError, ValueError, KeyError):  # gone meanwhile, or broken
                continue
        if len(found) < 2:
            return found[0] if found else None
        joinable = all(one.ndim and one.shape[1:] == found[0].shape[1:] for one in found)
        return np.concatenate(found) if joinable else found[0]

    def _files(self, name: str, step: int, mode: Mode, rank: int | None) -> list[RawFile]:
        return [
            file for file in self._index.at(step, rank) if file.mode == mode and self._index.has(file, name)
        ]
