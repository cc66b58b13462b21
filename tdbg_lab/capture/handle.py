"""The handle that `attach` returns."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import finalize

from tdbg_lab.capture import ending
from tdbg_lab.capture.changing import follow
from tdbg_lab.capture.profiling import Profiling
from tdbg_lab.capture.stopping import StopReason, save_first
from tdbg_lab.capture.switch import is_off
from tdbg_lab.errors import CaptureError, ConflictError, TrainingStopped
from tdbg_lab.profiler.interludes import Interludes
from tdbg_lab.profiler.turns import Turns
from tdbg_lab.profiler.window import PROFILE, ProfileWindow
from tdbg_lab.records import Kind, Mode, RunStatus
from tdbg_lab.store.control import request
from tdbg_lab.store.settings import SET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from tdbg_lab.capture.cost import Cost
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.guard import Problem
    from tdbg_lab.capture.sessions import Session
    from tdbg_lab.profiler.window import PythonProfiler
    from tdbg_lab.run import Run
    from tdbg_lab.store import Request

__all__ = ["Handle"]

_RECORDED = ("custom", "weight", "bias", "gradient", "activation", "input")
"""Kinds of what a program records itself."""


class Handle:
    """A capture that is running. `detach` ends it; leaving a ``with`` block does the same.

    The hooks keep the handle alive, so it need not be kept in a variable.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        request: str,
        checkpoint: Callable[[StopReason], object] | None = None,
        on_stop: Callable[[StopReason], object] | None = None,
    ) -> None:
        self._engine = engine
        self._session: Session | None = None
        self._checkpoint = checkpoint
        self._on_stop = on_stop
        self._run: Run | None = None
        self._label_codes: dict[str, dict[str, int]] = {}
        self.request = request
        """What was asked for as the store; attaching to the same again ends this handle."""
        self.created_ns = time.time_ns()
        self.thread = threading.current_thread()
        """Where it was made: that of the training, as a rule."""
        self._stop_reason: str | None = None
        self.stop_requested = False
        """Whether somebody asked the run to stop."""
        self._finalizer = finalize(
            self, ending.left_behind, engine, self._parts(), ending.Circumstances.now()
        )

    def _parts(self) -> list[Session]:
        """Filled by `adopt`; a list, so that the finalizer sees it without holding the handle."""
        self._profiling = Profiling(self._engine)
        self._interludes = Interludes(self._engine)
        self._turns = Turns(self._engine)
        self._sessions: list[Session] = [self._profiling, self._interludes, self._turns]
        return self._sessions

    def end_is_told(self) -> None:
        """A library tells when training has ended: a handle that is left behind then says that it did not."""
        self._finalizer.detach()
        now = ending.Circumstances.now(end_is_told=True)
        self._finalizer = finalize(self, ending.left_behind, self._engine, self._sessions, now)

    def adopt(self, session: Session) -> None:
        """Take over the hooks of a framework."""
        self._session = session
        self._sessions.append(session)
        self._profile_on()

    # -- what it knows ----------------------------------------------------------------------------

    @property
    def attached(self) -> bool:
        """Whether it still captures."""
        return self._engine.open

    @property
    def session(self) -> Session | None:
        """The hooks of a framework that hang on this handle."""
        return self._session

    @property
    def run_path(self) -> Path:
        """The run directory."""
        return self._engine.folder.path

    @property
    def run(self) -> Run:
        """The run, for reading, as it is now; it is the same object each time."""
        self.flush()
        if self._run is None:
            from tdbg_lab.run import open_run

            self._run = open_run(self.run_path)
        else:
            self._run.refresh()
        return self._run

    @property
    def step(self) -> int:
        """Steps completed."""
        return self._engine.step

    @property
    def cost(self) -> Cost:
        """What capture costs, averaged over the steps since the last saved one."""
        return self._engine.meter.last

    @property
    def save_every(self) -> int:
        """The distance of saved steps, in steps: where it is chosen, what it is now."""
        return self._engine.save_every

    @property
    def problems(self) -> list[Problem]:
        """Probes that failed and are off, and what cannot be seen."""
        return list(self._engine.guard.problems.values())

    def status(self) -> str:
        """One line: where it stands and what it costs."""
        engine, cost = self._engine, self.cost
        state = "capturing" if engine.open else "detached"
        parts = [f"{state} into {self.run_path}", f"step {engine.step}"]
        if engine.open:
            parts.append(f"saving every {self.save_every}")
        if cost.step_ms:
            parts.append(f"{cost.capture_ms:.2f} ms of {cost.step_ms:.1f} ms a step ({cost.share:.1%})")
        off = [one.probe for one in self.problems if one.off]
        if off:
            parts.append(f"{len(off)} off after a failure: {', '.join(off[:3])}")
        parts += [f"not seen: {one.message}" for one in self.problems if not one.off]
        return "tdbg-lab: " + ", ".join(parts)

    def __repr__(self) -> str:
        return f"<{self.status()}{'; .detach() ends it' if self.attached else ''}>"

    # -- what the user says -----------------------------------------------------------------------

    def record(self, name: str, tensor: Any, labels: Any = None, *, kind: str = "custom") -> None:
        """Record a tensor of one's own, of the last forward, when its collection is due.

        Parameters
        ----------
        name
            Name of the series.
        tensor
            A tensor, an array or numbers; rows are the first dimension.
        labels
            One per row, kept with the raw values: same rows, same order.
        kind
            What it is, where no hook of ours sees it: ``"weight"``, ``"bias"``, ``"gradient"``,
            ``"activation"`` or ``"input"``. Pictures and rules take it for that then; its collection is
            that of the kind.

        Raises
        ------
        CaptureError
            There is no such kind.
        """
        of = _kind(kind)
        if self._engine.mask:
            self._engine.guard.run(f"record/{name}", self._record, name, tensor, labels, of)

    def _record(self, name: str, tensor: Any, labels: Any, kind: Kind) -> None:
        from tdbg_lab.capture.values import add_labels, add_rows, add_summary, described

        engine = self._engine
        dtype, shape = described(tensor)
        key, membership = engine.key(name, kind, dtype=dtype, shape=shape)
        if not membership.mask & engine.mask:
            return
        reason = add_summary(engine.recorder, key, tensor)
        if reason:
            engine.guard.notice(f"record/{name}", f"{name} is recorded without numbers: {reason}")
        elif membership.raw_mask & engine.mask:
            add_rows(engine.recorder, name, tensor, membership.sample_rows)
            rows = shape[0] if shape else 1
            if labels is not None and len(labels) != rows:
                engine.guard.notice(
                    f"record/{name}/labels",
                    f"the labels of {name} are left out: there are {len(labels)} for {rows} rows",
                )
            elif labels is not None:
                codes = self._label_codes.setdefault(name, {})
                add_labels(engine.recorder, f"{name}/labels", labels, membership.sample_rows, codes)

    def log(self, values: Mapping[str, Any] | None = None, /, **scalars: Any) -> None:
        """Log numbers: ``handle.log(accuracy=0.9)`` or ``handle.log({"val/accuracy": 0.9})``."""
        engine = self._engine
        if engine.open:
            for name, value in {**(values or {}), **scalars}.items():
                engine.guard.run(f"log/{name}", self._log, name, value)

    def _log(self, name: str, value: Any, kind: Kind = Kind.SCALAR) -> None:
        from tdbg_lab.capture.values import add_number

        engine = self._engine
        key, membership = engine.key(str(name), kind)
        if membership.mask & engine.mask:
            add_number(engine.recorder, key, value)

    def log_in(self, mode: str | Mode, values: Mapping[str, Any]) -> None:
        """Log numbers with the last forward of `mode`, whatever forward came last."""
        engine = self._engine
        if engine.open:
            engine.guard.run("steps", engine.return_to, _mode(mode))
            self.log(values)

    def log_loss(self, name: str, value: Any) -> None:
        """Log a loss that no module returns, as ``loss/<name>``."""
        engine = self._engine
        if engine.open:
            engine.loss_visit = engine.visit
            engine.losses_logged = True
            engine.guard.run(f"loss/{name}", self._log, f"loss/{name}", value, Kind.LOSS)

    @contextmanager
    def forward(self, mode: str | Mode) -> Iterator[None]:
        """What runs within the ``with`` block is one forward, where the model is not called as a whole."""
        engine = self._engine
        if not engine.open:
            yield
            return
        training = _mode(mode) is Mode.TRAIN
        engine.guard.run("steps", lambda: engine.begin_forward(training=training))
        try:
            yield
        finally:
            if engine.open:
                engine.guard.run("steps", engine.end_forward)

    def called_by_parts(self) -> None:
        """Say that parts of the model are called instead of the model: whatever of it runs counts."""
        self._engine.guard.run("steps", self._engine.see_parts)

    @contextmanager
    def mode(self, mode: str | Mode) -> Iterator[None]:
        """What happens within the ``with`` block is of this mode, whatever the model says."""
        wanted = _mode(mode)
        engine = self._engine
        before, engine.override = engine.override, wanted
        engine.guard.run("steps", engine.enter_mode, wanted)
        try:
            yield
        finally:
            engine.override = before
            engine.guard.run("steps", engine.leave_mode)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Show what runs within the ``with`` block as a phase on the timeline."""
        engine = self._engine
        phases = engine.phases
        if phases is None or not engine.open:
            yield
            return
        engine.guard.run("spans", phases.begin, name, engine.step)
        try:
            yield
        finally:
            engine.guard.run("spans", phases.end, name)

    def profile(
        self,
        steps: int | None = None,
        *,
        seconds: float | None = None,
        start: int | None = None,
        operators: bool = True,
        shapes: bool = True,
        memory: bool = True,
        stacks: bool = True,
        python: PythonProfiler = "sampling",
    ) -> str:
        """Profile operators and Python functions from the next step on; see `Run.request_profile`.

        May be called from the training loop or from another cell or thread, and returns at once: the
        id of the request.

        Raises
        ------
        ConfigError
            The window makes no sense.
        ConflictError
            The handle is detached.
        StoreError
            The request cannot be written.
        """
        window = ProfileWindow(
            steps=steps,
            seconds=seconds,
            start=start,
            operators=operators,
            shapes=shapes,
            memory=memory,
            stacks=stacks,
            python=python,
        )
        if is_off():
            return ""
        if not self._engine.open:
            raise ConflictError("The handle is detached: there are no steps to profile.")
        identity = request(self.run_path, PROFILE, by="handle", arguments=window.dump())
        self._engine.control.look_now()
        return identity

    def wrap_tape(self, tape: Any) -> Any:
        """Record what a `tf.GradientTape` sees: ``with handle.wrap_tape(tf.GradientTape()) as tape``.

        Raises
        ------
        CaptureError
            The handle is not one of a Keras model on TensorFlow, or `tape` is no tape.
        """
        if not self._engine.open:
            return tape
        wrap = getattr(self._session, "wrap_tape", None)
        if wrap is None:
            raise CaptureError("wrap_tape needs a handle of a Keras model on the TensorFlow backend.")
        return wrap(tape)

    def advance(self) -> None:
        """End the step by hand, where there is neither an optimizer nor a model that is called."""
        engine = self._engine
        if engine.open:
            engine.guard.run("steps", engine.before_step)
            engine.guard.run("steps", engine.close_step)
            self.at_step_end()
            engine.guard.run("steps", engine.enter_train_step)

    def flush(self) -> None:
        """Write what waits for the next step, so that it can be read now.

        Numbers of steps that hold nothing else are written some steps together. Notebooks do this by
        themselves at the end of each cell.
        """
        self._engine.flush()

    # -- the end ----------------------------------------------------------------------------------

    def at_step_end(self) -> None:
        """A step is complete: change a setting, profile or stop, if somebody asked for it.

        Raises
        ------
        TrainingStopped
            A stop was requested and there is no `on_stop`.
        """
        if self._engine.phases is not None:
            self._interludes.at_step_end()
            self._turns.at_step_end()
        request = self._engine.poll() if self._engine.control.due() else None
        if request is not None and self._engine.open:
            if request.kind == SET:
                follow(self._engine, getattr(self._session, "settings", None), request)
            elif request.kind == PROFILE:
                self._profiling.follow(request)
            else:
                self._stop(request)
        if self._profiling.active:
            self._profile_on()

    def _profile_on(self) -> None:
        if self._profiling.active and self._engine.open:
            self._engine.guard.run("profile", self._profiling.at_step_end)

    def _stop(self, request: Request) -> None:
        engine, step = self._engine, self._engine.step
        self.stop_requested = True
        reason = self._stop_reason = StopReason.of(request, engine)
        saved = save_first(engine, self._checkpoint, reason)
        if self._on_stop is not None:
            engine.guard.run("control", engine.control.answer, request, f"on_stop was called{saved}")
            self._on_stop(reason)
            return
        engine.guard.run("control", engine.control.answer, request, f"stopped at step {step}{saved}")
        self._end(RunStatus.STOPPED, reason)
        raise TrainingStopped(reason, step=step)

    def detach(self) -> None:
        """End the capture: hooks come off, the run is closed. Idempotent."""
        self._end(*ending.outcome(None, stopped=self._stop_reason))

    def _end(self, status: RunStatus, error: str | None = None) -> None:
        if self._session is not None:
            self._engine.guard.run("detach", self._session.detach)
        self._engine.guard.run("profile", self._profiling.detach)
        self._engine.guard.run("interludes", self._interludes.detach)
        self._engine.guard.run("turns", self._turns.detach)
        self._engine.finish(status, error)
        self._finalizer.detach()

    def disown(self) -> None:
        """Forget the run without writing: this is a forked child, the run is the parent's."""
        self._engine.abandon()
        self._interludes.detach()
        self._turns.forget()
        self._finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._end(*ending.outcome(error, stopped=self._stop_reason))


def _kind(kind: str) -> Kind:
    if kind not in _RECORDED:
        raise CaptureError(f"kind is {kind!r}; expected one of {', '.join(_RECORDED)}.")
    return Kind(kind)


def _mode(mode: str | Mode) -> Mode:
    try:
        return Mode(mode)
    except ValueError:
        raise CaptureError(f"mode is {mode!r}; expected 'train', 'eval' or 'predict'.") from None
