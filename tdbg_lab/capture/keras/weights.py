"""Weights before a step, and how far the step moves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tdbg_lab.capture.keras.rows import Rows
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import WeightSite

__all__ = ["SAMPLED_ELEMENTS", "WeightProbe", "sampled"]

SAMPLED_ELEMENTS = 16_384
"""Elements looked at in a weight that has more, to see how far it moves."""
_BLOCK = 256


def sampled(values: NDArray[Any]) -> NDArray[np.float32]:
    """A float32 copy of all elements, or of evenly spread blocks of a large array, flat."""
    flat = values.reshape(-1)
    if flat.size > SAMPLED_ELEMENTS:
        rows = flat.size // _BLOCK
        stride = max(1, rows // (SAMPLED_ELEMENTS // _BLOCK))
        flat = flat[: rows * _BLOCK].reshape(rows, _BLOCK)[::stride].reshape(-1)
    return np.array(flat, dtype=np.float32)


class WeightProbe:
    """The variables of all layers of all models."""

    def __init__(self, engine: Engine, backend: Backend, sites: Sequence[WeightSite]) -> None:
        self._engine = engine
        self._backend = backend
        self.sites = list(sites)
        self.by_id = {id(site.variable): site for site in self.sites}
        plan = engine.plan
        self.mask = plan.mask_of(Kind.WEIGHT, Kind.BIAS, Kind.BUFFER)
        """Collections that may want something of what is read here."""
        self._moves = plan.mask_of(Kind.OPTIMIZER)
        self._frozen: set[str] = set()
        self._before: dict[str, NDArray[np.float32]] = {}
        for site in self.sites:  # so that patterns know all names from the start
            plan.membership(site.name, site.kind, site.module)
            if site.kind is not Kind.BUFFER:
                plan.membership(f"gradient/{site.name}", Kind.GRADIENT, site.module)

    def before(self, due: int, read: Callable[[Any], Any]) -> None:
        """Add rows of the values before the step, and keep what tells how far it moves them."""
        rows = Rows(self._engine, self._backend, due)
        self._before = {}
        for site in self.sites:
            value = read(site.variable)
            if not self._is_noise(value):
                self._add(rows, site, value)
                if due & self._moves and self._moves_at_all(site):
                    self._before[site.name] = sampled(self._backend.array(value))
        rows.write()

    def _add(self, rows: Rows, site: WeightSite, value: Any) -> None:
        if site.kind is not Kind.BUFFER and not site.variable.trainable:
            if site.name in self._frozen:  # written once: it does not change
                return
            self._frozen.add(site.name)
        else:
            self._frozen.discard(site.name)
        rows.add(site.name, site.kind, value, module=site.module, layer=site.layer)

    def expect_none(self, variables: Sequence[Any] | None) -> None:
        """The step is not meant to move these variables, or any: it tells nothing of how far steps go."""
        known = self.by_id if variables is None else {id(one) for one in variables} & self.by_id.keys()
        for key in known:
            self._before.pop(self.by_id[key].name, None)

    def after(self, due: int, read: Callable[[Any], Any]) -> None:
        """Add ``|dw| / |w|`` of the step for each weight that was kept."""
        rows = Rows(self._engine, self._backend, due)
        before, self._before = self._before, {}
        for site in self.sites:
            old = before.get(site.name)
            if old is None:
                continue
            moved = sampled(self._backend.array(read(site.variable))) - old
            with np.errstate(all="ignore"):
                ratio = np.linalg.norm(moved) / np.linalg.norm(old)
            name = f"optimizer/update_ratio/{site.name}"
            rows.add_number(name, Kind.OPTIMIZER, float(ratio), module=site.module)

    def _moves_at_all(self, site: WeightSite) -> bool:
        return site.kind is not Kind.BUFFER and bool(site.variable.trainable)

    def _is_noise(self, value: Any) -> bool:
        """The state of a random generator, which is no number of the model."""
        return self._backend.described(value)[0] == "uint32"
