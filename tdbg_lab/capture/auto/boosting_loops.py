"""Finds boosters that a loop of the program's own updates round by round, and follows them."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from tdbg_lab.capture.auto.fitting import boosting_callback

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch
    from tdbg_lab.capture.boosting.callback import BoostingCallback
    from tdbg_lab.errors import TrainingStopped

__all__ = ["BoostingLoopFinder"]

_ROUNDS = {"xgboost": ("update", "boost"), "lightgbm": ("update",)}
"""Methods of a ``Booster`` that make a round."""
_METRICS = {"xgboost": ("eval_set",), "lightgbm": ("eval", "eval_train", "eval_valid")}
"""Methods that tell metrics of the round before."""


class BoostingLoopFinder:
    """Puts itself around the methods of ``Booster`` that loops call, until `stop`.

    A round is recorded when the next one begins, or at the end: so its metrics, which are asked for after
    it, are among it. What the library calls itself, within ``train``, is not ours. A run ends when a loop
    updates another booster.
    """

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._module = module
        self._booster_class: Any = sys.modules[module].Booster  # type: ignore[attr-defined, unused-ignore]
        self._replaced: list[tuple[str, Any]] = []
        self._booster: Any = None
        self._callback: BoostingCallback | None = None
        self._pending = False
        """Whether a round was made that is not recorded yet."""
        self._metrics: list[Any] = []
        self._passed: WeakSet[Any] = WeakSet()
        """Boosters whose run is over, or that have none."""

    def start(self) -> None:
        """Put it around."""
        for names, follow in ((_ROUNDS, self._around_round), (_METRICS, self._around_metrics)):
            for name in names[self._module]:
                original = vars(self._booster_class)[name]
                self._replaced.append((name, original))
                setattr(self._booster_class, name, follow(original))

    def stop(self) -> None:
        """Record the last round, and take it off."""
        while self._replaced:
            setattr(self._booster_class, *self._replaced.pop())
        self._record()

    def _follows(self) -> bool:
        """Whether the program calls, not the library itself nor we."""
        caller = sys._getframe(2).f_globals.get("__name__", "")  # noqa: SLF001
        return self._watch.active and caller.partition(".")[0] not in {self._module, "tdbg_lab"}

    def _around_round(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def followed(booster: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._follows():
                return original(booster, *args, **kwargs)
            stopped = self._watch.guarded(self._before, booster)
            if stopped is not None:
                raise stopped
            result = original(booster, *args, **kwargs)
            self._watch.guarded(self._after, booster)
            return result

        return followed

    def _around_metrics(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def followed(booster: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(booster, *args, **kwargs)
            if booster is self._booster and self._follows():
                self._watch.guarded(self._note, result)
            return result

        return followed

    def _before(self, booster: Any) -> TrainingStopped | None:
        """A round is about to be made: the one before is complete. What is to end the training, if any."""
        return self._record() if booster is self._booster else None

    def _after(self, booster: Any) -> None:
        """A round was made."""
        if booster in self._passed:
            return
        if booster is not self._booster and not self._begin(booster):
            self._passed.add(booster)
            return
        self._pending = True

    def _begin(self, booster: Any) -> bool:
        """Begin a run of a booster, and end that of the one before; whether there is one."""
        if self._callback is not None:
            self._record()
            self._passed.add(self._booster)
            self._callback.close()
            self._callback = self._booster = None
        if not self._watch.takes_another():
            return False
        callback: BoostingCallback = boosting_callback(self._module)(**self._watch.next_settings())
        callback.begin_loop(booster)
        if callback.handle is None:
            return False
        self._watch.begun(callback.handle)
        self._callback, self._booster = callback, booster
        return True

    def _note(self, result: Any) -> None:
        assert self._callback is not None  # noqa: S101 - there is a booster
        self._metrics += self._callback.told_metrics(self._booster, result)

    def _record(self) -> TrainingStopped | None:
        """Record the round that waits, if one does; what is to end the training, if somebody asked for it."""
        if self._callback is None or not self._pending:
            return None
        metrics, self._metrics, self._pending = self._metrics, [], False
        return self._callback.record_round(metrics)
