"""Finds models of Keras that the program trains without ``fit``: batch by batch, or with a gradient tape.

A loop is recognised by the first update of its optimizer, which tells what it trains; so it is captured
from its second step on. Where a step is a ``tf.function``, that is before its first one, when it is traced.
"""

from __future__ import annotations

import gc
from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import keras

from tdbg_lab.capture.attaching import attach
from tdbg_lab.capture.auto.names import named_as_in_program, visible
from tdbg_lab.capture.keras.functions import is_eager
from tdbg_lab.capture.keras.session import KerasSession
from tdbg_lab.capture.registry import open_handles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tdbg_lab.capture.auto.watch import AutoWatch
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.keras.function_calls import FunctionCalls
    from tdbg_lab.capture.keras.taping import Taping

__all__ = ["UNSEEN", "KerasLoopFinder"]

UNSEEN = {
    "tensorflow": "a loop of its own that runs inside a graph is not seen, because its tensors have no "
    "values there: let each step be a call of a tf.function, or train with model.fit or train_on_batch",
    "jax": "a loop of its own on JAX is not seen, because its tensors have no values while it is traced: "
    "train with model.fit or train_on_batch",
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
        self._calls: FunctionCalls | None = None

    def start(self) -> None:
        """Look from now on."""
        self._tell(keras.Model, "train_on_batch", self._meet_model, after=False)
        self._tell(keras.optimizers.Optimizer, "apply", self._meet_optimizer, after=True)
        if keras.backend.backend() == "tensorflow":
            from tdbg_lab.capture.keras.function_calls import FunctionCalls
            from tdbg_lab.capture.keras.taping import Taping

            self._taping, self._calls = Taping(), FunctionCalls()
            self._calls.start()

    def stop(self) -> None:
        """Give the methods back."""
        while self._replaced:
            place, name, original = self._replaced.pop()
            setattr(place, name, original)
        if self._taping is not None:
            self._taping.stop()
        if self._calls is not None:
            self._calls.stop()

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
        if keras.backend.backend() == "torch":
            if not _is_seen_by_pytorch(optimizer):
                self._begin(optimizer, traced=False)
            return
        why = _why_unseen()
        if why:
            self._watch.missed = why
            return
        traced = not is_eager()
        with _outside_graphs():
            handle = self._begin(optimizer, traced=traced)
        if traced and handle is not None and isinstance(handle.session, KerasSession):
            _note_step(handle.session, optimizer)

    def _begin(self, optimizer: Any, *, traced: bool) -> Handle | None:
        """Attach to what an optimizer moves, unless it is nothing that is seen."""
        others = [one for one in visible(_alive(keras.optimizers.Optimizer)) if _begins_with(one, optimizer)]
        moved = {id(one) for one in optimizer._trainable_variables}  # noqa: SLF001
        models = _models_of(moved, also=bool(others))
        if not models:
            self._watch.missed = (
                f"{type(optimizer).__name__} moves variables that belong to no model of the program: they "
                "are seen once they are weights of a keras.Model"
            )
            return None
        if not self._watch.takes_another():
            return None
        self._met.update(others)
        handle = attach(
            named_as_in_program(models),
            optimizer=named_as_in_program([optimizer, *others]),
            **{**self._watch.next_settings(), "first_step": 0 if traced else 1},
        )
        self._watch.begun(handle)
        if self._taping is not None and isinstance(handle.session, KerasSession):
            self._taping.follow(handle.session)
        return handle


def _outside_graphs() -> Any:
    """Where tensors have values, though a function is being traced."""
    import tensorflow as tf

    return tf.init_scope()


def _why_unseen() -> str:
    """Why a loop is not seen whose optimizer moves something now; empty if it is."""
    backend = keras.backend.backend()
    if backend != "tensorflow":
        return UNSEEN[backend]
    from tdbg_lab.capture.keras.function_calls import LONG, Traced, in_long_call

    if is_eager():
        return ""
    if in_long_call():
        return LONG
    return UNSEEN[backend] if Traced.now() is None else ""


def _is_seen_by_pytorch(optimizer: Any) -> bool:
    """Whether a loop of PyTorch is captured that trains what an optimizer of Keras moves."""
    from tdbg_lab.capture.pytorch.session import TorchSession

    moved = {id(one.value) for one in optimizer._trainable_variables}  # noqa: SLF001
    sessions = (one.session for one in open_handles())
    return any(isinstance(one, TorchSession) and one.moves(moved) for one in sessions)


def _note_step(session: KerasSession, optimizer: Any) -> None:
    """The function that is traced lets this optimizer step."""
    for name, one in session.optimizer_map.items():
        if one is optimizer and session.loop is not None:
            session.loop.compiled.applied(name)


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
