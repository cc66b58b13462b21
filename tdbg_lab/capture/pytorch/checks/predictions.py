"""What a loss is given: predictions and labels, as statistics, at saved steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tdbg_lab.capture.notes import check_key
from tdbg_lab.capture.predictions import facts_of, rows_kept, spread_over
from tdbg_lab.capture.pytorch.checks.conventions import both_told, compared, convention_facts
from tdbg_lab.capture.pytorch.checks.output_end import end_of
from tdbg_lab.capture.pytorch.checks.weighting import Weighting
from tdbg_lab.capture.pytorch.measuring import record_facts
from tdbg_lab.capture.pytorch.moment import not_for_real
from tdbg_lab.capture.pytorch.values import distributed
from tdbg_lab.records import LossKind, OutputEnd

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.records import TensorKey

__all__ = ["WEIGHTED", "PredictionProbe", "is_own"]

WEIGHTED = {
    LossKind.LOGITS: "weight",
    LossKind.LOG_PROBABILITIES: "weight",
    LossKind.YES_LOGITS: "pos_weight",
}
"""What holds the weights of classes, by what is compared."""


class PredictionProbe:
    """Facts about the first two arguments of one loss, as ``check/loss/<class>/...``: see `facts_of`.

    ``broadcast`` says whether the shapes differ so that each is spread over the other, ``end`` is the number
    of the `OutputEnd` that predictions come from, where it is known; see also `convention_facts`.

    A loss of the program's own that is given three tensors or more of one shape is left alone: which of them
    are labels, if any, it alone knows. A policy's likelihoods, gains and values are like that.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        kind: LossKind,
        *,
        own: bool = False,
        ignored: int | None = None,
    ) -> None:
        self._engine = engine
        self._base = f"loss/{name}"
        self._kind = kind
        self._own = own
        self._class = ""
        self._keys: dict[tuple[str, ...], list[TensorKey]] = {}
        self.ignored = ignored
        """Number of the class that does not count."""
        self.weights: Any = None
        """Of the classes, as the loss was given them."""
        self._weighting: Weighting | None = None

    @classmethod
    def of(cls, engine: Engine, name: str, module: nn.Module) -> PredictionProbe:
        """The facts of a loss module."""
        kind = LossKind.of_class(type(module).__name__)
        ignored = getattr(module, "ignore_index", None)
        probe = cls(engine, name, kind, own=is_own(module), ignored=ignored)
        probe._class = "" if probe._own else type(module).__name__
        if kind in WEIGHTED:
            probe.weights = getattr(module, WEIGHTED[kind], None)
        return probe

    def take(self, args: tuple[Any, ...]) -> None:
        """Look at what a loss module was called with."""
        if not_for_real() or len(args) < 2:
            return
        prediction, target = compared(self._class, args)
        if not (_plain(prediction) and _plain(target) and prediction.is_floating_point()):
            return
        if self._own and sum(_plain(one) and one.shape == prediction.shape for one in args) > 2:
            return
        more = convention_facts(self._class, args)
        if (end := end_of(prediction)) is not OutputEnd.OTHER:
            more["end"] = float(end)
        self._record(prediction.detach(), target.detach(), more)

    def _record(self, prediction: torch.Tensor, target: torch.Tensor, more: dict[str, float]) -> None:
        spread = target.is_floating_point() and spread_over(prediction.shape, target.shape)
        numbers = {} if self._kind.of_classes else {"broadcast": float(spread)}
        if not prediction.ndim or not len(prediction) or not target.numel():
            return
        keep = rows_kept(prediction.shape)
        same = target.ndim > 0 and len(target) == len(prediction)
        given = prediction[:keep], target[:keep] if same else target
        whole = keep >= len(prediction)

        def told(arrays: list[NDArray[Any]]) -> tuple[list[TensorKey], list[float]]:
            found = numbers | self._facts(*arrays, same=same, whole=whole) | more
            return self._keys_of(tuple(found)), list(found.values())

        record_facts(self._engine.recorder, given, told)

    def _facts(self, x: NDArray[Any], y: NDArray[Any], *, same: bool, whole: bool) -> dict[str, float]:
        """What is known of predictions and labels by their values."""
        found = facts_of(x, y, self._kind, same=same, ignored=self.ignored, whole=whole)
        if both_told(self._class):
            found.pop("correlation", None)
        if self.weights is not None and (y.ndim < x.ndim or self._kind is LossKind.YES_LOGITS):
            self._weighting = self._weighting or Weighting.of(self.weights)
            found |= self._weighting.facts(y) if self._weighting else {}
        return found

    def _keys_of(self, names: tuple[str, ...]) -> list[TensorKey]:
        found = self._keys.get(names)
        if found is None:  # a loss has few sets of them
            found = self._keys[names] = [check_key(f"{self._base}/{name}") for name in names]
        return found


def is_own(module: nn.Module) -> bool:
    """Whether the program wrote the loss itself."""
    return not type(module).__module__.startswith("torch.")


def _plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and not distributed(value)
        and not value.is_complex()
        and not torch._C._functorch.is_functorch_wrapped_tensor(value)  # noqa: SLF001
    )
