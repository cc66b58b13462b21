"""Ranks that Lightning starts as scripts of their own are watched as the first one is."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["ScriptFinder"]

_NAMES = ("_basic_subprocess_cmd", "_hydra_subprocess_cmd")
"""What gives the command of a rank: a list, or that and the directory to start it in."""
_RUN = ["-m", "tdbg_lab.run"]


class ScriptFinder:
    """Puts ``tdbg run`` before the command by which Lightning starts the program again, until `stop`."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._module = sys.modules[module]
        self._originals: dict[str, Callable[..., Any]] = {}

    def start(self) -> None:
        """Put it before."""
        for name in _NAMES:
            original = getattr(self._module, name, None)
            if original is not None:
                self._originals[name] = original
                setattr(self._module, name, self._followed(original))

    def stop(self) -> None:
        """Give the functions back. Idempotent."""
        while self._originals:
            setattr(self._module, *self._originals.popitem())

    def _followed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def followed(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            watches = self._watch.active and self._originals  # a module that has it from another keeps it
            return (self._watch.guarded(self._watched, result) if watches else None) or result

        return followed

    def _watched(self, result: Any) -> Any:
        command, *rest = result if isinstance(result, tuple) else (result,)
        executable, *program = command
        if program[: len(_RUN)] == _RUN:
            return result
        watched = [executable, *_RUN, *_options(*self._watch.settings_of_processes()), *program]
        return (watched, *rest) if rest else watched


def _options(settings: Mapping[str, Any], most: int) -> list[str]:
    """What to give ``tdbg run`` for these settings. Files of the environment it finds by itself."""
    rules, config = settings.get("rules"), settings.get("config")
    given = {
        "--store": settings["store"],
        "--config": config if isinstance(config, str) else None,
        "--save-every": settings.get("save_every"),
        "--rules": rules if rules is None or isinstance(rules, str) else ",".join(map(str, rules)),
        "--name": settings.get("name"),
        "--trainings": most,
    }
    options = [part for name, value in given.items() if value is not None for part in (name, str(value))]
    options += [part for tag in settings.get("tags") or () for part in ("--tag", tag)]
    return [*options, *([] if settings.get("profiler", True) else ["--no-profiler"]), "--quiet"]
