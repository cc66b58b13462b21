"""Keras's own functions for a batch, called through somebody who wants to see it.

A function is wrapped, never changed. It is wrapped where Keras keeps it (``model.train_function``),
which `make_train_function` fills.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import keras

from tdbg_lab.records import Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tdbg_lab.capture.keras.backends.base import Backend

__all__ = ["KerasFunctions", "Through", "eagerly", "is_eager", "running"]

_FUNCTIONS = {Mode.TRAIN: "train_function", Mode.EVAL: "test_function", Mode.PREDICT: "predict_function"}


_running: list[Any] = []
"""Functions that run now, the outermost first."""


def running() -> bool:
    """Whether a function of a model that is watched runs now: Keras fits, evaluates or predicts."""
    return bool(_running)


def is_eager() -> bool:
    """Whether tensors of TensorFlow have values now: no graph is being built."""
    import tensorflow as tf

    return bool(tf.executing_eagerly())


class Through(Protocol):
    """Calls one of Keras's functions, or does more around it."""

    def __call__(self, model: Any, mode: Mode, original: Callable[..., Any], args: tuple[Any, ...], /) -> Any:
        """Give what ``original(*args)`` gives."""


class KerasFunctions:
    """The functions of some models; those that are no `keras.Model` have none.

    Parameters
    ----------
    through
        Called in place of each function.
    """

    def __init__(self, models: Iterable[Any], through: Through) -> None:
        self.through = through
        self._makers: list[tuple[Any, str, Any]] = []
        self._models = [one for one in models if isinstance(one, keras.Model)]
        for model in self._models:
            for mode, name in _FUNCTIONS.items():
                maker = f"make_{name}"
                self._makers.append((model, maker, vars(model).get(maker)))
                object.__setattr__(model, maker, partial(self._make, model, mode, getattr(model, maker)))
                self._wrap(model, mode)

    def _make(self, model: Any, mode: Mode, original: Callable[..., Any], force: bool = False) -> Any:  # noqa: FBT001, FBT002 - Keras's signature
        result = original(force)
        self._wrap(model, mode)
        return result

    def _wrap(self, model: Any, mode: Mode) -> None:
        function = inner = getattr(model, _FUNCTIONS[mode])
        while isinstance(inner, _Wrapped):
            if inner.owner is self:
                return
            inner = inner.original
        if function is not None:
            setattr(model, _FUNCTIONS[mode], _Wrapped(self, model, mode, function))

    def remove(self) -> None:
        """Give the functions back as they were, below others that were wrapped since. Idempotent."""
        for model in self._models:
            for name in _FUNCTIONS.values():
                function = getattr(model, name)
                if isinstance(function, _Wrapped) and function.owner is self:
                    setattr(model, name, function.original)
        while self._makers:
            model, maker, before = self._makers.pop()
            vars(model).pop(maker, None)
            if before is not None:
                object.__setattr__(model, maker, before)
        self.through = _straight


class _Wrapped:
    """Keras's function for one mode, called through its owner."""

    def __init__(self, owner: KerasFunctions, model: Any, mode: Mode, original: Callable[..., Any]) -> None:
        self.owner = owner
        self.model = model
        self.mode = mode
        self.original = original

    def __call__(self, *args: Any) -> Any:
        _running.append(self)
        try:
            return self.owner.through(self.model, self.mode, self.original, args)
        finally:
            _running.pop()


def _straight(_model: Any, _mode: Mode, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    return original(*args)


@contextmanager
def eagerly(backend: Backend, model: Any) -> Iterator[None]:
    """Keep a model that ``torch.compile`` compiled from running compiled."""
    with ExitStack() as stack:
        if backend.name == "torch" and model.jit_compile:
            import torch

            stack.enter_context(torch.compiler.set_stance("force_eager"))
        yield
