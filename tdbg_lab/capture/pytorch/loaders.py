"""Data loaders of PyTorch that training takes batches from: how they are set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.pytorch.instances import instances_of
from tdbg_lab.store import RankWriter
from tdbg_lab.store.loaders import LoaderFacts, write_loaders

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["LoaderWatch"]

_LOOKS = (1, 10, 100)
"""Completed steps after which to look, until something is found."""


class LoaderWatch:
    """Looks once for the loaders that are being iterated over.

    A loader says nothing of its use, so it is searched for among all objects of the process: tens of
    milliseconds, at most three times in a run.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._left = list(_LOOKS)
        self._first = engine.step

    def __bool__(self) -> bool:
        return bool(self._left)

    def at_step_end(self) -> None:
        """Look, when it is time."""
        if self._left and self._engine.step - self._first >= self._left[0]:
            self._left.pop(0)
            self._engine.guard.run("data loaders", self._look)

    def _look(self) -> None:
        module = sys.modules.get("torch.utils.data.dataloader")
        writer = self._engine.writer
        if module is None or not isinstance(writer, RankWriter):
            return
        kind = module._BaseDataLoaderIter  # noqa: SLF001 - a loader in use is one that has such an iterator
        running = instances_of(kind)
        if running:
            self._left.clear()
            write_loaders(writer.path, [_facts(one) for one in running])


def _facts(iterator: Any) -> LoaderFacts:
    given = vars(iterator)
    data = given.get("_dataset")
    sampler = given.get("_index_sampler")
    return LoaderFacts(
        kind=type(data).__name__,
        num_workers=int(given.get("_num_workers") or 0),
        batch_size=getattr(sampler, "batch_size", None),
        pin_memory=bool(given.get("_pin_memory")),
        prefetch_factor=given.get("_prefetch_factor"),
        persistent_workers=bool(given.get("_persistent_workers")),
        rows=_length(data),
    )


def _length(data: Any) -> int | None:
    try:
        return len(data)
    except Exception:  # noqa: BLE001 - the program's own code; most streams have no length
        return None
