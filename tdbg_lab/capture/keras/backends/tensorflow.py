"""TensorFlow: a second graph looks at the batch, and every variable it changes is put back."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from tdbg_lab.capture.keras.checks.modes import PassModes
from tdbg_lab.capture.keras.compared import compared
from tdbg_lab.capture.keras.entry import Entry
from tdbg_lab.capture.keras.seen import Compared, EntryRole, Output, Pair, Seen
from tdbg_lab.capture.keras.sinks import CallCounter, applied
from tdbg_lab.capture.sampling import places
from tdbg_lab.records import Kind, LossKind, Mode
from tdbg_lab.stats import summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.keras.backends.base import Watcher
    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.records import StatsBlock

__all__ = ["TensorFlowBackend", "written_variables"]

_READING = {
    "Identity",
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarIsInitializedOp",
    "VariableShape",
}
"""Operations that leave a variable as it is; any other may change it."""
_BEHIND = {LossKind.LOGITS: LossKind.PROBABILITIES, LossKind.YES_LOGITS: LossKind.YES_PROBABILITIES}


class TensorFlowBackend:
    """Values are eager tensors; the state of training is in variables."""

    name = "tensorflow"
    cheap_peek = False

    def __init__(self) -> None:
        self._looks: WeakKeyDictionary[Any, dict[tuple[Mode, bool], _Look]] = WeakKeyDictionary()

    def eager(self, model: Any) -> bool:
        """Whether the model was compiled with ``run_eagerly``."""
        return bool(model.run_eagerly)

    def unseen(self, model: Any) -> str:
        """Replicas run in functions of their own."""
        replicas = model.distribute_strategy.num_replicas_in_sync
        if replicas > 1:
            return f"the model is distributed over {replicas} replicas"
        return ""

    def is_tensor(self, value: Any) -> bool:
        """Dense tensors, eager or of a graph."""
        return isinstance(value, tf.Tensor)

    def described(self, value: Any) -> tuple[str, tuple[int, ...]]:
        """Name of the dtype, and shape."""
        dtype = value.dtype
        return getattr(dtype, "name", str(dtype)), tuple(value.shape)

    def array(self, value: Any) -> NDArray[Any]:
        """On the host."""
        return value.numpy() if hasattr(value, "numpy") else np.asarray(value)

    def at_hand(self, _value: Any) -> NDArray[Any] | None:
        """Not asked for: batches of steps that are not saved are not seen."""
        return None

    def few(self, value: Any) -> NDArray[np.float64]:
        """On the host."""
        flat = value.numpy().reshape(-1)
        return np.asarray(flat[places(len(flat))], dtype=np.float64)

    def left(self, values: Sequence[Any]) -> Sequence[Any]:
        """Some values: nothing tells whether a variable was assigned."""
        return [self.few(one) if "CPU" in one.device else None for one in values]

    def replaced(self, value: Any, left: Any) -> NDArray[np.float64] | None:
        """Some values, if others are there now."""
        return None if np.array_equal(self.few(value), left) else left

    def summarize(self, values: Sequence[Any], axes: Sequence[int | None]) -> StatsBlock:
        """On the host."""
        return summarize([self.array(one) for one in values], channel_axes=axes)

    def given_probabilities(self, value: Any, kind: LossKind) -> LossKind:
        """Keras takes the logits of a softmax or sigmoid that it finds behind predictions."""
        operation = "" if hasattr(value, "numpy") else getattr(getattr(value, "op", None), "type", "")
        if hasattr(value, "_keras_logits") or operation in {"Softmax", "Sigmoid"}:
            return _BEHIND.get(kind, kind)
        return kind

    def peek(self, model: Any, mode: Mode, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any]:
        """Keras's function takes an iterator; to predict, a list of batches."""
        source = args[0]
        if mode is Mode.PREDICT:
            return args, source[0]
        batches = list(islice(source, model.steps_per_execution))
        if not batches:
            raise StopIteration
        if not isinstance(source, tf.data.Iterator):
            return (chain(batches, source),), batches[0]
        return (_replayed(batches, source.element_spec),), batches[0]

    def build(self, model: Any, mode: Mode, batch: Any, watcher: Watcher) -> None:
        """Trace the step once, as Keras would; nothing is run."""
        step = _step(model, mode)

        def traced(batch: Any) -> None:
            with watcher(None, apply=False):
                step(batch)

        tf.function(traced, autograph=False).get_concrete_function(tf.nest.map_structure(_relaxed, batch))

    def look(
        self,
        model: Any,
        mode: Mode,
        _args: tuple[Any, ...],
        batch: Any,
        watcher: Watcher,
        *,
        inputs: bool,
    ) -> Seen:
        """Run a second graph of the step that applies nothing; put back what it changes."""
        looks = self._looks.setdefault(model, {})
        look = looks.get((mode, inputs))
        if look is None:
            look = looks[mode, inputs] = _Look(self, model, mode, inputs=inputs)
        return look(batch, watcher)

    def before(self, _model: Any, _args: tuple[Any, ...]) -> Callable[[Any], Any]:
        """Variables hold their values."""
        return _read

    def after(self, _model: Any, _result: Any) -> Callable[[Any], Any]:
        """Variables hold their values."""
        return _read

    def logs(self, result: Any) -> Any:
        """Logs come back."""
        return result

    def kept(self, values: Sequence[Any]) -> Any:
        """Tensors never change."""
        return [tf.convert_to_tensor(one) for one in values]

    def numbers(self, kept: Any) -> list[float]:
        """Waits."""
        return [float(one) for one in kept]

    def ready(self, _kept: Any) -> bool:
        """Always: on a CPU, operations are done when they return."""
        return True


def _step(model: Any, mode: Mode) -> Any:
    step = {Mode.TRAIN: model.train_step, Mode.EVAL: model.test_step}.get(mode, model.predict_step)
    return model._autoconvert_optionals(step)  # noqa: SLF001 - what Keras's own function does


def _relaxed(value: Any) -> Any:
    """The shape of a batch of any size."""
    if not isinstance(value, tf.Tensor) or not value.shape.rank:
        return value
    return tf.TensorSpec([None, *value.shape[1:]], value.dtype)


def _read(variable: Any) -> Any:
    return variable.value.read_value()


def _replayed(batches: Sequence[Any], spec: Any) -> Any:
    """An iterator over `batches` that looks to a compiled function like the one they came from."""
    dataset = tf.data.Dataset.from_tensors(batches[0])
    for batch in batches[1:]:
        dataset = dataset.concatenate(tf.data.Dataset.from_tensors(batch))
    return iter(tf.data.experimental.from_variant(tf.data.experimental.to_variant(dataset), spec))


class _Look:
    """A second function for one model and mode."""

    def __init__(self, backend: TensorFlowBackend, model: Any, mode: Mode, *, inputs: bool) -> None:
        self._backend = backend
        self._inputs = inputs
        self._model = model
        self._step = _step(model, mode)
        self._function = tf.function(self._pass, autograph=False, reduce_retracing=True)
        self._places: dict[str, tuple[LayerSite, Kind, int]] = {}
        self._compared: dict[str, Compared] = {}
        self._role = EntryRole.WEIGHS
        self._modes = PassModes()
        self._written: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()

    def __call__(self, batch: Any, watcher: Watcher) -> Seen:
        self._watcher = watcher
        concrete = self._function.get_concrete_function(batch)
        written = self._written.get(concrete)
        if written is None:
            written = self._written[concrete] = written_variables(concrete)
        before = [(one, one.read_value()) for one in written]
        try:
            values = self._function(batch)
        finally:
            for variable, value in before:
                variable.assign(value)
        return self._seen(values)

    def _pass(self, batch: Any) -> dict[str, Any]:
        sink = _Sink(self._backend, self._places, self._compared, inputs=self._inputs)
        with self._watcher(sink, apply=False):
            self._step(batch)
        self._role, self._modes = sink.entry.role, sink.modes
        return sink.found

    def _seen(self, values: dict[str, Any]) -> Seen:
        seen = Seen(entry=values.get("entry"), role=self._role, modes=self._modes)
        for name, value in values.items():
            what, _, rest = name.partition(" ")
            if what == "gradient":
                seen.gradients.append((int(rest), value))
            elif what == "loss":
                seen.losses.append(value)
        seen.outputs = [
            Output(*place, values[name]) for name, place in self._places.items() if name in values
        ]
        seen.pairs = [
            Pair(loss, values[f"prediction {name}"], values[f"target {name}"])
            for name, loss in self._compared.items()
            if f"target {name}" in values
        ]
        return seen


class _Sink:
    """Takes tensors of the graph that is being traced; those of graphs within it cannot leave them."""

    def __init__(
        self,
        backend: TensorFlowBackend,
        places: dict[str, tuple[LayerSite, Kind, int]],
        losses: dict[str, Compared],
        *,
        inputs: bool,
    ) -> None:
        self._graph = tf.compat.v1.get_default_graph()
        self._backend = backend
        self._counter = CallCounter(backend, inputs=inputs)
        self.entry = Entry(backend)
        self._places = places
        self._compared = losses
        self.modes = PassModes()
        self.found: dict[str, Any] = {}

    def output(self, site: LayerSite, inputs: Any, output: Any) -> None:
        """Keep what a layer took and returned."""
        for kind, index, value in self._counter.tensors(site, inputs, output):
            if self._is_ours(value):
                name = f"{kind} {site.path}:{index}"
                self._places[name] = (site, kind, index)
                self.found[name] = value
        entry = self.entry.of(site, inputs)
        if entry is not None and self._is_ours(entry):
            self.found["entry"] = entry

    def loss(self, value: Any) -> None:
        """Keep the loss."""
        if self._is_ours(value):
            self.found[f"loss {len(self.found)}"] = tf.convert_to_tensor(value)

    def compared(self, model: Any, y: Any, y_pred: Any) -> None:
        """Keep what the losses compare."""
        for loss, prediction, target in compared(model, self._backend, y, y_pred):
            if self._is_ours(prediction) and self._is_ours(target):
                self._compared[loss.name] = loss
                self.found[f"prediction {loss.name}"] = prediction
                self.found[f"target {loss.name}"] = target

    def gradients(
        self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any] | None, state: Any
    ) -> None:
        """Keep the gradients."""
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        dense = [None if one is None else tf.convert_to_tensor(one) for one in gradients]
        for variable, value in zip(owned, applied(optimizer, dense, state), strict=True):
            if value is not None and self._is_ours(value):
                self.found[f"gradient {id(variable)}"] = value

    def _is_ours(self, value: Any) -> bool:
        return getattr(value, "graph", None) is self._graph


def written_variables(concrete: Any) -> list[Any]:
    """The variables that a traced function may change."""
    graph = concrete.graph
    handles = {id(inside): outside for outside, inside in graph.captures}
    written = {
        id(handles[id(tensor)])
        for operation in graph.get_operations()
        if operation.type not in _READING
        for tensor in operation.inputs
        if tensor.dtype == tf.resource and id(tensor) in handles
    }
    return [variable for variable in graph.variables if id(variable.handle) in written]
