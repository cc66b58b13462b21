"""The hook for Keras: a callback of ``fit``, ``evaluate`` and ``predict``, and loops with gradient tapes.

Names are in `tdbg_lab.smdebug.tensorflow.names`; beside them there are ``loss``, ``val_loss``, the
metrics, ``batch``, and ``inputs``, ``labels``, ``predictions`` of the model. A step is a batch of a
mode, or a gradient tape. It works on every backend of Keras 3, and compiled functions stay compiled.
"""

from __future__ import annotations

from contextlib import contextmanager
from time import time
from typing import TYPE_CHECKING, Any, ClassVar

import keras
import numpy as np

from tdbg_lab.capture.keras.functions import KerasFunctions, eagerly
from tdbg_lab.capture.keras.optimizers import optimizers_of
from tdbg_lab.capture.keras.session import supported_backend
from tdbg_lab.capture.keras.watch import watch
from tdbg_lab.errors import TrainingStopped
from tdbg_lab.records import Kind, Mode
from tdbg_lab.smdebug.core.collection import CollectionKeys
from tdbg_lab.smdebug.core.hook import BaseHook
from tdbg_lab.smdebug.core.modes import ModeKeys
from tdbg_lab.smdebug.core.recording import follows_from_row
from tdbg_lab.smdebug.tensorflow.collection import Collection
from tdbg_lab.smdebug.tensorflow.names import ModelNames, VariableNames, gradient_name, optimizer_names
from tdbg_lab.smdebug.tensorflow.passes import Pass, Taken
from tdbg_lab.smdebug.tensorflow.tapes import TapeWatch
from tdbg_lab.stats.block import scalar_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tdbg_lab.capture.guard import Guard
    from tdbg_lab.records import RunStatus

__all__ = ["KerasHook"]

_MODES = {ModeKeys.TRAIN: Mode.TRAIN, ModeKeys.EVAL: Mode.EVAL, ModeKeys.PREDICT: Mode.PREDICT}
_LOSSES = ("loss", "val_loss")


class KerasHook(BaseHook, keras.callbacks.Callback):  # type: ignore[misc]
    """Saves what passes through a Keras model; arguments as `BaseHook`.

    ::

        hook = KerasHook("runs/first", include_collections=["weights", "gradients"])
        model.fit(x, y, callbacks=[hook])
    """

    framework = "keras"
    always_saved = (CollectionKeys.METRICS, CollectionKeys.LOSSES, CollectionKeys.SM_METRICS)
    collection_class = Collection
    default_collections: ClassVar[Mapping[str, Sequence[str]]] = {
        CollectionKeys.ALL: [".*"],
        CollectionKeys.DEFAULT: [],
        CollectionKeys.WEIGHTS: [r"(?:^|/)weights/(?!.*bias).*:\d+$"],
        CollectionKeys.BIASES: [r"(?:^|/)weights/.*bias.*:\d+$"],
        CollectionKeys.GRADIENTS: ["^gradient"],
        CollectionKeys.LOSSES: ["^(?:val_)?loss$"],
        CollectionKeys.METRICS: [],
        CollectionKeys.INPUTS: [r"^inputs(?:_\d+)?$"],
        CollectionKeys.OUTPUTS: [r"^(?:labels|predictions)(?:_\d+)?$"],
        CollectionKeys.LAYERS: [r"/(?:inputs|outputs)(?:_\d+)?$"],
        CollectionKeys.SM_METRICS: [],
        CollectionKeys.OPTIMIZER_VARIABLES: [],
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        keras.callbacks.Callback.__init__(self)
        super().__init__(*args, **kwargs)
        self._backend = supported_backend()
        self._watched: Any = None
        self._names: ModelNames | None = None
        self.loose = VariableNames()
        """Variables of tape loops with a model that is not registered."""
        self._optimizers: list[Any] = []
        self._fitting = False
        self._tapes = TapeWatch(self)
        self._profiled: dict[ModeKeys, float] = {}

    # -- registering -------------------------------------------------------------------------------

    def register_model(self, model: Any) -> None:
        """Watch a model: what its layers take and give. ``fit`` does so itself; a tape loop needs it."""
        if model is self._watched:
            return
        self._watched, self._names = model, None
        while self._hung:
            self._guard.run("detach", self._hung.pop().remove)
        self._hung.append(KerasFunctions([model], self._through))

    def set_model(self, model: Any) -> None:
        """Keras says which model the callback is for."""
        super().set_model(model)
        self._guard.run("model", self.register_model, model)

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Save the variables of an optimizer that ``compile`` does not know. It is given back as it is."""
        if not any(one is optimizer for one in self._optimizers):
            self._optimizers.append(optimizer)
        return optimizer

    def wrap_tape(self, tape: Any) -> Any:
        """Make each recording of a `tf.GradientTape` a step. The tape itself is given back."""
        return self._tapes.wrap(tape)

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Add a variable to a collection."""
        collection = self.get_collection(collection_name)
        if isinstance(collection, Collection):
            collection.add(variable)

    def has_default_hook_configuration(self, default_saved_collections: Sequence[str] = always_saved) -> bool:
        """Whether only what is always saved is saved."""
        return super().has_default_hook_configuration(default_saved_collections)

    def should_save_layer(self, layer_name: str) -> bool:
        """Whether the current step saves what a layer takes and gives."""
        return self.should_save_tensor_or_collection(layer_name, CollectionKeys.LAYERS)

    # -- what Keras calls --------------------------------------------------------------------------

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._fitting = True

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin_batch(ModeKeys.TRAIN)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin_batch(ModeKeys.EVAL)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._begin_batch(ModeKeys.PREDICT)

    def _begin_batch(self, mode: ModeKeys) -> None:
        self._guard.run("step", self._end_step)
        self.set_mode(mode)
        self._begin_step(_MODES[mode])

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Save losses and metrics; end ``fit`` when somebody asked for it."""
        self._guard.run("metrics", self._save_logs, batch, logs)
        try:
            if self._recording is not None:
                self._recording.poll_stop(self.step)
        except TrainingStopped:  # Keras ends the training itself, in its own way
            self._watched.stop_training = True

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: D102
        self._guard.run("metrics", self._save_logs, batch, logs)

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._guard.run("metrics", self._save_logs, batch, {})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Keep what only the epoch has, such as ``val_loss``, for the step that is saved next."""
        for name, value in (logs or {}).items():
            if not self._known_by_batch(name) and np.ndim(value) == 0:
                self._collect(name)
                self._custom.scalars[name] = np.array([value], dtype=np.float64)
        self._guard.run("step", self._end_step)

    def _known_by_batch(self, name: str) -> bool:
        return name in self._members

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        self._fitting = False
        self._guard.run("step", self._end_step)

    def on_test_end(self, logs: Any = None) -> None:  # noqa: ARG002, D102
        if not self._fitting:
            self._guard.run("step", self._end_step)

    on_predict_end = on_test_end

    # -- tapes -------------------------------------------------------------------------------------

    def begin_tape_step(self) -> None:
        """A tape begins to record.

        Raises
        ------
        TrainingStopped
            A stop was requested.
        """
        self._begin_batch(ModeKeys.TRAIN)
        if self._recording is not None:
            self._recording.poll_stop(self.step)

    @property
    def saving(self) -> bool:
        """Whether the current step is saved."""
        return bool(self._due)

    @property
    def guard(self) -> Guard:
        """What failures end in."""
        return self._guard

    def _finish(self, status: RunStatus, error: str | None = None) -> None:
        self._tapes.close()
        super()._finish(status, error)

    # -- one call of Keras's functions -------------------------------------------------------------

    def _through(self, model: Any, mode: Mode, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not self._due or model is not self._watched:
            return original(*args)
        passes, batch = self._guard.run("names", self._wanted, mode) or (False, False)
        before = self._backend.before(model, args)  # while JAX has not taken the arrays away
        if mode is not Mode.TRAIN:
            self._guard.run("weights", self._save_weights, before)
        if passes or batch:
            result = self._seen(model, mode, original, args, passes=passes)
        else:
            result = original(*args)
        if mode is Mode.TRAIN:
            after = self._backend.after(model, result)
            self._guard.run("weights", self._save_weights, after)
            self._guard.run("optimizer", self.save_optimizers, after)
        return result

    def _wanted(self, mode: Mode) -> tuple[bool, bool]:
        """Whether the step needs a look at the pass, and at the batch."""
        names = self.fresh_names()
        if names is None:  # not built yet, so that nobody knows the names
            return True, True
        inside = ["predictions", "predictions_0"]
        inside += [f"{one.path}/{what}" for one in names.layers for what in ("inputs", "outputs")]
        if mode is Mode.TRAIN:
            inside += [gradient_name(names.of(one.variable)) for one in names.weights]
        batch = ("inputs", "inputs_0", "labels", "labels_0")
        return any(map(self._decision, inside)), any(map(self._decision, batch))

    def fresh_names(self) -> ModelNames | None:
        """Names of the watched model; None when it is not built."""
        model = self._watched
        if model is None or not model.built:
            return None
        if self._names is None or self._names.stale:
            self._names = ModelNames(model)
            self._resolve(self._names)
        return self._names

    def _resolve(self, names: ModelNames) -> None:
        """Give variables that were added to collections their names."""
        saved = {id(site.variable): names.weight(site) for site in names.weights}
        for collection in self.get_collections().values():
            for variable in collection.variables if isinstance(collection, Collection) else ():
                if id(variable) in saved:
                    collection.add_tensor_name(saved[id(variable)])
                    collection.add_tensor_name(f"weights/{names.of(variable)}")

    def _seen(
        self,
        model: Any,
        mode: Mode,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        *,
        passes: bool,
    ) -> Any:
        backend, guard = self._backend, self._guard
        try:
            args, batch = backend.peek(model, mode, args)
        except StopIteration:
            return original(*args)  # the end of the data, said in Keras's own way
        if not model.built:
            guard.run("model", backend.build, model, mode, batch, self._watcher)
        guard.run("batch", self._save_batch, batch)
        sink = self.new_pass()
        if passes and backend.eager(model):
            with eagerly(backend, model), self._watcher(sink, apply=True):
                result = original(*args)
        else:
            if passes:
                guard.run("outputs", self._look, sink, model, mode, args, batch)
            result = original(*args)
        guard.run("outputs", self.save_pass, sink)
        return result

    def _look(self, sink: Pass, model: Any, mode: Mode, args: tuple[Any, ...], batch: Any) -> None:
        why = self._backend.unseen(model)
        if why:
            self._guard.notice("outputs", f"outputs and gradients are not seen: {why}")
            return
        sink.take_seen(self._backend.look(model, mode, args, batch, self._watcher, inputs=True))

    def _watcher(self, sink: Any, *, apply: bool) -> Any:
        names = self.fresh_names()
        return watch(
            self._guard,
            sink,
            sites=() if names is None else names.layers,
            models=(),
            optimizers=optimizers_of({"": self._watched}),
            apply=apply,
        )

    # -- what is saved -----------------------------------------------------------------------------

    def new_pass(self, *, batch: bool = True) -> Pass:
        """A collector for the current step; `batch` as for `Pass`."""
        names = self.fresh_names()
        known = {} if names is None else {id(one.variable): names.of(one.variable) for one in names.weights}
        return Pass(self._backend, self._wants, known.get, batch=batch)

    def _wants(self, name: str) -> tuple[bool, bool]:
        decision = self._decision(name)
        return bool(decision), decision.raw or any(not follows_from_row(*one) for one in decision.reductions)

    def save_pass(self, sink: Pass) -> None:
        """Hold what a pass showed."""
        for name, kind, module, taken in sink.found():
            self._hold(name, kind, taken, module)

    def hold_value(self, name: str, kind: Kind, value: Any, module: str = "") -> None:
        """Hold a tensor of the backend, or an array, if the current step saves it."""
        saved, values = self._wants(name)
        if saved:
            self._hold(name, kind, Taken.of(self._backend, value, values=values), module)

    def _hold(self, name: str, kind: Kind, taken: Taken, module: str = "") -> None:
        decision, recording = self._decision(name), self._recording
        if decision and recording is not None and int(np.prod(taken.shape)):
            key = self._key(name, kind, taken.dtype, taken.shape, module)
            recording.hold(key, taken.block, 0, taken.values, decision)

    def hold_number(self, name: str, value: Any) -> None:
        """Hold a loss or a metric, if the current step saves it."""
        self._collect(name)
        decision, recording = self._decision(name), self._recording
        if decision and recording is not None:
            number = np.array([value], dtype=np.float64)
            key = self._key(name, Kind.LOSS if name in _LOSSES else Kind.SCALAR, "float64", (1,))
            recording.hold(key, scalar_block([float(number[0])]), 0, number, decision)

    def _collect(self, name: str) -> None:
        if name not in self._members:
            of = CollectionKeys.LOSSES if name in _LOSSES else CollectionKeys.METRICS
            self.get_collection(of).add_tensor_name(name)

    def _save_logs(self, batch: int, logs: Any) -> None:
        if self._due:
            for name, value in {**(logs or {}), "batch": batch}.items():
                if np.ndim(value) == 0:
                    self.hold_number(name, value)

    def _save_weights(self, read: Callable[[Any], Any]) -> None:
        names = self.fresh_names()
        for site in () if names is None else names.weights:
            name = names.weight(site) if names is not None else ""
            if self._decision(name):
                self.hold_value(name, site.kind, read(site.variable), site.module)

    def save_optimizers(self, read: Callable[[Any], Any]) -> None:
        """Hold the variables of all optimizers that are known."""
        own = [] if self._watched is None else list(optimizers_of({"": self._watched}).values())
        extra = [one for one in self._optimizers if not any(one is other for other in own)]
        collection = self.get_collection(CollectionKeys.OPTIMIZER_VARIABLES)
        for optimizer in (*own, *extra):
            for name, variable in optimizer_names(optimizer, self.fresh_names() or self.loose):
                if not collection.has_tensor_name(name):
                    collection.add_tensor_name(name)
                if self._decision(name):
                    self.hold_value(name, Kind.OPTIMIZER, read(variable))

    def _save_batch(self, batch: Any) -> None:
        x, y, _ = keras.utils.unpack_x_y_sample_weight(batch)
        self.save_whole("inputs", Kind.INPUT, x)
        self.save_whole("labels", Kind.CUSTOM, y)

    def save_whole(self, prefix: str, kind: Kind, value: Any) -> None:
        """Hold what a model takes or gives: with numbers where there is more than one tensor."""
        if isinstance(value, (dict, list, tuple)):
            for index, one in enumerate(keras.tree.flatten(value)):
                self.hold_value(f"{prefix}_{index}", kind, one)
        elif value is not None:
            self.hold_value(prefix, kind, value)

    # -- by hand -----------------------------------------------------------------------------------

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Save a number as a metric of the current step, such as one computed in a tape loop."""
        if self._due:
            self._guard.run(f"record/{tensor_name}", self._record, tensor_name, tensor_value)

    def _record(self, name: str, value: Any) -> None:
        self._collect(name)
        self.hold_value(name, Kind.SCALAR, value)

    def save_tape_logs(self, model_inputs: Any = None, outputs: Any = None) -> None:
        """Save inputs and predictions of a tape loop."""
        if self._due:
            self._guard.run("inputs", self.save_whole, "inputs", Kind.INPUT, model_inputs)
            self._guard.run("predictions", self.save_whole, "predictions", Kind.ACTIVATION, outputs)

    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Add variables to the collection ``optimizer_variables``."""
        self.add_to_collection(CollectionKeys.OPTIMIZER_VARIABLES, optimizer_variables)

    # -- the timeline ------------------------------------------------------------------------------

    def profiling_start_batch(self, mode: ModeKeys = ModeKeys.TRAIN) -> None:
        """A batch of a loop of one's own begins."""
        self._profiled[mode] = time()

    def profiling_end_batch(self, mode: ModeKeys = ModeKeys.TRAIN) -> None:
        """It ends, and is put on the timeline of the run."""
        started = self._profiled.pop(mode, None)
        if started is not None:
            name = f"Step:{mode}"
            self.record_trace_events(started, name, name, duration=time() - started)

    def profiling_end(self) -> None:
        """Nothing is left to do: the timeline is written as it goes."""

    @contextmanager
    def profiler(self, mode: ModeKeys = ModeKeys.TRAIN) -> Iterator[None]:
        """Put what runs in the ``with`` block on the timeline."""
        self.profiling_start_batch(mode)
        try:
            yield
        finally:
            self.profiling_end_batch(mode)
