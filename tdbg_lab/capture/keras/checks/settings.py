"""Settings of optimizers by which a training can be lost before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tdbg_lab.capture.notes import Notes

__all__ = ["SettingsWatch"]


class SettingsWatch:
    """Notes ``optimizer/<class>/<setting>`` of each optimizer once, as it is when it is seen first."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._seen: WeakSet[Any] = WeakSet()

    def look(self, optimizer: Any, rate: float) -> None:
        """An optimizer is about to step with this learning rate."""
        if optimizer in self._seen:
            return
        self._seen.add(optimizer)
        for name, value in _settings(optimizer, rate):
            self._notes.set(f"optimizer/{type(optimizer).__name__}/{name}", value)


def _settings(optimizer: Any, rate: float) -> Iterator[tuple[str, float]]:
    """Momentum, and what weight decay takes off weights; Keras never adds it to gradients."""
    for attribute, name in (("beta_1", "beta1"), ("beta_2", "beta2"), ("momentum", "momentum")):
        value = getattr(optimizer, attribute, None)
        if isinstance(value, int | float):
            yield name, float(value)
    decay = float(getattr(optimizer, "weight_decay", None) or 0.0)
    yield "decay", decay
    yield "shrinks", decay * rate
