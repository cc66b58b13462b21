"""Watching a step that runs eagerly: everything is reduced at once, before anything can change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.keras.checks.modes import PassModes
from tdbg_lab.capture.keras.compared import compared, write_compared
from tdbg_lab.capture.keras.entry import Entry, write_entry
from tdbg_lab.capture.keras.naming import channel_axis, marks_of
from tdbg_lab.capture.keras.rows import Rows
from tdbg_lab.capture.keras.scalars import LOSS_NAME
from tdbg_lab.capture.keras.sinks import CallCounter, applied
from tdbg_lab.capture.many_calls import MAX_CALLS, tell_of_more
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import LayerSite
    from tdbg_lab.capture.keras.optimizers import OptimizerProbe
    from tdbg_lab.capture.keras.seen import Seen

__all__ = ["LiveSink", "add_loss", "add_output", "write_seen"]


class LiveSink:
    """Writes rows while the step runs."""

    def __init__(
        self, engine: Engine, backend: Backend, probe: OptimizerProbe, due: int, *, inputs: bool
    ) -> None:
        self._engine = engine
        self._backend = backend
        self._probe = probe
        self._due = due
        self._counter = CallCounter(backend, inputs=inputs)
        self._entry = Entry(backend)
        self._losses = 0
        self.modes = PassModes()

    @property
    def exact(self) -> bool:
        """Whether the loss was seen."""
        return self._losses > 0

    def output(self, site: LayerSite, inputs: Any, output: Any) -> None:
        """A layer was called."""
        rows = Rows(self._engine, self._backend, self._due)
        for kind, index, value in self._counter.tensors(site, inputs, output):
            add_output(rows, site, kind, index, value)
        rows.write()
        entry = self._entry.of(site, inputs)
        if entry is not None:
            write_entry(self._engine, self._backend, entry, self._entry.role)

    def loss(self, value: Any) -> None:
        """The loss is known."""
        rows = Rows(self._engine, self._backend, self._due)
        add_loss(rows, self._losses, value)
        self._losses += 1

    def compared(self, model: Any, y: Any, y_pred: Any) -> None:
        """The loss is known, and what it was computed of."""
        if self._engine.plan.config.checks:
            write_compared(self._engine, self._backend, list(compared(model, self._backend, y, y_pred)))

    def gradients(
        self, optimizer: Any, gradients: Sequence[Any], variables: Sequence[Any] | None, state: Any
    ) -> None:
        """Gradients are about to be applied."""
        owned = optimizer._trainable_variables if variables is None else variables  # noqa: SLF001
        values = applied(optimizer, gradients, state)
        found = [(id(one), value) for one, value in zip(owned, values, strict=True) if value is not None]
        self._probe.gradients(self._due, found)


def add_output(rows: Rows, site: LayerSite, kind: Kind, index: int, value: Any) -> None:
    """Add what a layer returned, or what it was given."""
    base = f"{kind}/{site.label}"
    if index >= MAX_CALLS:
        tell_of_more(rows.engine, base)
        return
    shape = rows.backend.described(value)[1]
    rows.add(
        base if index == 0 else f"{base}:{index}",
        kind,
        value,
        module=site.module or site.label,
        layer=site.layer,
        axis=channel_axis(site.layer, shape),
        marks=marks_of(site.layer) if kind is Kind.ACTIVATION else (),
    )


def add_loss(rows: Rows, index: int, value: Any, *, player: str = "") -> None:
    """Add the loss of the batch; a further one of the same step gets a number, that of a game its player."""
    name = f"{LOSS_NAME}/{player}" if player else LOSS_NAME
    name = name if index == 0 else f"{name}:{index}"
    rows.add_number(name, Kind.LOSS, float(rows.backend.array(value)))


def write_seen(engine: Engine, backend: Backend, probe: OptimizerProbe, due: int, seen: Seen) -> None:
    """Write what a second function saw."""
    rows = Rows(engine, backend, due)
    for one in seen.outputs:
        add_output(rows, one.site, one.kind, one.index, one.value)
    rows.write()
    for index, value in enumerate(seen.losses):
        add_loss(rows, index, value)
    if engine.plan.config.checks:
        engine.guard.run("check/loss", write_compared, engine, backend, seen.pairs)
    if seen.entry is not None:
        engine.guard.run("check/batch", write_entry, engine, backend, seen.entry, seen.role)
    probe.gradients(due, seen.gradients)
