"""Norms of the gradients of each optimizer: before and after clipping, of this rank's part or of all."""

from __future__ import annotations

from math import inf, isfinite
from typing import TYPE_CHECKING, TypeAlias

import torch

from tdbg_lab.capture.pytorch.measuring import is_late, record_number
from tdbg_lab.capture.pytorch.parameters import norm_on_device
from tdbg_lab.capture.pytorch.values import local
from tdbg_lab.capture.pytorch.zero import gradient_of
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe
    from tdbg_lab.capture.pytorch.shown import TellingOptimizer

__all__ = ["GradientNorms", "Norm"]

Norm: TypeAlias = "float | torch.Tensor | None"
"""On its device if that is a GPU; None without any gradient."""

_WHOLE = "optimizer/grad_norm"
_TO_COME = "\0"
"""Name of an optimizer that is not known before its first step."""


class GradientNorms:
    """``optimizer/grad_norm``, ``optimizer/grad_norm_clipped`` beside it where gradients were clipped."""

    def __init__(self, engine: Engine, parameters: ParameterProbe) -> None:
        self._engine = engine
        self._parameters = parameters
        self._unclipped: dict[str, float | torch.Tensor] = {}
        """Norm of the gradients of each optimizer before they were clipped in this step."""
        self._seen: Norm = None
        """Norm of what was seen before the step of an optimizer that may tell it better."""

    def rename(self, old: str, new: str) -> None:
        """An optimizer has another name."""
        if old in self._unclipped:
            self._unclipped[new] = self._unclipped.pop(old)

    def clear(self) -> None:
        """The step is over."""
        self._unclipped.clear()

    def before_clipping(self, clipped: Collection[int], owned_by: Mapping[str, set[int]]) -> None:
        """Gradients of these parameters (by ``id``) are about to be clipped.

        Parameters
        ----------
        clipped
            ``id`` of the parameters.
        owned_by
            Those of each optimizer; of none if no optimizer is known yet.
        """
        known = owned_by or {_TO_COME: {id(value) for _, value in self._parameters.live()}}
        for name, owned in known.items():
            # Of two clippings the first counts; what was not finite does not: those gradients were dropped.
            held = self._unclipped.get(name, inf)
            if (isinstance(held, float) and isfinite(held)) or owned.isdisjoint(clipped):
                continue
            norm = self._now(owned)
            if isinstance(held, torch.Tensor) and isinstance(norm, torch.Tensor):
                norm = torch.where(held.isfinite(), held, norm)
            if norm is not None:
                self._unclipped[name] = norm

    def record(
        self, name: str, suffix: str, due: int, norm: Norm, *, owned: Collection[int], scale: float
    ) -> None:
        """Record the norm of an optimizer's gradients, which are complete.

        Parameters
        ----------
        name
            The optimizer's.
        suffix
            What its series are called by behind their names; empty for the only one.
        due
            Collections that are due.
        norm
            As it was measured with the gradients; None if these are not due themselves.
        owned
            ``id`` of its parameters.
        scale
            Gradients are still multiplied by this.
        """
        base = self._base()
        if not self._is_due(base + suffix, due):
            return
        if norm is None:
            norm = self._now(owned)
            norm = None if norm is None else norm / scale
        unclipped = self._unclipped.get(name, self._unclipped.get(_TO_COME))
        if norm is not None and unclipped is not None:
            self._put(base.replace("grad_norm", "grad_norm_clipped") + suffix, norm)
            norm = unclipped
        if norm is not None:
            self._put(base + suffix, norm)

    def see(self, norm: Norm) -> None:
        """What this rank sees of the gradients before the step of one that may tell their norm."""
        self._seen = norm

    def record_told(self, optimizer: TellingOptimizer, suffix: str, due: int) -> None:
        """Record the norm that an optimizer tells after its step, over all ranks; else what was seen."""
        seen, self._seen = self._seen, None
        told = optimizer.norm
        norm, base = (seen, self._base()) if told is None else (told, _WHOLE)
        if norm is not None and self._is_due(base + suffix, due):
            self._put(base + suffix, norm)

    def _base(self) -> str:
        """What the norm of what this rank holds is called."""
        return f"{_WHOLE}_shard" if self._parameters.sharded else _WHOLE

    def _now(self, owned: Collection[int]) -> Norm:
        """L2 norm of the gradients as they are."""
        grads = [gradient_of(value) for _, value in self._parameters.live() if id(value) in owned]
        norm = norm_on_device([local(one) for one in grads if one is not None])
        return norm if norm is None or is_late(norm) else float(norm)

    def _is_due(self, name: str, due: int) -> bool:
        return bool(self._engine.key(name, Kind.OPTIMIZER)[1].mask & due)

    def _put(self, name: str, norm: float | torch.Tensor) -> None:
        record_number(self._engine.recorder, self._engine.key(name, Kind.OPTIMIZER)[0], norm)
