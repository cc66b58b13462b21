"""Optimizers: learning rate, gradients, moments, the scale of the loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tdbg_lab.capture.keras.rows import Rows, norm_of
from tdbg_lab.capture.keras.sinks import inner
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.checks.watch import LoopWatch
    from tdbg_lab.capture.keras.naming import WeightSite
    from tdbg_lab.capture.keras.weights import WeightProbe

__all__ = ["OptimizerProbe", "optimizer_slots", "optimizers_of"]


def optimizers_of(models: Mapping[str, Any]) -> dict[str, Any]:
    """The optimizers of models: that of `compile` has the model's name, others that of their attribute."""
    found: dict[str, Any] = {}
    for prefix, model in models.items():
        own = getattr(model, "optimizer", None)
        if isinstance(own, keras.optimizers.Optimizer):
            found[prefix] = own
        for name, value in vars(model).items():
            known = any(value is one for one in found.values())
            if isinstance(value, keras.optimizers.Optimizer) and not known and not name.startswith("_"):
                found[f"{prefix}.{name}" if prefix else name] = value
    return found


@dataclass(frozen=True, slots=True)
class _Slot:
    """A variable that an optimizer keeps for a weight, such as its momentum."""

    name: str
    module: str
    variable: Any


class OptimizerProbe:
    """What is read of the optimizers on a step that is saved."""

    def __init__(
        self,
        engine: Engine,
        backend: Backend,
        optimizers: Mapping[str, Any],
        weights: WeightProbe,
        checks: LoopWatch | None,
    ) -> None:
        self._engine = engine
        self._backend = backend
        self._optimizers = optimizers
        self._weights = weights
        self._checks = checks
        self.mask = engine.plan.mask_of(Kind.OPTIMIZER)
        self._slots: dict[str, list[_Slot]] = {}
        self._skipped = 0

    def before(self, due: int, read: Callable[[Any], Any]) -> None:
        """Add the learning rates that the step will use."""
        rows = Rows(self._engine, self._backend, due)
        for index, (name, optimizer) in enumerate(self._optimizers.items()):
            if self._is_spare(name, optimizer):
                continue
            if self._adds_up(inner(optimizer), read):
                self._weights.expect_none(_moved_by(inner(optimizer)))
            rate = self._rate(inner(optimizer), read)
            label = f"{name}.0" if len(self._optimizers) > 1 and name else str(index)
            if rate is not None:
                rows.add_number(f"optimizer/lr/{label}", Kind.OPTIMIZER, rate)
                if self._checks is not None:
                    self._checks.will_update(inner(optimizer), rate)
            if inner(optimizer) is not optimizer and optimizer.built:
                scale = float(self._backend.array(read(optimizer.dynamic_scale)))
                rows.add_number("optimizer/loss_scale", Kind.OPTIMIZER, scale)

    def _is_spare(self, name: str, optimizer: Any) -> bool:
        """Whether it is the one that ``compile()`` makes unasked, where the model's own ones train."""
        return not name and len(self._optimizers) > 1 and not optimizer.built

    def _count(self, optimizer: Any, read: Callable[[Any], Any]) -> Any:
        """Batches that an optimizer was given, as it counts them itself: `iterations` may be of updates."""
        return self._backend.array(read(optimizer._iterations)) if optimizer.built else np.zeros((), int)  # noqa: SLF001

    def _adds_up(self, optimizer: Any, read: Callable[[Any], Any]) -> bool:
        """Whether the step only adds gradients to those of others (``gradient_accumulation_steps``)."""
        steps = optimizer.gradient_accumulation_steps
        return bool(steps) and (int(self._count(optimizer, read)) + 1) % steps != 0

    def _rate(self, optimizer: Any, read: Callable[[Any], Any]) -> float | None:
        rate = optimizer._learning_rate  # noqa: SLF001 - the property reads variables, which JAX has taken away
        if isinstance(rate, keras.Variable):
            return float(self._backend.array(read(rate)))
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            step = keras.ops.convert_to_tensor(self._count(optimizer, read))
            return float(keras.ops.convert_to_numpy(rate(step)))
        return float(rate()) if callable(rate) else float(rate)

    def gradients(self, due: int, found: Sequence[tuple[int, Any]]) -> None:
        """Add gradients (``id`` of the variable, value), in the order of the weights, and their norm."""
        rows = Rows(self._engine, self._backend, due)
        values = dict(found)
        for key, site in self._weights.by_id.items():
            value = values.get(key)
            if value is not None:
                name = f"gradient/{site.name}"
                rows.add(name, Kind.GRADIENT, value, module=site.module, layer=site.layer)
        block = rows.write()
        if block is None:
            return
        norm = norm_of(block)
        rows.add_number("optimizer/grad_norm", Kind.OPTIMIZER, norm)
        if not np.isfinite(norm) and any(inner(one) is not one for one in self._optimizers.values()):
            self._skipped += 1
            rows.add_number("optimizer/skipped_steps", Kind.OPTIMIZER, float(self._skipped))

    def after(self, due: int, read: Callable[[Any], Any]) -> None:
        """Add the moments after the step."""
        rows = Rows(self._engine, self._backend, due)
        for name, optimizer in self._optimizers.items():
            for slot in self._slots_of(name, inner(optimizer)):
                rows.add(slot.name, Kind.OPTIMIZER, read(slot.variable), module=slot.module)
        rows.write()

    def _slots_of(self, name: str, optimizer: Any) -> list[_Slot]:
        known = self._slots.get(name)
        if known is None and optimizer.built:
            prefix = f"{name}." if name and len(self._optimizers) > 1 else ""
            known = self._slots[name] = list(_slots(optimizer, prefix, self._weights))
        return known or []


def _moved_by(optimizer: Any) -> Sequence[Any] | None:
    """The variables an optimizer moves; None before it was given any."""
    moved: Sequence[Any] = optimizer._trainable_variables  # noqa: SLF001
    return moved if optimizer.built else None


def _slots(optimizer: Any, prefix: str, weights: WeightProbe) -> list[_Slot]:
    """``optimizer/momentum/dense/kernel`` for the variable that Keras calls ``dense_kernel_momentum``."""
    slots = []
    taken: set[str] = set()
    for variable, what, site in optimizer_slots(optimizer, weights.sites):
        if not tuple(variable.shape):
            continue  # counters and rates
        name = f"optimizer/{prefix}{what}" if site is None else f"optimizer/{prefix}{what}/{site.name}"
        while name in taken:
            name += "'"
        taken.add(name)
        slots.append(_Slot(name, "" if site is None else site.module, variable))
    return slots


def optimizer_slots(
    optimizer: Any, sites: Sequence[WeightSite]
) -> Iterator[tuple[Any, str, WeightSite | None]]:
    """The variables of an optimizer: each with what it is (``momentum``), and the weight it is kept for."""
    stems = sorted(
        ((site.variable.path.replace("/", "_"), site) for site in sites), key=lambda one: -len(one[0])
    )
    for variable in optimizer.variables:
        for stem, site in stems:
            if variable.name.startswith(f"{stem}_") and tuple(variable.shape) == tuple(site.variable.shape):
                yield variable, variable.name[len(stem) + 1 :], site
                break
        else:
            yield variable, str(variable.name), None
