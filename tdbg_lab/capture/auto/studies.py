"""Sees what the trials of a search are about and how they end: Optuna and Keras Tuner tell nobody."""

from __future__ import annotations

import sys
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["StudyFinder", "TunerFinder", "suggested"]


class _SearchFinder:
    """Puts itself around a function of a class, until `stop`."""

    def __init__(self, watch: AutoWatch, kind: Any, name: str) -> None:
        self._watch = watch
        self._kind = kind
        self._name = name
        self._original: Callable[..., Any] | None = None

    def start(self) -> None:
        """Put it around."""
        original = self._original = vars(self._kind).get(self._name)
        if original is not None:
            setattr(self._kind, self._name, self._around(original))

    def stop(self) -> None:
        """Take it off."""
        original, self._original = self._original, None
        if original is not None:
            setattr(self._kind, self._name, original)

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What takes the place of the function."""
        raise NotImplementedError

    def followed(self, objective: Callable[..., Any], place: int = 0) -> Callable[..., Any]:
        """An objective whose trainings have its hyper-parameters, and end with what ends it.

        `place` is that of the trial among its arguments.
        """

        @wraps(objective)
        def followed(*args: Any, **kwargs: Any) -> Any:
            before = self._watch.handles(of_this_thread=True)
            try:
                with self._watch.trial(partial(suggested, *args[place : place + 1])):
                    return objective(*args, **kwargs)
            except BaseException as error:
                self._watch.guarded(self._end, before, error)
                raise

        return followed

    def _end(self, before: list[Any], error: BaseException) -> None:
        for handle in self._watch.handles(of_this_thread=True):
            if all(handle is not one for one in before):
                handle.__exit__(type(error), error, None)


class StudyFinder(_SearchFinder):
    """Follows the objective of each study of Optuna."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        super().__init__(watch, sys.modules[module].Study, "optimize")  # type: ignore[attr-defined, unused-ignore]

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def optimize(study: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            return original(study, self.followed(func), *args, **kwargs)

        return optimize


class TunerFinder(_SearchFinder):
    """Follows each trial of a tuner of Keras Tuner."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        tuner: Any = sys.modules[module].BaseTuner  # type: ignore[attr-defined, unused-ignore]
        super().__init__(watch, tuner, "_run_and_update_trial")

    def _around(self, original: Callable[..., Any]) -> Callable[..., Any]:
        return self.followed(original, place=1)


def suggested(trial: Any = None) -> dict[str, Any]:
    """What was suggested to a trial so far; its storage, which may be a database, is asked."""
    try:
        return dict(trial.hyperparameters.values if hasattr(trial, "hyperparameters") else trial.params)
    except Exception:  # noqa: BLE001 - the run does without
        return {}
