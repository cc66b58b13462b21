"""Everything that hangs on the models of one handle: what is read around each call of Keras's functions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.keras.backends.choice import backend_named
from tdbg_lab.capture.keras.checks.watch import LoopWatch
from tdbg_lab.capture.keras.functions import KerasFunctions, eagerly
from tdbg_lab.capture.keras.live import LiveSink, write_seen
from tdbg_lab.capture.keras.naming import layer_sites, weight_sites
from tdbg_lab.capture.keras.optimizers import OptimizerProbe, optimizers_of
from tdbg_lab.capture.keras.scalars import StepScalars, loss_tracker
from tdbg_lab.capture.keras.settings import KerasSettings
from tdbg_lab.capture.keras.watch import watch
from tdbg_lab.capture.keras.weights import WeightProbe
from tdbg_lab.capture.keras.wrapped_tape import wrapped
from tdbg_lab.errors import CaptureError
from tdbg_lab.records import Kind, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.handle import Handle
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.checks.modes import PassModes
    from tdbg_lab.capture.keras.tape import TapeLoop
    from tdbg_lab.capture.keras.watch import Sink

__all__ = ["KerasSession", "supported_backend"]


def supported_backend() -> Backend:
    """The backend that Keras uses in this process.

    Raises
    ------
    CaptureError
        It is one that does not train.
    """
    name = keras.backend.backend()
    backend = backend_named(name)
    if backend is None:
        raise CaptureError(
            f"Keras uses the backend {name!r}; expected 'tensorflow', 'jax' or 'torch' (KERAS_BACKEND)."
        )
    return backend


class KerasSession:
    """What hangs on the models of one handle."""

    def __init__(
        self,
        engine: Engine,
        handle: Handle,
        models: Mapping[str, Any],
        backend: Backend,
        optimizers: Mapping[str, Any] | None = None,
    ) -> None:
        self.engine = engine
        self.handle = handle
        self.backend = backend
        self.models = dict(models)
        self._given = dict(optimizers or {})
        self.failed: Callable[[BaseException], None] | None = None
        """Called with what Keras's functions raise, besides the end of the data."""
        self.loop: TapeLoop | None = None
        """Steps of a loop with gradient tapes."""
        self.scalars = StepScalars(engine, backend)
        plan = engine.plan
        self.output_bits = plan.mask_of(Kind.ACTIVATION, Kind.INPUT)
        self._inputs = any(
            plan.mask_of(Kind.INPUT) & 1 << index and (not one.kinds or "input" in one.kinds)
            for index, one in enumerate(plan.collections)
        )
        self.pass_bits = self.output_bits | plan.mask_of(Kind.GRADIENT)
        self.settings = KerasSettings(backend.name, self.models, lambda: self.optimizer_map)
        self.checks = LoopWatch(engine, backend) if plan.config.checks else None
        self._built: tuple[int, ...] = ()
        self._traced: set[tuple[str, Mode]] = set()
        """Names of models that were traced to build them, and for what."""
        self.optimizer_map: dict[str, Any] = {}
        self.refresh()
        self._functions = KerasFunctions(self.models.values(), self._through)
        self._begun = engine.step, engine.guard.run("steps", self._updates) or 0

    # -- what there is ----------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look again at layers, weights and optimizers, when a model was built since."""
        optimizers = self._given or optimizers_of(self.models)
        now = (
            *(len(model.variables) for model in self.models.values()),
            *(id(one) for one in optimizers.values()),
        )
        if now == self._built:
            return
        self._built = now
        self.optimizer_map = optimizers
        layers = layer_sites(self.models)
        plan = self.engine.plan
        plan.place_modules({id(site.layer): site.module for site in layers})
        self.sites = [
            site
            for site in layers
            if not site.looped and (site.leaf or plan.wants_module(site.module, site.layer))
        ]
        weights = weight_sites(layers)
        self.weights = WeightProbe(self.engine, self.backend, weights)
        if self.checks is not None:
            self.checks.find(layers, weights)
        self.optimizers = OptimizerProbe(self.engine, self.backend, optimizers, self.weights, self.checks)
        self.step_bits = self.pass_bits | self.weights.mask | self.optimizers.mask

    def watcher(self, sink: Sink | None, *, apply: bool, losses: bool = True) -> Any:
        """Opens the watch on a pass; the loss of an evaluation is that of the whole pass, said at its end."""
        return watch(
            self.engine.guard,
            sink,
            sites=self.sites,
            models=list(self.models.values()),
            optimizers=self.optimizer_map,
            apply=apply,
            losses=losses,
        )

    def wrap_tape(self, tape: Any) -> Any:
        """A gradient tape whose loop is recorded, see `tdbg_lab.capture.keras.wrapped_tape`."""
        return wrapped(self, tape)

    def detach(self) -> None:
        """Give the functions back as they were. Idempotent."""
        self.engine.guard.run("scalars", partial(self.scalars.drain, wait=True))
        self.engine.guard.run("steps", self._tell_unseen)
        if self.checks is not None:
            self.checks.detach()
        if self.loop is not None:
            self.engine.guard.run("tape", self.loop.detach)
        self._functions.remove()

    def _updates(self) -> int:
        """Steps that the optimizers which `attach` was given have taken, by their own count."""
        return sum(int(keras.ops.convert_to_numpy(one.iterations)) for one in self._given.values())

    def _tell_unseen(self) -> None:
        """Say so when the models were trained and nobody told of a step."""
        step, updates = self._begun
        unseen = self._updates() - updates
        if self.engine.step == step and unseen > 0:
            tape = ", or wrap each gradient tape by handle.wrap_tape"
            self.engine.guard.notice(
                "steps",
                f"the optimizer updated the model {unseen} times, of which no step was seen: train with "
                f"model.fit or train_on_batch{tape if self.backend.name == 'tensorflow' else ''}",
            )

    def _through(self, model: Any, mode: Mode, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """One call of one of Keras's functions."""
        if not self.engine.open:
            return original(*args)
        try:
            if mode is not Mode.TRAIN:
                return self.run(model, mode, original, args)
            result = self.train(model, original, args)
        except BaseException as error:
            if self.failed is not None and not _ends_data(error):
                self.failed(error)
            raise
        self.handle.at_step_end()
        return result

    # -- one call ---------------------------------------------------------------------------------

    def train(self, model: Any, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Take a train step, or as many as Keras takes in one call."""
        engine = self.engine
        engine.enter_train_step()
        engine.begin_step()
        steps = int(model.steps_per_execution)
        due = 0
        for ahead in range(steps):
            due |= engine.due_at(engine.step + ahead)
        if not due & self.step_bits:
            return self._unsaved(model, original, args, steps)
        return self._saved(model, original, args, due, steps)

    def _unsaved(self, model: Any, original: Callable[..., Any], args: tuple[Any, ...], steps: int) -> Any:
        engine, batch = self.engine, None
        looking = self.checks is not None and self.backend.cheap_peek
        if looking:
            try:
                args, batch = self.backend.peek(model, Mode.TRAIN, args)
            except StopIteration:
                return original(*args)  # the end of the data, said in Keras's own way
            before = engine.guard.run("state", self.backend.before, model, args)
            self._look_at_loop(batch, before, steps)
        engine.enter_phase("step")
        result = original(*args)
        self._close(model, result, steps, exact=False, looked=looking)
        return result

    def _look_at_loop(self, batch: Any, read: Callable[[Any], Any] | None, steps: int) -> None:
        if self.checks is not None and read is not None:
            one = steps == 1  # of several steps in one call, a batch tells nothing
            self.checks.before_step(batch if one else None, read)

    def _saved(
        self, model: Any, original: Callable[..., Any], args: tuple[Any, ...], due: int, steps: int
    ) -> Any:
        engine, guard = self.engine, self.engine.guard
        try:
            args, batch = self.backend.peek(model, Mode.TRAIN, args)  # may wait for the data: no cost of ours
        except StopIteration:
            return original(*args)  # the end of the data, said in Keras's own way
        engine.enter_phase("capture")
        guard.run("model", self._build, model, Mode.TRAIN, batch)
        if steps > 1:
            guard.notice(
                "steps_per_execution",
                f"Keras runs {steps} steps in one call (steps_per_execution), of which only the first can be "
                "seen: it is saved when one of them is due",
            )
        before = self.backend.before(model, args)
        self._look_at_loop(batch, before, steps)
        guard.run("weights", self.weights.before, due, before)
        guard.run("optimizer/lr", self.optimizers.before, due, before)
        look = due & self.pass_bits and self._can_look(model)
        exact = False
        if look and self.backend.eager(model):
            sink = self.live(due)
            with eagerly(self.backend, model), self.watcher(sink, apply=True):
                engine.enter_phase("step")
                result = original(*args)
            exact = sink.exact
            self._look_at_modes(Mode.TRAIN, sink.modes)
        else:
            if look:
                exact = bool(guard.run("outputs", self._look, model, Mode.TRAIN, args, batch, due))
            engine.enter_phase("step")
            result = original(*args)
        engine.enter_phase("capture")
        after = self.backend.after(model, result)
        guard.run("weights", self.weights.after, due, after)
        guard.run("optimizer/moments", self.optimizers.after, due, after)
        self._close(model, result, steps, exact=exact, looked=True)
        return result

    def _look(self, model: Any, mode: Mode, args: tuple[Any, ...], batch: Any, due: int) -> bool:
        watcher = partial(self.watcher, losses=mode is Mode.TRAIN)
        seen = self.backend.look(model, mode, args, batch, watcher, inputs=self._inputs)
        write_seen(self.engine, self.backend, self.optimizers, due, seen)
        self._look_at_modes(mode, seen.modes)
        return bool(seen.losses)

    def _look_at_modes(self, mode: Mode, modes: PassModes | None) -> None:
        if self.checks is not None:
            self.checks.passed(mode, modes)

    def live(self, due: int) -> LiveSink:
        """Takes what a pass shows that runs eagerly."""
        return LiveSink(self.engine, self.backend, self.optimizers, due, inputs=self._inputs)

    def _close(self, model: Any, result: Any, steps: int, *, exact: bool, looked: bool) -> None:
        engine, guard = self.engine, self.engine.guard
        read = guard.run("state", self.backend.after, model, result)
        if read is not None:
            guard.run("scalars", self._add_scalars, model, result, read, engine.step + steps - 1, exact)
        saved = bool(engine.mask & self.step_bits)
        if self.checks is not None:
            self.checks.after_step(read if looked else None, everything=saved)
        if saved:
            guard.run("scalars", partial(self.scalars.drain, wait=True))
        for step in range(steps):
            engine.enter_train_step()
            engine.close_step(of=0 if step else steps)
        if not self._built or saved:
            guard.run("model", self.refresh)

    def _add_scalars(
        self,
        model: Any,
        result: Any,
        read: Callable[[Any], Any],
        step: int,
        exact: bool,  # noqa: FBT001
    ) -> None:
        self.scalars.add(step, self.backend.logs(result), loss_tracker(model), read, exact=exact)

    def run(self, model: Any, mode: Mode, original: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Run a batch in eval or predict mode."""
        engine, guard = self.engine, self.engine.guard
        outside, engine.override = engine.override, mode
        engine.begin_forward(training=False, gradients=False)
        try:
            due = engine.mask
            if not due & self.output_bits or not self._can_look(model):
                return original(*args)
            try:
                args, batch = self.backend.peek(model, mode, args)
            except StopIteration:
                return original(*args)
            guard.run("model", self._build, model, mode, batch)
            if self.backend.eager(model):
                sink = self.live(due)
                with eagerly(self.backend, model), self.watcher(sink, apply=True, losses=False):
                    result = original(*args)
                self._look_at_modes(mode, sink.modes)
                return result
            guard.run(f"outputs/{mode}", self._look, model, mode, args, batch, due)
            return original(*args)
        finally:
            engine.end_forward()
            engine.override = outside

    def _can_look(self, model: Any) -> bool:
        why = self.backend.unseen(model)
        if why:
            self.engine.guard.notice("outputs", f"outputs and gradients are not seen: {why}")
        return not why

    def _build(self, model: Any, mode: Mode, batch: Any) -> None:
        """Build a model before its step; once: a step that calls only its parts leaves it as it is."""
        name = next((name for name, one in self.models.items() if one is model), "")
        if not model.built and (name, mode) not in self._traced:
            self._traced.add((name, mode))
            self.backend.build(model, mode, batch, self.watcher)
        self.refresh()


def _ends_data(error: BaseException) -> bool:
    """Whether Keras takes the exception for the end of the data; TensorFlow has its own class."""
    return isinstance(error, StopIteration) or type(error).__name__ == "OutOfRangeError"
