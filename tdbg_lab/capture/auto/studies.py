"""Sees what the trials of an Optuna study are about, and how they end: the study keeps both to itself."""

from __future__ import annotations

import sys
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["StudyFinder", "suggested"]


class StudyFinder:
    """Puts itself around the objective of each study, until `stop`."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._study: Any = sys.modules[module].Study  # type: ignore[attr-defined, unused-ignore]
        self._original: Callable[..., Any] | None = None

    def start(self) -> None:
        """Put it around."""
        original = self._original = self._study.optimize

        @wraps(original)
        def followed(study: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            return original(study, self._followed(func), *args, **kwargs)

        self._study.optimize = followed

    def stop(self) -> None:
        """Take it off."""
        original, self._original = self._original, None
        if original is not None:
            self._study.optimize = original

    def _followed(self, objective: Callable[..., Any]) -> Callable[..., Any]:
        """An objective whose trainings have its hyper-parameters, and end with what ends it."""

        @wraps(objective)
        def followed(*args: Any, **kwargs: Any) -> Any:
            before = self._watch.handles(of_this_thread=True)
            try:
                with self._watch.trial(partial(suggested, *args[:1])):
                    return objective(*args, **kwargs)
            except BaseException as error:
                self._watch.guarded(self._end, before, error)
                raise

        return followed

    def _end(self, before: list[Any], error: BaseException) -> None:
        for handle in self._watch.handles(of_this_thread=True):
            if all(handle is not one for one in before):
                handle.__exit__(type(error), error, None)


def suggested(trial: Any = None) -> dict[str, Any]:
    """What was suggested to a trial so far; its storage, which may be a database, is asked."""
    try:
        return dict(trial.params)
    except Exception:  # noqa: BLE001 - the run does without
        return {}
