"""What the losses of a model compare: predictions and labels of one batch, and the inputs they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from tdbg_lab.capture.keras.scalars import LOSS_NAME
from tdbg_lab.capture.keras.seen import Compared, Pair
from tdbg_lab.capture.predictions import facts_of, rows_kept, spread_over
from tdbg_lab.records import Kind, LossKind, TensorKey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.keras.backends.base import Backend

__all__ = ["compared", "write_compared"]

_CLASSES = {"CategoricalCrossentropy", "SparseCategoricalCrossentropy"}
_CLASSES |= {"categorical_crossentropy", "sparse_categorical_crossentropy"}
_YES = {"BinaryCrossentropy", "binary_crossentropy"}
_DISTANCES = {"MeanSquaredError", "MeanAbsoluteError", "Huber", "LogCosh"}
_DISTANCES |= {"mean_squared_error", "mean_absolute_error", "huber", "log_cosh"}
_MAX_LOSSES = 8


def compared(model: Any, backend: Backend, y: Any, y_pred: Any) -> Iterator[Pair]:
    """What each loss of ``compile`` compares; of a model that computes its loss itself, what it is given."""
    own = type(model).compute_loss is not keras.Model.compute_loss
    losses = () if own else getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or ()
    total = LOSS_NAME.removeprefix("loss/")
    if len(losses) < 2 and not keras.tree.is_nested(y) and not keras.tree.is_nested(y_pred):
        found = [(total, losses[0].loss if losses else None, y, y_pred)]
    else:
        found = [
            (str(one.name), one.loss, _at(y, one.path), _at(y_pred, one.path)) for one in losses[:_MAX_LOSSES]
        ]
    for name, loss, target, prediction in found:
        if all(backend.is_tensor(one) or isinstance(one, np.ndarray) for one in (target, prediction)):
            ignored = getattr(loss, "ignore_class", None)
            kind = backend.given_probabilities(prediction, _kind(loss))
            yield Pair(Compared(name, kind, ignored), prediction, target)


def _at(values: Any, path: Sequence[Any]) -> Any:
    for step in path:
        try:
            values = values[step]
        except (KeyError, IndexError, TypeError):
            return None
    return values


def _kind(loss: Any) -> LossKind:
    names = {type(loss).__name__, getattr(getattr(loss, "fn", None), "__name__", "")}
    settings = getattr(loss, "_fn_kwargs", {})
    if settings.get("axis", -1) != -1:
        return LossKind.OTHER
    logits = bool(settings.get("from_logits", False))
    if names & _CLASSES:
        return LossKind.LOGITS if logits else LossKind.PROBABILITIES
    if names & _YES:
        return LossKind.YES_LOGITS if logits else LossKind.YES_PROBABILITIES
    return LossKind.DISTANCE if names & _DISTANCES else LossKind.OTHER


def write_compared(engine: Engine, backend: Backend, pairs: Sequence[Pair]) -> None:
    """Add facts ``check/loss/<name>/...`` to the current place: see `tdbg_lab.capture.predictions`."""
    for loss, prediction, target in pairs:
        x, y = _fitted(backend.array(prediction), backend.array(target), loss.kind)
        if x.dtype.kind != "f" or not x.ndim or not len(x) or not y.size:
            continue
        spread = not loss.kind.of_classes and y.dtype.kind == "f" and spread_over(x.shape, y.shape)
        keep, same = rows_kept(x.shape), y.ndim > 0 and len(y) == len(x)
        y, whole = y[:keep] if same else y, keep >= len(x)
        numbers = facts_of(x[:keep], y, loss.kind, same=same, ignored=loss.ignored, whole=whole)
        if not loss.kind.of_classes:
            numbers["broadcast"] = float(spread)
        keys = [TensorKey(f"check/loss/{loss.name}/{fact}", Kind.CHECK) for fact in numbers]
        engine.recorder.add_scalars(keys, numbers.values())


def _fitted(x: NDArray[Any], y: NDArray[Any], kind: LossKind) -> tuple[NDArray[Any], NDArray[Any]]:
    """Classes on the second axis; one column more or less is none, as Keras has it; numbers as float32."""
    if x.ndim == y.ndim + 1 and x.shape[-1] == 1:
        x = x[..., 0]
    elif y.ndim == x.ndim + 1 and y.shape[-1] == 1:
        y = y[..., 0]
    if kind.of_classes and x.ndim > 1:
        if y.ndim == x.ndim:
            y = y[..., 0] if y.shape[-1] == 1 else np.moveaxis(y, -1, 1)
        x = np.moveaxis(x, -1, 1)
    return x.astype(np.float32, copy=False), y.astype(np.float32) if y.dtype.kind in "fb" else y
