"""Modules that do not train."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tdbg_lab.records import Kind
from tdbg_lab.rules.memo import remembered

if TYPE_CHECKING:
    from tdbg_lab.rules.layout import Layout
    from tdbg_lab.rules.view import RunView

__all__ = ["frozen_modules"]

_KINDS = (Kind.WEIGHT, Kind.GRADIENT)


def frozen_modules(run: RunView) -> frozenset[str]:
    """Modules with weights of which none ever had a gradient; none where no gradients are recorded."""
    return _frozen(run.seen)


@remembered
def _frozen(seen: Layout) -> frozenset[str]:
    modules = {kind: {seen.keys[row].module for row in seen.rows((kind,))} for kind in _KINDS}
    return frozenset(modules[Kind.WEIGHT] - modules[Kind.GRADIENT] if modules[Kind.GRADIENT] else ())
