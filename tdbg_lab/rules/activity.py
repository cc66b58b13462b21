"""What the training and its machines did, beside what was recorded of tensors: phases, load, loaders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tdbg_lab.rules.sample_log import SampleLog
from tdbg_lab.rules.span_log import SpanLog
from tdbg_lab.store.loaders import read_loaders
from tdbg_lab.store.profile_use import latest_uses
from tdbg_lab.store.profiles import list_profiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tdbg_lab.store.loaders import LoaderFacts
    from tdbg_lab.store.profile_use import ProfileUse
    from tdbg_lab.store.profiles import ProfileInfo

__all__ = ["Activity"]

_LOOK_S = 5.0


class Activity:
    """Phases of training and load of its machines, as far as the checked step goes.

    It moves on about once a second of training, not with every step: `memo` keeps what was made of
    it until then.

    Parameters
    ----------
    run_path
        Run directory.
    clock
        Monotonic clock, s.
    """

    def __init__(self, run_path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.samples = SampleLog()
        self.spans = SpanLog()
        self.memo: dict[Any, Any] = {}
        """What rules made of it; emptied when it moves on."""
        self.now_ns = 0
        """How far it goes."""
        self._path = run_path
        self._clock = clock
        self._loaders: tuple[LoaderFacts, ...] = ()
        self._profiles: list[ProfileInfo] = []
        self._uses: tuple[ProfileUse, ...] = ()
        self._looked_s = -_LOOK_S

    @property
    def loaders(self) -> tuple[LoaderFacts, ...]:
        """Data loaders that training took batches from, by rank."""
        return self._loaders

    @property
    def profiles(self) -> tuple[ProfileUse, ...]:
        """How profiled steps used their device: the last profile of each rank, by rank."""
        return self._uses

    def move_to(self, now_ns: int) -> None:
        """Everything up to `now_ns` was put in."""
        self.spans.settle()
        self.memo.clear()
        self.now_ns = max(now_ns, self.now_ns)
        if self._clock() - self._looked_s >= _LOOK_S or not self._loaders:
            self._looked_s = self._clock()
            self._loaders = tuple(read_loaders(self._path))
            self._profiles = list_profiles(self._path)
        self._uses = latest_uses(self._profiles, self.now_ns, self._uses)
