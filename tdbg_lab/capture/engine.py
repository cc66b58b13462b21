"""Steps, modes and what is due: the part of capture that knows no framework.

A framework's hooks call `begin_forward`, `end_forward`, `before_step` and `close_step`, and ask
`mask` and `module_mask` whether anything is due; `record` and `log` of the handle end here too.
Rows belong to the *last forward seen*: a loss after it, a number logged after the optimizer step.
"""

from __future__ import annotations

from threading import RLock, get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.control import REQUESTS, ControlWatch
from tdbg_lab.capture.cost import BYTES_KEY, CAPTURE_KEY, EVERY_KEY, STEP_KEY, CostMeter
from tdbg_lab.capture.guard import STORE, Guard
from tdbg_lab.capture.keys import Keys
from tdbg_lab.capture.many_calls import MANY, is_spread
from tdbg_lab.capture.plan import Due, Plan
from tdbg_lab.capture.recorder import Recorder
from tdbg_lab.profiler.spans import PhaseRecorder
from tdbg_lab.records import Kind, Mode, RunStatus

if TYPE_CHECKING:
    from typing import Protocol
    from weakref import ref

    from tdbg_lab.capture.ranks import SilentWriter
    from tdbg_lab.config import CaptureConfig
    from tdbg_lab.store import RankWriter, Request, RunFolder

    class Layers(Protocol):
        """Hooks of layers that need not hang while nothing of a layer is due."""

        hung: bool

        def hang(self) -> None:
            """Hang them."""

        def take_off(self) -> None:
            """Take them off until something is due."""

    class Sets(Protocol):
        """Sets of data that are evaluated."""

        def ending(self) -> str:
            """What the name of a loss of the current batch ends with."""


__all__ = ["Engine"]

_CHEAP = (Kind.LOSS, Kind.SCALAR, Kind.CUSTOM, Kind.COST, Kind.CHECK)
_WARN_UNMATCHED_AFTER = 2
_BEHIND = "rows are left out where the device is many steps behind, rather than let the training wait for it"
_TRAIN = Mode.TRAIN  # a name of the module is found ten times faster than one of an enumeration


class Engine:
    """State of one capture.

    Attributes
    ----------
    step
        Optimizer steps completed.
    mask
        Collections that are due for the last forward, for everything but module hooks.
    module_mask
        The same for module hooks: 0 outside of a forward.
    """

    override: Mode | None = None
    """Mode set by the user, instead of the model's own."""
    sets: ref[Sets] | None = None
    """The sets of data that are evaluated, where they are told apart."""
    last_loss_visit = -1
    """The visit in which a loss module returned a tensor last."""
    last_node: Any = None
    """What the last loss of a module is in the graph of its gradients, as long as there are looks left."""
    looks_left = 0
    """Losses of modules that are still to be compared with what ``backward`` is called on."""
    trains_in_eval = False
    """Whether the last steps were of forwards in eval mode, of models to which it makes no difference: who
    evaluates them at each epoch may never have called ``train()`` again."""
    evaluates_in_train = False
    """Whether models are evaluated in train mode, where nothing can be trained by what is called."""
    adds_up = False
    """Whether the losses of a step's forwards add up to its own: they are divided by the labels of all."""
    _step_seen = False
    """Whether something of the current step was called to train."""
    _without_gradients = False
    """Whether the last forward was one that nothing can be trained by."""
    _with_gradients = False
    """Whether something was called since the last step that can be trained by it."""
    by_backward = False
    """Whether the training calls ``backward``, once it has."""
    _thread: int | None = None
    """The thread that trains, once it has begun to: the last one that called a model with gradients."""
    _pause: tuple[str, int] | None = None
    """A forward or a backward is over: what the time since then was spent on if another forward follows, and
    since when, by `time.perf_counter_ns`."""

    def __init__(
        self,
        folder: RunFolder,
        writer: RankWriter | SilentWriter,
        config: CaptureConfig,
        *,
        strict: bool = False,
        phases: bool = True,
        first_step: int = 0,
        chief: bool = True,
        control: ControlWatch | None = None,
    ) -> None:
        self.folder = folder
        self.chief = chief
        """Whether this rank speaks for the run; the others only write their rows."""
        self.writer = writer
        self.guard = Guard(strict=strict)
        self.plan = Plan(config)
        self.key = Keys(self.plan).find
        """The key of a tensor and its collections."""
        self.recorder = Recorder(writer)
        self.guard.on_problem = self.recorder.add_problem
        self.meter = CostMeter()
        self.phases = PhaseRecorder(writer) if phases else None
        self.control = control or ControlWatch(folder.path, kinds=REQUESTS)
        self.step = self.first_step = first_step
        self.mask = self.module_mask = 0
        self.module_bits = self.plan.mask_of(Kind.ACTIVATION, Kind.INPUT)
        self.costly = self.plan.mask_of(*(kind for kind in Kind if kind not in _CHEAP))
        """Collections whose steps are worth measuring and showing."""
        self.between = "data"
        """Phase from the end of a step on."""
        self.open = True
        self.rootless = False
        """Root forwards are not seen: the model is called by its parts, or compiled elsewhere."""
        self.forwards = self.forwards_ever = self.backwards = 0
        """Train forwards seen in the current step, all seen so far, and backwards in the current step."""
        self.lock = RLock()
        """Held while a layer is read."""
        self.layers: ref[Layers] | None = None
        """The hooks of the layers, where they can be taken off."""
        self.layers_seen = False
        """Whether a layer's hook was called in the current forward, where one is due."""
        self.step_began_ns, self.last_active_ns = 0, perf_counter_ns()
        """When something was called first in the last step to train, 0 before; and when the training was seen
        last: it began, a root was called of which there may be a backward, a step ended. By
        `time.perf_counter_ns`."""
        self.visit = 0
        """Grows with every new place: tells probes to start counting calls again."""
        self.loss_visit = self.other_visit = -1
        """The last visit in which a loss was seen, and the last one of another model."""
        self.losses_logged = False
        """Whether the program logs its losses itself, be it after the backward."""
        self.last_loss: ref[Any] | None = None
        """The tensor that a loss module returned last."""
        self._watching = True
        """Whether the hooks of the layers hang, or may hang."""
        self._due = Due(self.plan)
        self.depth = 0
        """Root forwards that are running, one within the other."""
        self._micro: dict[Mode, int] = {}
        self._saved_steps = 0
        self._enter(Mode.TRAIN, 0)

    # -- forwards ---------------------------------------------------------------------------------

    def begin_forward(self, *, training: bool, gradients: bool = True) -> None:
        """A root model is called; calls within calls do not count.

        Parameters
        ----------
        gradients
            Whether there may be a backward of it.
        """
        self.depth += 1
        if self.depth > 1:
            return
        self.forwards_ever += 1
        self._without_gradients = not gradients
        now = perf_counter_ns()
        if training:
            self.trains_in_eval = False
        trains = training and (gradients or self.forwards or not self.evaluates_in_train)
        mode = self.override or (_TRAIN if trains or (gradients and self.trains_in_eval) else Mode.EVAL)
        micro = self._micro.get(mode, 0)
        self._micro[mode] = micro + 1
        if gradients:
            self.last_active_ns, self._thread, self._with_gradients = now, get_ident(), True
        if mode is _TRAIN:
            self.forwards += 1
            if not self._step_seen:
                self._begin_step(now)
        else:
            self.meter.skip()
        self._enter(mode, micro)
        if micro >= MANY and not is_spread(micro) and not (gradients and mode is _TRAIN and self.backwards):
            self.pass_layers()
        elif self._watching or self.mask & self.module_bits:
            self.watch_layers()
        if self._pause is not None:
            self._end_pause()
        if self.phases is not None:
            self.phases.switch("forward" if mode is _TRAIN else "eval", self.step)

    def end_forward(self) -> None:
        """The root model has returned, or raised."""
        if self.depth > 1:
            self.depth -= 1
            return
        self.depth = 0
        self.module_mask = self.mask & self.module_bits if self.rootless else 0
        if self.recorder.mode is _TRAIN:
            self._pause = "other", perf_counter_ns()
        elif not self._without_gradients:  # a backward of it may follow
            self._pause = "data", perf_counter_ns()
        elif self.phases is not None:
            self.phases.switch("data", self.step)

    def begin_parts(self) -> None:
        """A part of a model is called to train, where nobody calls the whole."""
        if self.depth or not self.open or self.override not in {None, _TRAIN}:
            return
        self._train_again()
        self.last_active_ns = now = perf_counter_ns()
        self._thread = get_ident()
        if not self._step_seen:
            self._begin_step(now)
        if self._pause is not None:
            self._end_pause()
        if self.phases is not None and self.phases.current != "forward":
            self.phases.switch("forward", self.step)

    def begin_loss(self, *, gradients: bool, again: bool) -> None:
        """A loss is computed where nobody calls the whole model: without gradients, it is of an evaluation.

        Parameters
        ----------
        again
            This loss was computed before at the current place: it is of another batch.
        """
        if not self.open or self.override is not None:
            return
        if gradients:
            self._train_again()
        elif again or self.recorder.mode is not Mode.EVAL:
            self.begin_batch()
            self.watch_layers()

    def begin_batch(self) -> None:
        """A batch of an evaluation begins whose forward is not seen."""
        self._without_gradients = True
        self.meter.skip()
        micro = self._micro.get(Mode.EVAL, 0)
        self._micro[Mode.EVAL] = micro + 1
        self._enter(Mode.EVAL, micro)
        if self.phases is not None:
            self.phases.switch("eval", self.step)

    def may_evaluate(self) -> bool:
        """Whether a loss computed now, without gradients, may be of an evaluation in train mode.

        So it is between two steps, if nothing was called since the last one that can be trained by it. Of a
        training that needs no gradients it is the loss of a step.
        """
        between = self._without_gradients and not self._with_gradients and self.by_backward
        return between and self.override is None and self.recorder.mode is _TRAIN

    def is_of_step(self) -> bool:
        """Whether a loss computed now, with gradients, is of the step, though what was called last evaluates.

        That was called without gradients, as for what the step is to reach.
        """
        return self._without_gradients and self.forwards > 0 and self.override is None

    def see_evaluation(self) -> None:
        """What was called last was called to evaluate it, and so is what is called like this from now on."""
        self.evaluates_in_train = True
        self.forwards, self._step_seen, self._pause = 0, False, None
        self._micro.pop(_TRAIN, None)
        self.recorder.turn_to(Mode.EVAL, self._micro.get(Mode.EVAL, 0))
        self.begin_batch()

    def _train_again(self) -> None:
        """Parts of a model train, whatever was evaluated last."""
        if self.recorder.mode is not _TRAIN:
            self._without_gradients = False
            self.enter_train_step()
            self.watch_layers()

    def begin_backward(self) -> None:
        """A backward of the training begins."""
        if self._without_gradients and not self.override and self.recorder.mode is not _TRAIN:
            self.enter_train_step()  # of what was called before, or by its parts
        self.backwards += 1
        self.by_backward, self._pause = True, None
        if self.phases is not None and self.recorder.mode is _TRAIN:
            self.phases.switch("backward", self.step)

    def end_backward(self) -> None:
        """A backward is over: what is trained next needs data, if it is not the end of the step."""
        self._pause = "data", perf_counter_ns()

    def loads_nothing(self) -> None:
        """The forward that begins is of the batch of the last one: no data were waited for."""
        if self._pause is not None:
            self._pause = "other", self._pause[1]

    def begin_step(self) -> None:
        """A step begins whose forward is not seen."""
        if not self._step_seen:
            self._thread = get_ident()
            self._begin_step(perf_counter_ns())

    @property
    def trains_here(self) -> bool:
        """Whether this is the thread that trains, or none was seen to."""
        return self._thread in {None, get_ident()}

    def _begin_step(self, now: int) -> None:
        """Something is called to train, for the first time in this step."""
        self._step_seen = True
        self.step_began_ns = now
        if self.meter.skipped:
            self.meter.go_on(self.guard.spent_ns, self.guard.began_ns)

    def _end_pause(self) -> None:
        """Another forward begins."""
        if self.phases is not None and self._pause is not None:
            self.phases.split(*self._pause, self.step)
        self._pause = None

    def enter_train_step(self) -> None:
        """Make the train mode of this step the current place, whatever forward came last."""
        if self.recorder.mode is not _TRAIN or self.recorder.step != self.step:
            self._enter(Mode.TRAIN, max(0, self._micro.get(Mode.TRAIN, 0) - 1))

    def enter_mode(self, mode: Mode, *, measured: bool = False) -> None:
        """`mode` begins: what is recorded before its first forward belongs to it.

        Parameters
        ----------
        measured
            What follows is part of the step, and its time counts.
        """
        if self.depth or not self.open:
            return
        if mode is Mode.TRAIN:
            self.enter_train_step()
        else:
            if not measured:
                self.meter.skip()
            self._enter(mode, max(0, self._micro.get(mode, 0) - 1))
        self.module_mask = 0
        if self.rootless:
            self.watch_layers()

    def leave_mode(self) -> None:
        """The mode that the user set is over; where forwards are not seen, training goes on at once."""
        if self.rootless and not self.depth and self.open and self.override is None:
            self.enter_train_step()
            self.watch_layers()

    def return_to(self, mode: Mode) -> None:
        """Make the last forward of `mode` the current place again."""
        if self.recorder.mode is mode or self.depth or not self.open:
            return
        ended = mode is Mode.TRAIN and not self.forwards  # nothing was trained since the last step
        step = max(self.first_step, self.step - 1) if ended else self.step
        self._enter(mode, max(0, self._micro.get(mode, 0) - 1), step)

    def see_parts(self) -> None:
        """Root forwards are not seen: from now on whatever module runs counts."""
        self.rootless = True
        self.watch_layers()

    def watch_layers(self) -> None:
        """From now on module hooks see what is due at this place."""
        due = self.module_mask = self.mask & self.module_bits
        self._watching = due != 0
        layers = None if self.layers is None else self.layers()
        if layers is not None and layers.hung is not (due != 0):
            if due:
                layers.hang()
            else:
                layers.take_off()

    def pass_layers(self) -> None:
        """Nothing of a layer can be seen in the forward that has begun."""
        self.module_mask = 0
        layers = None if self.layers is None else self.layers()
        if layers is not None:
            layers.take_off()

    def _enter(self, mode: Mode, micro: int, step: int | None = None) -> None:
        step = self.step if step is None else step
        self.guard.step = step
        if not self.recorder.leave(step, mode, micro):
            self.guard.run(STORE, self.recorder.move_to, step, mode, micro)
        due = self._due
        known = mode is _TRAIN and due.first <= step < due.until
        self.mask = due.train if known else due.mask(step, mode, micro)
        self.visit += 1

    # -- steps ------------------------------------------------------------------------------------

    def before_step(self) -> None:
        """The optimizer is about to step."""
        self.depth = 0
        self.module_mask = 0
        if self.recorder.mode is not _TRAIN or self.recorder.step != self.step:
            self.enter_train_step()
        if self.phases is not None:
            if self._pause is not None and self._pause[0] == "other":  # a backward of which nobody was told
                self.phases.split("backward", self._pause[1], self.step)
            ours = self.mask & self.costly or self.between != "data"  # else what calls us is an optimizer
            self.phases.switch("capture" if ours else "optimizer", self.step)
        self._pause = None

    def step_begins(self) -> None:
        """What is read before the step has been read."""
        if self.phases is not None and self.mask & self.costly:
            self.phases.switch("optimizer", self.step)

    def step_ends(self) -> None:
        """The optimizer has stepped; what is read after it comes now."""
        if self.rootless:  # another optimizer's part of the step may follow
            self.watch_layers()
        if self.phases is not None and self.mask & self.costly:
            self.phases.switch("capture", self.step)

    def close_step(self, *, of: int = 1) -> None:
        """The step is complete: write its rows and go on to the next one.

        Parameters
        ----------
        of
            How many steps were made in one call, for the first of them; 0 for the others.
        """
        self.meter.step_done(self.guard.spent_ns, self.guard.began_ns)
        if of and self._due.interval is not None:
            self.guard.run("interval", self._choose_interval, of)
        if self.mask & self.costly:
            self.guard.run("cost", self._add_cost)
            self._warn_unmatched()
            if self.recorder.left_out:
                self.guard.notice("device", _BEHIND)
            self.recorder.tell_left_out(self.guard)
        self.guard.run(STORE, self.recorder.flush_rows)
        if self.guard.problems and self.guard.is_off(STORE):
            self.recorder.forget()
        self.step += 1
        self.last_active_ns = perf_counter_ns()
        if self.phases is not None:
            self.phases.switch(self.between, self.step)
        self.forwards = self.backwards = 0
        self.depth = 0
        self._step_seen, self._with_gradients, self._pause = False, False, None
        self._micro.clear()
        self.guard.step = self.step
        if self.rootless:
            self._enter(_TRAIN, 0)
            self.watch_layers()
        elif self._watching:
            self._rest_layers()

    def _rest_layers(self) -> None:
        """Take the hooks of layers off before the next forward, which may be compiled, if it is not saved."""
        layers = None if self.layers is None else self.layers()
        if layers is not None and not self.due_at(self.step) & self.module_bits:
            layers.take_off()
            self._watching = False

    def enter_phase(self, phase: str) -> None:
        """Go on to a phase that only the framework knows of, such as a whole compiled ``step``."""
        if self._pause is not None:
            self._end_pause()
        if self.phases is not None:
            self.phases.switch(phase, self.step)

    @property
    def save_every(self) -> int:
        """The distance of saved steps, where a collection does not say another."""
        return self._due.every

    def due_at(self, step: int) -> int:
        """The collections that are due at a train step, be it over or still to come."""
        return self._due.mask(step, Mode.TRAIN, 0)

    def _choose_interval(self, steps: int) -> None:
        due, meter, saved = self._due, self.meter, bool(self.mask & self.costly)
        if meter.step_ns and due.choose(meter.step_ns, meter.capture_ns, saved=saved, steps=steps):
            self.recorder.add_scalar(EVERY_KEY, float(due.every))

    def _add_cost(self) -> None:
        cost = self.meter.read(self.writer.bytes_written)
        if cost is not None:
            self.recorder.add_scalar(CAPTURE_KEY, cost.capture_ms)
            self.recorder.add_scalar(STEP_KEY, cost.step_ms)
            self.recorder.add_scalar(BYTES_KEY, float(cost.bytes_written))

    def _warn_unmatched(self) -> None:
        if self._saved_steps < _WARN_UNMATCHED_AFTER:
            self._saved_steps += 1
            if self._saved_steps == _WARN_UNMATCHED_AFTER:
                self.plan.warn_unmatched()

    # -- the end ----------------------------------------------------------------------------------

    def poll(self) -> Request | None:
        """The request that waits, if any; looked for at most every 0.2 s."""
        if not self.control.due():
            return None
        request: Request | None = self.guard.run("control", self.control.poll, self.step)
        return request

    def flush(self) -> None:
        """Write what waits for the next step. Another thread writes nothing: there may be a step just now."""
        if self.open and self.trains_here:
            self.guard.run(STORE, self.recorder.flush_all)
            if self.phases is not None:
                self.guard.run("spans", self.phases.flush)

    def finish(self, status: RunStatus, error: str | None = None) -> None:
        """Write what is left and close the run. Idempotent."""
        if not self.open:
            return
        self.open = False
        self.mask = self.module_mask = 0
        self.guard.run(STORE, self.recorder.flush)
        self.recorder.tell_left_out(self.guard)
        self.guard.run(STORE, self.recorder.close)
        if self.phases is not None:
            self.guard.run("spans", self.phases.close)
        self.guard.run("store.close", self.writer.close)
        if self.chief:
            last = self.step - 1 if self.step else None
            self.guard.run("store.status", self.folder.set_status, status, error, last_step=last)
        elif status is RunStatus.FAILED:
            self.guard.run("store.status", self.writer.write_failure, error or "")

    def abandon(self) -> None:
        """Forget everything without writing: this is a forked child."""
        self.open = False
        self.mask = self.module_mask = 0
        self.phases = None
