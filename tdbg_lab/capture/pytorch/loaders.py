"""Data loaders of PyTorch that training takes batches from: how they are set.

A loader says nothing of its use; so the function that hands out its batches is replaced by one that
tells and calls it, until a step has ended in which it was called.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod, ref

from torch.utils.data.dataloader import _BaseDataLoaderIter

from tdbg_lab.store import RankWriter
from tdbg_lab.store.loaders import LoaderFacts, write_loaders

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["LoaderWatch"]

_MAX_LOADERS = 64
_MARK = "_tdbg_lab_telling"


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
        self._listener = WeakMethod(self._note, _forget)
        if isinstance(engine.writer, RankWriter):
            _listen(self._listener)

    def _note(self, iterator: Any) -> None:
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
        _forget(self._listener)


class _Telling:
    """The function in place of the original one, and whom it tells."""

    def __init__(self, original: Any) -> None:
        self.listeners: list[WeakMethod[Any]] = []
        self.original = original

        @functools.wraps(original)
        def tell(iterator: Any) -> Any:
            for weak in tuple(self.listeners):
                note = weak()
                if note is not None:
                    note(iterator)
            return original(iterator)

        self.function = tell
        setattr(tell, _MARK, self)


def _listen(listener: WeakMethod[Any]) -> None:
    """Tell `listener` of every iterator that is asked for a batch."""
    telling: _Telling | None = getattr(_BaseDataLoaderIter.__next__, _MARK, None)
    if telling is None:
        telling = _Telling(_BaseDataLoaderIter.__next__)
        _replace(telling.function)
    telling.listeners.append(listener)


def _forget(listener: WeakMethod[Any]) -> None:
    """Tell no longer who is away or gone; behind the last one the function is as it was."""
    function: Any = _BaseDataLoaderIter.__next__
    telling: _Telling | None = getattr(function, _MARK, None)
    if telling is not None and listener in telling.listeners:
        telling.listeners.remove(listener)
        if not telling.listeners and telling.function is function:  # somebody may have replaced ours
            _replace(telling.original)


def _replace(function: Any) -> None:
    _BaseDataLoaderIter.__next__ = function  # type: ignore[method-assign]


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
