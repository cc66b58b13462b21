"""Processes that the program starts, to train in, are watched on their own."""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.origin import of_program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["ProcessFinder", "SpawnFinder", "Watched"]

_NAME = "start_processes"
"""What starts them all, ``spawn`` too. Workers that load data are started otherwise."""


@dataclass(frozen=True, slots=True)
class Watched:
    """The function that a process is started with, and how to watch what it trains there."""

    function: Callable[..., Any]
    settings: Mapping[str, Any]
    most: int

    def __call__(self, *args: Any) -> Any:
        """Call the function, watched."""
        from tdbg_lab.capture.auto.watch import AutoWatch

        with AutoWatch(self.settings, most=self.most):
            return self.function(*args)


class SpawnFinder:
    """Puts itself around ``torch.multiprocessing.start_processes``, until `stop`."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._places = [sys.modules[module], sys.modules[module.rpartition(".")[0]]]
        """Who has it: the module that defines it, and the package, perhaps not yet."""
        self._original: Callable[..., Any] | None = None
        self._around: Callable[..., Any] | None = None

    def start(self) -> None:
        """Put it around."""
        original = self._original = getattr(self._places[0], _NAME)

        @wraps(original)
        def around(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            watched = self._watch.guarded(_watched_by, self._watch, fn) if self._watch.active else None
            return original(watched or fn, *args, **kwargs)

        self._around = around
        self._replace(original, around)

    def stop(self) -> None:
        """Take it off. Idempotent."""
        if self._original is not None:
            self._replace(self._around, self._original)
            self._original = None

    def _replace(self, old: object, new: object) -> None:
        for place in self._places:
            if getattr(place, _NAME, None) is old:
                setattr(place, _NAME, new)


class ProcessFinder:
    """Puts itself around the start of each process of ``multiprocessing``, until `stop`.

    Watched is what runs a function of the program, or a class of the program with a ``run`` of its own.
    What a library runs there, to load data or as one of a pool, is left alone.
    """

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._kind: Any = sys.modules[module].BaseProcess  # type: ignore[attr-defined, unused-ignore]
        self._original: Callable[..., Any] | None = None

    def start(self) -> None:
        """Put it around."""
        original = self._original = self._kind.start

        @wraps(original)
        def start(process: Any) -> None:
            watched = self._watch.guarded(self._watched, process) if self._watch.active else None
            if watched is None:
                original(process)
                return
            process.run = watched  # before its class's own, here and in the process
            try:
                original(process)
            finally:
                vars(process).pop("run", None)

        self._kind.start = start

    def stop(self) -> None:
        """Take it off. Idempotent."""
        if self._original is not None:
            self._kind.start = self._original
            self._original = None

    def _watched(self, process: Any) -> Watched | None:
        """How the process is to run instead; None for one of a library."""
        own_run = type(process).run is not self._kind.run
        if "run" in vars(process) or not of_program(type(process) if own_run else process._target):  # noqa: SLF001
            return None
        return _watched_by(self._watch, process.run)


def _watched_by(watch: AutoWatch, function: Callable[..., Any]) -> Watched | None:
    """The function with its watch; None where a process cannot be told how to watch."""
    settings, most = watch.settings_of_processes()
    try:
        pickle.dumps(settings)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        watch.missed = f"the settings cannot be handed to the processes that it started ({error})"
        return None
    watch.has_processes = True
    return Watched(function, settings, most)
