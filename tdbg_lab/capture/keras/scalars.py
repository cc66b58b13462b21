"""Losses and metrics of every step, read without making training wait for the device.

Keras's logs are running means over the epoch. The loss of one batch is taken out of two of them that
follow each other (float32 sums: exact to about 1e-7 of the epoch's sum); on saved steps it is the
loss that was computed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.records import Kind, Mode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.records import TensorKey

__all__ = ["LOSS_NAME", "StepScalars", "loss_tracker"]

LOSS_NAME = "loss/total"
_MAX_WAITING = 64
_WRITE_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class _Waiting:
    step: int
    time_ns: int
    names: tuple[str, ...]
    """Of the logs; the sum and the count of the mean loss follow them in `kept`, where it is known."""
    kept: Any
    exact: bool
    """The loss of this step is known already."""


class StepScalars:
    """Numbers of train steps, written some steps late."""

    def __init__(self, engine: Engine, backend: Backend) -> None:
        self._engine = engine
        self._backend = backend
        self._waiting: deque[_Waiting | None] = deque()
        self._sum = self._count = 0.0
        self._rows: list[tuple[int, int, TensorKey, float]] = []
        self._written_ns = 0
        self.mask = engine.plan.mask_of(Kind.LOSS, Kind.SCALAR)

    def new_epoch(self) -> None:
        """Running means begin anew."""
        self._waiting.append(None)

    def add(self, step: int, logs: Any, tracker: Any, read: Callable[[Any], Any], *, exact: bool) -> None:
        """Take what a step returned.

        Parameters
        ----------
        logs
            Names and values, which may still be on a device.
        tracker
            The metric that averages the loss, or None.
        read
            Reads its variables.
        exact
            The loss of this step was recorded already.
        """
        flat = dict(_flat(logs))
        if tracker is not None:
            flat.pop(tracker.name, None)  # the running mean of what is recorded batch by batch
        values = list(flat.values())
        if tracker is not None:
            values += [read(tracker.total), read(tracker.count)]
        kept = self._backend.kept(values)
        self._waiting.append(_Waiting(step, self._engine.recorder.clock.now_ns(), tuple(flat), kept, exact))
        self.drain(wait=len(self._waiting) > _MAX_WAITING)

    def drain(self, *, wait: bool) -> None:
        """Read what is there, or all of it, and write it now and then."""
        while self._waiting:
            first = self._waiting[0]
            if first is None:
                self._sum = self._count = 0.0
            elif wait or self._backend.ready(first.kept):
                self._take(first)
            else:
                break
            self._waiting.popleft()
        if self._rows and (wait or self._engine.recorder.clock.now_ns() - self._written_ns >= _WRITE_NS):
            self._write()

    def _take(self, one: _Waiting) -> None:
        numbers = self._backend.numbers(one.kept)
        for name, value in zip(one.names, numbers, strict=False):
            self._add(one, name, Kind.SCALAR, value)
        if len(numbers) > len(one.names):
            total, count = numbers[-2:]
            if count <= self._count:
                self._sum = self._count = 0.0
            if count > self._count and not one.exact:
                self._add(one, LOSS_NAME, Kind.LOSS, (total - self._sum) / (count - self._count))
            self._sum, self._count = total, count

    def _add(self, one: _Waiting, name: str, kind: Kind, value: float) -> None:
        key, membership = self._engine.key(name, kind)
        if membership.mask & self._engine.due_at(one.step):
            self._rows.append((one.step, one.time_ns, key, value))

    def put(self, step: int, values: Mapping[str, float]) -> None:
        """Add numbers that are known already."""
        now = self._engine.recorder.clock.now_ns()
        for name, value in values.items():
            key, membership = self._engine.key(name, Kind.SCALAR)
            if membership.mask & self._engine.due_at(step):
                self._rows.append((step, now, key, value))
        self.drain(wait=True)

    def _write(self) -> None:
        rows, self._rows = self._rows, []
        self._written_ns = self._engine.recorder.clock.now_ns()
        steps, times, keys, values = zip(*rows, strict=True)
        self._engine.writer.append_scalars(steps, times, keys, values, mode=Mode.TRAIN)


def loss_tracker(model: Any) -> Any:
    """The metric that averages the loss of a model, one of the program's own first; None without one."""
    metrics = getattr(model, "metrics", ())
    means = [one for one in metrics if isinstance(one, keras.metrics.Mean) and one.name == "loss"]
    own = [one for one in means if one is not getattr(model, "_loss_tracker", None)]
    return next(iter((*own, *means)), None)


def _flat(logs: Any) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in logs.items() if isinstance(logs, dict) else ():
        if isinstance(value, dict):
            found += _flat(value)
        elif value is not None and not tuple(getattr(value, "shape", ())):
            found.append((str(name), value))
    return found
