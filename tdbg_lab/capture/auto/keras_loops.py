"""Finds models of Keras that the program trains without ``fit``: batch by batch, or with a gradient tape.

A loop is recognised by the first update of its optimizer, which tells what it trains; so it is captured
from its second step on.
"""

from __future__ import annotations

import gc
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import keras

from tdbg_lab.capture.attaching import attach
from tdbg_lab.capture.auto.names import named_as_in_program, visible
from tdbg_lab.capture.keras.session import KerasSession
from tdbg_lab.capture.registry import open_handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.capture.auto.watch import AutoWatch
    from tdbg_lab.capture.keras.taping import Taping

__all__ = ["UNSEEN", "KerasLoopFinder"]

UNSEEN = {
    "tensorflow": "a loop of its own that runs inside tf.function is not seen, because its tensors have no "
    "values there: train with model.fit or train_on_batch, or call tf.config.run_functions_eagerly(True)",
    "jax": "a loop of its own on JAX is not seen, because its tensors have no values while it is traced: "
    "train with model.fit or train_on_batch",
    "torch": "a loop of its own that moves a Keras model on PyTorch is not seen: train with model.fit or "
    "train_on_batch",
}
"""What is said of a loop that is not seen, by the backend of Keras."""


class KerasLoopFinder:
    """Attaches to what is trained batch by batch, and to what an optimizer of Keras moves in a loop."""

    def __init__(self, watch: AutoWatch, _module: str) -> None:
        self._watch = watch
        self._met: WeakSet[Any] = WeakSet()
        """Models and optimizers that need no further look."""
        self._replaced: list[tuple[Any, str, Any]] = []
        self._taping: Taping | None = None

    def start(self) -> None:
        """Look from now on."""
        self._tell(keras.Model, "train_on_batch", self._meet_model, after=False)
        self._tell(keras.optimizers.Optimizer, "apply", self._meet_optimizer, after=True)

    def stop(self) -> None:
        """Give the methods back."""
        while self._replaced:
            place, name, original = self._replaced.pop()
            setattr(place, name, original)
        if self._taping is not None:
            self._taping.stop()

    def _tell(self, kind: Any, name: str, meet: Callable[[Any], None], *, after: bool) -> None:
        """Call `meet` with whatever is not known yet, before or after the method of that name."""
        place = next(one for one in kind.__mro__ if name in vars(one))
        original = vars(place)[name]

        @wraps(original)
        def method(thing: Any, *args: Any, **kwargs: Any) -> Any:
            new = self._watch.active and self._watch.guarded(self._note, thing)
            if new and not after:
                self._watch.guarded(meet, thing)
            result = original(thing, *args, **kwargs)
            if new and after:
                self._watch.guarded(meet, thing)
            return result

        self._replaced.append((place, name, original))
        setattr(place, name, method)

    def _note(self, thing: Any) -> bool:
        """Whether a model or an optimizer needs a look; from now on it needs none."""
        if thing in self._met:
            return False
        self._met.add(thing)
        return True

    # -- batch by batch ---------------------------------------------------------------------------

    def _meet_model(self, model: Any) -> None:
        seen = any(model is one for session in _sessions() for one in session.models.values())
        if not seen and self._watch.takes_another():
            self._watch.begun(attach(model, **self._watch.next_settings()))

    # -- loops ------------------------------------------------------------------------------------

    def _meet_optimizer(self, optimizer: Any) -> None:
        """An optimizer has moved something for the first time, in a loop unless a session knows it."""
        known = [one for session in _sessions() for one in session.optimizer_map.values()]
        if self._watch.left_alone or any(one is optimizer for one in known):
            return
        if not _has_values():
            self._watch.missed = UNSEEN[keras.backend.backend()]
            return
        others = [one for one in visible(_alive(keras.optimizers.Optimizer)) if _begins_with(one, optimizer)]
        moved = {id(one) for one in optimizer._trainable_variables}  # noqa: SLF001
        models = _models_of(moved, also=bool(others))
        if not models:
            self._watch.missed = (
                f"{type(optimizer).__name__} moves variables that belong to no model of the program: they "
                "are seen once they are weights of a keras.Model"
            )
        elif self._watch.takes_another():
            self._met.update(others)
            self._begin(models, [optimizer, *others])

    def _begin(self, models: list[Any], optimizers: list[Any]) -> None:
        from tdbg_lab.capture.keras.taping import Taping

        handle = attach(
            named_as_in_program(models),
            optimizer=named_as_in_program(optimizers),
            **{**self._watch.next_settings(), "first_step": 1},
        )
        self._watch.begun(handle)
        if isinstance(handle.session, KerasSession):
            self._taping = self._taping or Taping()
            self._taping.follow(handle.session)


def _has_values() -> bool:
    """Whether the loop runs step by step, on the backend whose tapes are followed."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    return bool(tf.executing_eagerly())


def _begins_with(other: Any, optimizer: Any) -> bool:
    """Whether another optimizer has not moved anything yet, as that of a GAN's other model."""
    return other is not optimizer and int(other.iterations) == 0


def _models_of(moved: set[int], *, also: bool) -> list[Any]:
    """The outermost models with variables that are moved (by id); with `also`, what else the program sees."""
    layers = _alive(keras.layers.Layer)
    inner = {id(part) for one in layers for part in one._flatten_layers(include_self=False)}  # noqa: SLF001
    tops = [one for one in layers if id(one) not in inner and one.trainable_variables]
    seen = visible(tops)
    wanted = [one for one in tops if moved & _variables(one) or (also and one in seen)]
    kept: list[Any] = []
    covered: set[int] = set()
    for one in sorted(wanted, key=lambda one: (one not in seen, -len(one.variables))):
        if not _variables(one) <= covered:
            kept.append(one)
            covered |= _variables(one)
    return kept


def _variables(layer: Any) -> set[int]:
    return {id(one) for one in layer.trainable_variables}


def _alive(kind: type) -> list[Any]:
    """Objects of a class. Types are asked, not objects: a lazy object would load itself."""
    return [one for one in gc.get_objects() if issubclass(type(one), kind)]


def _sessions() -> Iterable[KerasSession]:
    return [one.session for one in open_handles() if isinstance(one.session, KerasSession)]
