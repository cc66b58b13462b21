"""What the training and its machines did, beside what was recorded of tensors: phases, load, loaders."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tdbg_lab.rules.sample_log import SampleLog
from tdbg_lab.rules.span_log import SpanLog
from tdbg_lab.store.loaders import read_loaders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tdbg_lab.store.loaders import LoaderFacts

__all__ = ["Activity"]

_LOADERS_S = 5.0


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
        self._looked_s = -_LOADERS_S

    @property
    def loaders(self) -> tuple[LoaderFacts, ...]:
        """Data loaders that training took batches from, by rank."""
        return self._loaders

    def move_to(self, now_ns: int) -> None:
        """Everything up to `now_ns` was put in."""
        self.spans.settle()
        self.memo.clear()
        self.now_ns = max(now_ns, self.now_ns)
        if self._clock() - self._looked_s >= _LOADERS_S or not self._loaders:
            self._looked_s = self._clock()
            self._loaders = tuple(read_loaders(self._path))
