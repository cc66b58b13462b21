"""What enters a model: the input of its first layer with weights, after what rescales or encodes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras

from tdbg_lab.capture.predictions import rows_kept
from tdbg_lab.records import Kind, Mode, TensorKey
from tdbg_lab.stats import summarize

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend
    from tdbg_lab.capture.keras.naming import LayerSite

__all__ = ["Entry", "write_entry"]

_NORMALISES = (
    *(keras.layers.BatchNormalization, keras.layers.LayerNormalization, keras.layers.GroupNormalization),
    *(keras.layers.Normalization, keras.layers.UnitNormalization),
)
_FACTS = tuple(TensorKey(f"check/input_{fact}", Kind.CHECK) for fact in ("size", "min", "max"))
_NORMALISED = TensorKey("check/normalises", Kind.CHECK)


class Entry:
    """Finds the first layer of a pass that normalises, or has weights."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._found = False
        self.normalises = False

    def of(self, site: LayerSite, inputs: Any) -> Any:
        """What the first such layer was called with; None for others, and for numbers of tokens."""
        if self._found or not (isinstance(site.layer, _NORMALISES) or site.layer.trainable_variables):
            return None
        self._found, self.normalises = True, isinstance(site.layer, _NORMALISES)
        if isinstance(site.layer, keras.layers.Embedding):
            return None
        tensors = (one for one in keras.tree.flatten(inputs) if self._backend.is_tensor(one))
        return next(tensors, None)


def write_entry(engine: Engine, backend: Backend, value: Any, *, normalises: bool) -> None:
    """Add the size and the limits of what enters the model, at steps of training."""
    if engine.recorder.mode is not Mode.TRAIN or not engine.plan.config.checks:
        return
    values = backend.array(value)
    if values.dtype.kind not in "fiu" or not values.ndim or not values.size:
        return
    step = max(1, len(values) // rows_kept(values.shape))
    block = summarize([values[::step].astype("float32")])
    size = float(block.l2[0]) / max(1, int(block.count[0])) ** 0.5
    engine.recorder.add_scalars(
        (*_FACTS, _NORMALISED), (size, float(block.min[0]), float(block.max[0]), float(normalises))
    )
