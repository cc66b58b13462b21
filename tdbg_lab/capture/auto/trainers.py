"""Gives the trainers of other libraries their callback, for the time of a training."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tdbg_lab.capture.auto.watch import AutoWatch

__all__ = ["LightningFinder", "TransformersFinder"]


class _TrainerFinder:
    """Puts itself around the method of a trainer that trains, until `stop`."""

    method = ""

    def __init__(self, watch: AutoWatch, module: str) -> None:
        self._watch = watch
        self._trainer: Any = sys.modules[module].Trainer  # type: ignore[attr-defined, unused-ignore]
        self._original: Callable[..., Any] | None = None

    def start(self) -> None:
        """Put it around."""
        original = self._original = getattr(self._trainer, self.method)

        @wraps(original)
        def followed(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            callback = self._watch.guarded(self.add, trainer) if self._watch.active else None
            if callback is None:
                return original(trainer, *args, **kwargs)
            try:
                result = original(trainer, *args, **kwargs)
            except BaseException as error:
                self._watch.guarded(self.remove, trainer, callback, error)
                raise
            self._watch.guarded(self.remove, trainer, callback, None)
            return result

        setattr(self._trainer, self.method, followed)

    def stop(self) -> None:
        """Take it off."""
        original, self._original = self._original, None
        if original is not None:
            setattr(self._trainer, self.method, original)

    def add(self, trainer: Any) -> Any:
        """Give `trainer` a callback; None when it has one of ours already."""
        raise NotImplementedError

    def remove(self, trainer: Any, callback: Any, error: BaseException | None) -> None:
        """Take the callback away again."""
        raise NotImplementedError


class TransformersFinder(_TrainerFinder):
    """Follows ``Trainer.train`` of Hugging Face Transformers."""

    method = "train"

    def add(self, trainer: Any) -> Any:
        """Give it a `TransformersCallback`."""
        from tdbg_lab.capture.adapters.transformers import TransformersCallback

        has_one = any(isinstance(one, TransformersCallback) for one in trainer.callback_handler.callbacks)
        if has_one or not self._watch.takes_another():
            return None
        callback = TransformersCallback(**self._watch.next_settings())
        callback.attachment.began = self._watch.begun
        trainer.add_callback(callback)
        return callback

    def remove(self, trainer: Any, callback: Any, error: BaseException | None) -> None:
        """Detach, with the exception that the Trainer tells no callback."""
        callback.__exit__(None, error, None)
        trainer.remove_callback(callback)


class LightningFinder(_TrainerFinder):
    """Follows ``Trainer.fit`` of Lightning."""

    method = "fit"

    def add(self, trainer: Any) -> Any:
        """Give it a `LightningCallback`."""
        from tdbg_lab.capture.adapters.lightning import LightningCallback

        has_one = any(isinstance(one, LightningCallback) for one in trainer.callbacks)
        if has_one or not self._watch.takes_another():
            return None
        callback = LightningCallback(**self._watch.next_settings())
        callback.attachment.began = self._watch.begun
        trainer.callbacks.append(callback)
        return callback

    def remove(self, trainer: Any, callback: Any, error: BaseException | None) -> None:  # noqa: ARG002
        """Forget the callback; it has seen the end itself."""
        trainer.callbacks = [one for one in trainer.callbacks if one is not callback]
