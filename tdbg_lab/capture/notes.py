"""Numbers under ``check/``: gathered during a step, written when they changed or when a save is due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.records import Kind, TensorKey

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine

__all__ = ["Notes", "check_key"]

_MAX_NAMES = 512
_CHANGING = frozenset({"batch", "weights"})
"""Written at every step: their value is of that step and no other."""


class Notes:
    """What is known of the loop by name; `write` hands it to the recorder at the place that is current."""

    __slots__ = ("_engine", "_keys", "_pending", "_values")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._keys: dict[str, TensorKey] = {}
        self._values: dict[str, float] = {}
        self._pending: dict[str, float] = {}

    def set(self, name: str, value: float, *, module: str = "") -> None:
        """Say what ``check/<name>`` is now. Names beyond a bound are left out."""
        if self._values.get(name) == value and name not in _CHANGING:
            return
        if name not in self._keys:
            if len(self._keys) >= _MAX_NAMES:
                return
            self._keys[name] = check_key(name, module)
        self._values[name] = self._pending[name] = value

    def clear(self, name: str) -> None:
        """``check/<name>`` is zero again, if it ever was anything else."""
        if self._values.get(name):
            self.set(name, 0.0)

    def value(self, name: str) -> float:
        """What was said last; 0.0 when nothing was."""
        return self._values.get(name, 0.0)

    def write(self, *, everything: bool = False) -> None:
        """Add rows to the current place: of what changed, or of all that is known."""
        if everything:
            steady = {name: value for name, value in self._values.items() if name not in _CHANGING}
            self._pending = steady | self._pending
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        self._engine.recorder.add_scalars(map(self._keys.__getitem__, pending), pending.values())


def check_key(name: str, module: str = "") -> TensorKey:
    """The key of one fact."""
    return TensorKey(f"check/{name}", Kind.CHECK, module)
