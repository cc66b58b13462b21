"""Rows of tensors: keys, statistics and raw values of whatever a backend hands over."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any

from tdbg_lab.capture.values import rows_of

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.records import Kind, StatsBlock, TensorKey

__all__ = ["Rows", "norm_of"]


@dataclass(slots=True)
class Rows:
    """Tensors of one place, summarized together by `write`."""

    engine: Engine
    backend: Backend
    due: int
    """Collections that are due."""
    _keys: list[TensorKey] = field(default_factory=list)
    _values: list[Any] = field(default_factory=list)
    _axes: list[int | None] = field(default_factory=list)

    def add(
        self,
        name: str,
        kind: Kind,
        value: Any,
        *,
        module: str = "",
        layer: Any = None,
        axis: int | None = None,
        marks: tuple[str, ...] = (),
    ) -> None:
        """Add a tensor of the backend, or an array, if a collection that is due wants it."""
        dtype, shape = self.backend.described(value)
        key, membership = self.engine.key(
            name, kind, path=module, module=layer, dtype=dtype, shape=shape, marks=marks
        )
        if membership.raw_mask & self.due:
            self.engine.recorder.add_raw(name, rows_of(self.backend.array(value), membership.sample_rows))
        if membership.mask & self.due:
            self._keys.append(key)
            self._values.append(value)
            self._axes.append(axis)

    def add_number(self, name: str, kind: Kind, value: float, *, module: str = "") -> None:
        """Add one number, if it is wanted."""
        key, membership = self.engine.key(name, kind, path=module)
        if membership.mask & self.due:
            self.engine.recorder.add_scalar(key, value)

    def write(self) -> StatsBlock | None:
        """Summarize what was added and hand it to the recorder; None when there is nothing."""
        if not self._keys:
            return None
        block = self.backend.summarize(self._values, self._axes)
        self.engine.recorder.add(self._keys, block)
        self._keys, self._values, self._axes = [], [], []
        return block


def norm_of(block: StatsBlock) -> float:
    """L2 norm over all rows; NaN or infinite when an element is."""
    if block.nan_count.any():
        return nan
    if block.pos_inf_count.any() or block.neg_inf_count.any():
        return inf
    finite = block.l2[block.count > 0]
    return sqrt(float(finite @ finite))
