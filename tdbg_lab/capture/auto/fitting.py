"""Gives functions that train (``xgboost.train``, ``Model.fit`` of Keras) a callback of ours."""

from __future__ import annotations

import sys
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.auto.boosting_data import data_of
from tdbg_lab.capture.boosting import CALLBACKS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["BoostingFinder", "KerasFinder", "boosting_callback"]


class _FittingFinder:
    """Stands in for a function that takes ``callbacks=``, until `stop`."""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._module = module
        self._replaced: list[tuple[Any, str, Any]] = []

    def places(self) -> list[tuple[Any, str]]:
        """What holds the functions, modules or a class, and under which name."""
        raise NotImplementedError

    def callback_class(self) -> Any:
        """The class of the callback."""
        raise NotImplementedError

    def start(self) -> None:
        """Stand in for it."""
        for place, name in self.places():
            original = vars(place)[name]
            self._replaced.append((place, name, original))
            setattr(place, name, self._followed(original))

    def stop(self) -> None:
        """Give it back."""
        while self._replaced:
            place, name, original = self._replaced.pop()
            setattr(place, name, original)

    def _followed(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(original)
        def followed(*args: Any, **kwargs: Any) -> Any:
            callback = self._watch.guarded(self._add, args, kwargs) if self._watch.active else None
            if callback is None:
                return original(*args, **kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                self._watch.guarded(self._tell, callback, error)
                raise
            self._watch.guarded(self._tell, callback, None)
            return result

        return followed

    def _data(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """What of the arguments the callback is told, too."""
        return {}

    def _add(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Add a callback to the arguments; None when there is one of ours already."""
        kind = self.callback_class()
        given = kwargs.get("callbacks")
        known = list(given) if isinstance(given, list | tuple) else [] if given is None else None
        if known is None or any(isinstance(one, kind) for one in known) or not self._watch.takes_another():
            return None
        callback = kind(**self._watch.next_settings(), **self._data(args, kwargs))
        kwargs["callbacks"] = [*known, callback]
        return callback

    def _tell(self, callback: Any, error: BaseException | None) -> None:
        if getattr(callback, "_handle", None) is None and vars(callback).get("handle") is None:
            return
        self._watch.begun(callback.handle)
        if error is not None:  # nobody tells the callback
            callback.handle.__exit__(type(error), error, None)


class BoostingFinder(_FittingFinder):
    """Follows ``train`` and ``cv`` of XGBoost or LightGBM, and the estimators that call them."""

    def places(self) -> list[tuple[Any, str]]:
        """Every module of the package that holds one of the functions."""
        package = sys.modules[self._module]
        parts = [sys.modules[name] for name in list(sys.modules) if name.partition(".")[0] == self._module]
        functions = {name: getattr(package, name) for name in ("train", "cv")}
        return [
            (part, name)
            for part in parts
            for name, original in functions.items()
            if vars(part).get(name) is original
        ]

    def callback_class(self) -> Any:
        """`XGBoostCallback` or `LightGBMCallback`."""
        return boosting_callback(self._module)

    def _data(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return data_of(self._module, args, kwargs)


def boosting_callback(library: str) -> Any:
    """The class of the callback for ``xgboost`` or ``lightgbm``."""
    return getattr(import_module(f"tdbg_lab.capture.boosting.{library}"), CALLBACKS[library])


class KerasFinder(_FittingFinder):
    """Follows ``Model.fit`` of Keras."""

    def places(self) -> list[tuple[Any, str]]:
        """The class that has the method."""
        model = sys.modules["keras"].Model  # type: ignore[attr-defined, unused-ignore]
        return [(next(kind for kind in model.__mro__ if "fit" in vars(kind)), "fit")]

    def callback_class(self) -> Any:
        """`KerasCallback`."""
        return import_module("tdbg_lab.capture.keras").KerasCallback
