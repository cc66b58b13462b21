"""What a loss is given: predictions and labels, as statistics, at saved steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.pytorch.checks.notes import check_key
from tdbg_lab.capture.pytorch.moment import recomputing
from tdbg_lab.capture.pytorch.values import distributed
from tdbg_lab.stats.tensors import summarize_tensors

if TYPE_CHECKING:
    from torch import nn

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.records import TensorKey

__all__ = ["PredictionProbe"]

_MAX_ELEMENTS = 262_144
_CLASSIFY = ("CrossEntropyLoss", "NLLLoss", "MultiMarginLoss")
_BINARY = ("BCELoss", "BCEWithLogitsLoss", "MultiLabelSoftMarginLoss")


class PredictionProbe:
    """Facts about the first two arguments of one loss, as ``check/loss/<class>/...``.

    ``prediction``, ``target``, ``row_sum`` and ``row_logsumexp`` (over the classes) have their least and
    largest value (``target_min``, ...), root mean square (``_size``), share of zeros (``_zeros``) and a
    count of values that are not finite (``_broken``). ``spread`` is the largest standard deviation over
    the batch of one output, ``hits`` the share of right predictions (``correlation``, for numbers),
    ``majority`` the share of the commonest label, ``classes`` the outputs for each sample, ``broadcast``
    whether the shapes differ.
    """

    def __init__(self, engine: Engine, name: str, module: nn.Module) -> None:
        self._engine = engine
        self._base = f"loss/{name}"
        self._class = type(module).__name__
        self._keys: dict[str, TensorKey] = {}
        self._ignored = getattr(module, "ignore_index", None)

    def take(self, args: tuple[Any, ...]) -> None:
        """Look at what a loss module was called with."""
        if recomputing() or len(args) < 2:
            return
        prediction, target = args[0], args[1]
        if not (_plain(prediction) and _plain(target) and prediction.is_floating_point()):
            return
        with torch.no_grad():
            self._record(prediction.detach(), target.detach())

    def _record(self, prediction: torch.Tensor, target: torch.Tensor) -> None:
        classes = self._class in _CLASSIFY
        numbers: dict[str, float] = {}
        if not classes and prediction.shape != target.shape:
            numbers["broadcast"] = 1.0
        elif not classes:
            numbers["broadcast"] = 0.0
        if not prediction.ndim or not len(prediction) or not target.numel():
            return
        keep = max(1, len(prediction) * _MAX_ELEMENTS // prediction.numel())
        same = target.ndim > 0 and len(target) == len(prediction)
        prediction = prediction[:keep].float()
        target = target[:keep] if same else target
        rows = {"prediction": prediction, "target": target}
        if classes and prediction.ndim > 1:
            rows["row_sum"] = prediction.sum(1)
            rows["row_logsumexp"] = prediction.logsumexp(1)
            numbers["classes"] = float(prediction.shape[1])
        elif prediction.ndim > 1:
            rows["row_sum"] = prediction.sum(-1)
            numbers["classes"] = float(prediction.shape[-1])
        if len(prediction) > 1:
            numbers["spread"] = float(prediction.std(0, correction=0).max())
        numbers["samples"] = float(len(prediction))
        if same:
            numbers |= self._agreement(prediction, target)
        numbers |= _described(rows)
        for name, value in numbers.items():
            self._engine.recorder.add_scalar(self._key(name), value)

    def _key(self, name: str) -> TensorKey:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = check_key(f"{self._base}/{name}")
        return key

    def _agreement(self, prediction: torch.Tensor, target: torch.Tensor) -> dict[str, float]:
        """How far predictions and labels go together."""
        if self._class in _CLASSIFY and prediction.ndim > 1:
            if target.shape == prediction.shape:  # probabilities of the classes
                target = target.argmax(1)
            guess = prediction.argmax(1)
            valid = target != self._ignored if self._ignored is not None else torch.ones_like(target) > 0
            labels = target[valid]
            if not labels.numel():
                return {"ignored": 1.0}
            counts = labels.flatten().long().clamp(-1, 100_000).add(1).bincount()
            return {
                "ignored": 1.0 - labels.numel() / target.numel(),
                "hits": float((guess[valid] == labels).float().mean()),
                "majority": float(counts.max()) / labels.numel(),
                "labels": float((counts > 0).sum()),
            }
        if target.shape != prediction.shape:
            return {}
        if self._class in _BINARY:
            middle = 0.5 if self._class == "BCELoss" else 0.0
            share = float((target > 0.5).float().mean())
            hits = float(((prediction > middle) == (target > 0.5)).float().mean())
            return {"hits": hits, "majority": max(share, 1.0 - share)}
        x, y = prediction.flatten().double(), target.flatten().double()
        x, y = x - x.mean(), y - y.mean()
        scale = float(x.norm() * y.norm())
        return {"correlation": float((x * y).sum()) / scale if scale > 0 else 0.0}


def _described(rows: dict[str, torch.Tensor]) -> dict[str, float]:
    """A few numbers about each tensor."""
    block = summarize_tensors([one.contiguous() for one in rows.values()])
    found: dict[str, float] = {}
    for row, name in enumerate(rows):
        count = max(1, int(block.count[row]))
        found[f"{name}_min"] = float(block.min[row])
        found[f"{name}_max"] = float(block.max[row])
        found[f"{name}_size"] = float(block.l2[row]) / count**0.5
        found[f"{name}_zeros"] = int(block.zero_count[row]) / count
        found[f"{name}_broken"] = float(count - int(block.finite_count[row]))
    return found


def _plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and not distributed(value)
        and not value.is_complex()
        and not torch._C._functorch.is_functorch_wrapped_tensor(value)  # noqa: SLF001
    )
