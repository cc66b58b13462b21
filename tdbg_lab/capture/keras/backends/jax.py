"""JAX: Keras's step is a pure function, so a second one can look at the same batch beside it."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from tdbg_lab.capture.keras.checks.modes import PassModes
from tdbg_lab.capture.keras.compared import compared
from tdbg_lab.capture.keras.entry import Entry
from tdbg_lab.capture.keras.naming import LayerSite
from tdbg_lab.capture.keras.seen import Compared, EntryRole, Output, Pair, Seen
from tdbg_lab.capture.keras.sinks import CallCounter, applied
from tdbg_lab.capture.sampling import places
from tdbg_lab.capture.values import dtype_text
from tdbg_lab.records import Kind, Mode
from tdbg_lab.stats import summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Backend, Watcher
    from tdbg_lab.records import LossKind, StatsBlock

__all__ = ["JaxBackend"]


class JaxBackend:
    """Values are `jax.Array`; the state of training travels in the arguments of the step."""

    name = "jax"
    cheap_peek = True

    def __init__(self) -> None:
        self._looks: WeakKeyDictionary[Any, dict[tuple[Mode, bool], _Look]] = WeakKeyDictionary()
        self._pair = jax.jit(lambda *values: tuple(one + 0 for one in values))
        self._few = jax.jit(lambda *values: tuple(_few(one) for one in values))

    def eager(self, _model: Any) -> bool:
        """Never: even without ``jit`` the outputs are traced, for their gradient."""
        return False

    def unseen(self, _model: Any) -> str:
        """Everything can be seen."""
        return ""

    def is_tensor(self, value: Any) -> bool:
        """Arrays and tracers."""
        return isinstance(value, jax.Array)

    def described(self, value: Any) -> tuple[str, tuple[int, ...]]:
        """Name of the dtype, and shape."""
        return dtype_text(value.dtype), tuple(value.shape)

    def array(self, value: Any) -> NDArray[Any]:
        """On the host."""
        return np.asarray(value)

    def at_hand(self, value: Any) -> NDArray[Any] | None:
        """Arrays of numpy, which Keras hands on as they are, and those of the CPU."""
        if isinstance(value, np.ndarray):
            return value
        here = isinstance(value, jax.Array) and value.is_fully_addressable
        if not here or any(one.platform != "cpu" for one in value.devices()):
            return None
        return np.asarray(value) if value.is_ready() else None

    def few(self, value: Any) -> NDArray[np.float64]:
        """On the host."""
        return np.asarray(_few(value), dtype=np.float64)

    def left(self, values: Sequence[Any]) -> Sequence[Any]:
        """The arrays, which the next step is given if nobody comes between, and copies of a few values.

        Evaluations give them away, too.
        """
        return list(zip(values, self._few(*values), strict=True))

    def replaced(self, value: Any, left: Any) -> NDArray[np.float64] | None:
        """Some values of the array that is no longer there."""
        array, some = left
        return None if value is array else np.asarray(some, dtype=np.float64)

    def summarize(self, values: Sequence[Any], axes: Sequence[int | None]) -> StatsBlock:
        """On the host."""
        return summarize([np.asarray(one) for one in values], channel_axes=axes)

    def given_probabilities(self, _value: Any, kind: LossKind) -> LossKind:
        """What it was told."""
        return kind

    def peek(self, _model: Any, _mode: Mode, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """The state and an iterator come in; both go on."""
        state, iterator = args
        batch = next(iterator)
        return (state, chain((batch,), iterator)), batch

    def build(self, model: Any, mode: Mode, batch: Any, watcher: Watcher) -> None:
        """Keras builds models before the first step."""

    def look(
        self,
        model: Any,
        mode: Mode,
        args: tuple[Any, ...],
        batch: Any,
        watcher: Watcher,
        *,
        inputs: bool,
    ) -> Seen:
        """Run a pure copy of the step, compiled as the step is, and throw its new state away."""
        looks = self._looks.setdefault(model, {})
        look = looks.get((mode, inputs))
        if look is None:
            look = looks[mode, inputs] = _Look(self, model, mode, inputs=inputs)
        return look(args[0], batch, watcher)

    def before(self, model: Any, args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Variables are in the state that goes in."""
        return _reader(model, args[0])

    def after(self, model: Any, result: Any) -> Callable[[Any], Any]:
        """Variables are in the state that comes out."""
        return _reader(model, result[1])

    def logs(self, result: Any) -> Any:
        """Logs and state come back."""
        return result[0]

    def kept(self, values: Sequence[Any]) -> Any:
        """Copies, made on the device: the originals are given away with the state of the next step."""
        return self._pair(*values)

    def numbers(self, kept: Any) -> list[float]:
        """Waits."""
        return [float(one) for one in kept]

    def ready(self, kept: Any) -> bool:
        """Whether the step is done."""
        return all(one.is_ready() for one in kept)


def _few(value: jax.Array) -> jax.Array:
    flat = value.reshape(-1)
    return flat[places(len(flat))]


def _reader(model: Any, state: tuple[Any, ...]) -> Callable[[Any], Any]:
    """Reads variables from the state of a step: only that of training has the optimizer's in it."""
    optimizer = getattr(model, "optimizer", None)
    groups = [model.trainable_variables, model.non_trainable_variables, model.metrics_variables]
    if len(state) > len(groups):
        groups.insert(2, optimizer.variables if optimizer is not None else [])
    values = {
        id(variable): value
        for variables, held in zip(groups, state, strict=False)
        for variable, value in zip(variables, held, strict=True)
    }

    def read(variable: Any) -> Any:
        value = values.get(id(variable))
        return variable.value if value is None else value

    return read


_Place = tuple[LayerSite, Kind, int] | Compared | EntryRole | None
"""Where a value belongs: to a layer; to what a loss compares, predictions before labels; it is what enters
the model, and what the first layer does with it; or it is a loss."""


class _Look:
    """A second function for one model and mode.

    Outputs and losses are computed under `jax.grad`, from where values cannot be returned; they leave
    through callbacks to the host. Gradients are returned.
    """

    def __init__(self, backend: Backend, model: Any, mode: Mode, *, inputs: bool) -> None:
        self.backend = backend
        self._inputs = inputs
        self._step = {Mode.TRAIN: model.train_step, Mode.EVAL: model.test_step}.get(mode, model.predict_step)
        self._inbox: list[tuple[int, Any]] = []
        self._places: list[_Place] = []
        self._known: dict[Any, int] = {}
        self._variables: list[int] = []
        self._modes = PassModes()
        compiled = not model.run_eagerly and model.jit_compile
        self._run = jax.jit(self._pass) if compiled else self._pass

    def __call__(self, state: Any, batch: Any, watcher: Watcher) -> Seen:
        self._inbox.clear()
        self._watcher = watcher
        gradients = jax.block_until_ready(self._run(state, batch))
        jax.effects_barrier()
        return self._seen(gradients)

    def _pass(self, state: Any, batch: Any) -> list[Any]:
        sink = _Sink(self, self.backend, inputs=self._inputs)
        self._modes = sink.modes  # of the last trace: a compiled pass tells it no more
        with self._watcher(sink, apply=False):
            self._step(state, batch)
        self._variables = [variable for variable, _ in sink.found]
        return [value for _, value in sink.found]

    def place(self, identity: Any, place: _Place) -> int:
        """The number under which a value reaches the host."""
        number = self._known.get(identity)
        if number is None:
            number = self._known[identity] = len(self._places)
            self._places.append(place)
        return number

    def send(self, number: int, value: Any) -> None:
        """Let a traced value reach the host."""
        jax.debug.callback(partial(self._receive, number), value)

    def _receive(self, number: int, value: Any) -> None:
        self._inbox.append((number, value))  # converted by the thread that waits: here it could wait forever

    def _seen(self, gradients: Sequence[Any]) -> Seen:
        seen = Seen(gradients=list(zip(self._variables, gradients, strict=True)), modes=self._modes)
        first: dict[int, Any] = {}
        for number, value in self._inbox:
            first.setdefault(number, value)  # a layer that is recomputed for its gradient comes twice
        self._inbox.clear()
        predictions: dict[Compared, Any] = {}
        for number in sorted(first):
            place = self._places[number]
            if place is None:
                seen.losses.append(first[number])
            elif isinstance(place, EntryRole):
                seen.entry, seen.role = first[number], place
            elif not isinstance(place, Compared):
                seen.outputs.append(Output(*place, first[number]))
            elif place in predictions:
                seen.pairs.append(Pair(place, predictions[place], first[number]))
            else:
                predictions[place] = first[number]
        return seen


class _Sink:
    """Takes traced values."""

    def __init__(self, look: _Look, backend: Backend, *, inputs: bool) -> None:
        self._look = look
        self._counter = CallCounter(backend, inputs=inputs)
        self._entry = Entry(backend)
        self._losses = 0
        self.modes = PassModes()
        self.found: list[tuple[int, Any]] = []
        """``id`` of variables and their gradients."""

    def output(self, site: LayerSite, inputs: Any, output: Any) -> None:
        """Send what a layer took and returned."""
        for kind, index, value in self._counter.tensors(site, inputs, output):
            self._look.send(self._look.place((site.path, kind, index), (site, kind, index)), value)
        entry = self._entry.of(site, inputs)
        if entry is not None:
            self._look.send(self._look.place("entry", self._entry.role), entry)

    def loss(self, value: Any) -> None:
        """Send the loss."""
        self._look.send(self._look.place(self._losses, None), value)
        self._losses += 1

    def compared(self, model: Any, y: Any, y_pred: Any) -> None:
        """Send what the losses compare."""
        for loss, *pair in compared(model, self._look.backend, y, y_pred):
            for index, value in enumerate(pair):
                self._look.send(self._look.place((loss.name, index), loss), value)

    def gradients(
        self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any] | None, state: Any
    ) -> None:
        """Keep the gradients, to be returned."""
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        for variable, value in zip(owned, applied(optimizer, gradients, state), strict=True):
            if value is not None:
                self.found.append((id(variable), value))
