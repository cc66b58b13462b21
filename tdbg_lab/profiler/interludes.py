"""What a training loop does beside computing: saving, logging, callbacks, seen where libraries do it.

The functions of the libraries that the program has loaded are replaced, while a handle is attached, by
ones that look at the clock and call them; they are put back when the last handle goes. Nothing is loaded.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tdbg_lab.listening import forget, listen
from tdbg_lab.profiler.spans import OWN_PHASES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tdbg_lab.listening import Listeners
    from tdbg_lab.profiler.spans import PhaseRecorder

__all__ = ["Interludes", "Place"]


class Place(NamedTuple):
    """Functions that make a phase."""

    phase: str
    module: str
    name: str
    """``function`` or ``Class.method``; a ``*`` at the end stands for the rest of the name."""


# Inner functions where there are some: programs may have imported the outer ones by name already.
_PLACES = (
    Place("checkpoint", "torch.serialization", "_save"),
    Place("checkpoint", "torch.serialization", "_legacy_save"),
    Place("checkpoint", "torch.distributed.checkpoint.state_dict_saver", "_save_state_dict"),
    Place("checkpoint", "safetensors.torch", "serialize_file"),
    Place("checkpoint", "keras.src.saving.saving_lib", "save_model"),
    Place("checkpoint", "keras.src.saving.saving_lib", "save_weights_only"),
    Place("logging", "torch.utils.tensorboard.writer", "SummaryWriter.add_*"),
    Place("logging", "tensorboardX.writer", "SummaryWriter.add_*"),
    Place("logging", "wandb.sdk.wandb_run", "Run.log"),
    Place("logging", "wandb.sdk.wandb_run", "Run._log"),
    Place("logging", "mlflow.tracking.client", "MlflowClient.log_*"),
    Place("callback", "lightning.pytorch.trainer.call", "_call_callback_hooks"),
    Place("callback", "pytorch_lightning.trainer.call", "_call_callback_hooks"),
    Place("callback", "transformers.trainer_callback", "CallbackHandler.call_event"),
    Place("callback", "ignite.engine.engine", "Engine._fire_event"),
    Place("callback", "keras.src.callbacks.callback_list", "CallbackList.on_epoch_begin"),
    Place("callback", "keras.src.callbacks.callback_list", "CallbackList.on_epoch_end"),
)
_LEAST_NS = 50_000
"""What is shorter stays with the phase around it."""
_LOOKS = (1, 10, 100)
"""Completed steps after which to look for libraries that were loaded meanwhile."""


class Training(Protocol):
    """The training, as its interludes know it: `tdbg_lab.capture.engine.Engine`."""

    open: bool
    step: int
    phases: PhaseRecorder | None
    guard: Any


class Interludes:
    """Phases of one training that its own loop does not name. Only what its thread does counts.

    A phase that the user has opened keeps its time. Not true in a boolean context when there is nothing
    to record.
    """

    def __init__(self, training: Training) -> None:
        self._training = training
        self._thread = get_ident()
        self._running: set[str] = set()
        self._placed: list[tuple[Any, str]] = []
        """Module or class, and name of the function in it."""
        self._looks = list(_LOOKS)
        self._first = training.step
        if self:
            self._look()

    def __bool__(self) -> bool:
        return self._training.open and self._training.phases is not None

    def at_step_end(self) -> None:
        """A step is complete: its thread is the one that trains."""
        self._thread = get_ident()
        if self._looks and self._training.step - self._first >= self._looks[0]:
            self._looks.pop(0)
            self._look()

    def detach(self) -> None:
        """Put back what nobody else listens to. Idempotent."""
        while self._placed:
            owner, name = self._placed.pop()
            forget(owner, name, self)

    def begin(self, phase: str) -> bool:
        """Whether the time of a call that begins now is wanted."""
        if get_ident() != self._thread or phase in self._running or not self:
            return False
        self._running.add(phase)
        return True

    def end(self, phase: str, begin: int, now: int) -> None:
        """The call is over; times by `time.perf_counter_ns`."""
        self._running.discard(phase)
        training = self._training
        phases = training.phases
        if now - begin < _LEAST_NS or phases is None or not training.open:
            return
        if phases.current is None or phases.current in OWN_PHASES:
            training.guard.run("spans", phases.ended, phase, begin, now, training.step)

    def _look(self) -> None:
        """Listen to the functions of the libraries that are loaded."""
        self._training.guard.run("interludes", self._place)

    def _place(self) -> None:
        for place in _PLACES:
            module = sys.modules.get(place.module)
            if module is None:
                continue
            for owner, name in _functions(module, place.name):
                heard = functools.partial(_heard, place.phase)
                if (owner, name) not in self._placed and listen(owner, name, self, heard):
                    self._placed.append((owner, name))


def _functions(module: Any, name: str) -> Iterator[tuple[Any, str]]:
    """Module or class, and name in it, of the functions that a name of `Place` stands for."""
    cls, dot, method = name.rpartition(".")
    owner = getattr(module, cls, None) if dot else module
    if owner is None:
        return
    if not method.endswith("*"):
        yield owner, method
        return
    yield from ((owner, one) for one in list(vars(owner)) if one.startswith(method[:-1]))


def _heard(phase: str, original: Callable[..., Any], listeners: Listeners[Interludes]) -> Callable[..., Any]:
    @functools.wraps(original)
    def heard(*args: Any, **kwargs: Any) -> Any:
        told = [one for one in listeners if one.begin(phase)]
        if not told:
            return original(*args, **kwargs)
        begin = perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            now = perf_counter_ns()
            for one in told:
                one.end(phase, begin, now)

    return heard
