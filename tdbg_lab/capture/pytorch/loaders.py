"""Data loaders of PyTorch that training takes batches from: how they are set.

A loader says nothing of its use; so the function that hands out its batches is replaced by one that
calls it and tells, as long as somebody listens.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from torch.utils.data.dataloader import _BaseDataLoaderIter

from tdbg_lab.listening import forget, listen
from tdbg_lab.store import RankWriter
from tdbg_lab.store.loaders import LoaderFacts, write_loaders

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.listening import Listeners

__all__ = ["LoaderWatch", "forget_batches", "hear_of_batches"]

_MAX_LOADERS = 64
_GIVES_A_BATCH = (_BaseDataLoaderIter, "__next__")


class _Listener(Protocol):
    def note(self, iterator: Any) -> None:
        """An iterator over a loader has given a batch."""


def hear_of_batches(listener: _Listener) -> None:
    """Tell `listener`, which is held weakly, of each batch that a loader gives from now on."""
    listen(*_GIVES_A_BATCH, listener, _telling)


def forget_batches(listener: _Listener) -> None:
    """Tell it no longer. Idempotent."""
    forget(*_GIVES_A_BATCH, listener)


class LoaderWatch:
    """Writes once how the loaders are set that batches were taken from.

    Attributes
    ----------
    seen
        The iterators over loaders that gave a batch, by their ``id``.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seen: dict[int, ref[Any]] = {}
        if isinstance(engine.writer, RankWriter):
            hear_of_batches(self)

    def note(self, iterator: Any) -> None:
        """An iterator over a loader has given a batch."""
        if id(iterator) not in self.seen and len(self.seen) < _MAX_LOADERS:
            self.seen[id(iterator)] = ref(iterator)

    def at_step_end(self) -> None:
        """Write what was seen, and look away."""
        self._engine.guard.run("data loaders", self._write)

    def _write(self) -> None:
        running = [one for weak in self.seen.values() if (one := weak()) is not None]
        self.seen.clear()
        if running and isinstance(self._engine.writer, RankWriter):
            self.detach()
            write_loaders(self._engine.writer.path, [_facts(one) for one in running])

    def detach(self) -> None:
        """Look away. Idempotent."""
        forget_batches(self)


def _telling(original: Callable[..., Any], listeners: Listeners[_Listener]) -> Callable[..., Any]:
    @functools.wraps(original)
    def tell(iterator: Any) -> Any:
        batch = original(iterator)
        for one in listeners:
            one.note(iterator)
        return batch

    return tell


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
