"""Weights, biases, buffers and gradients: all of them in one pass, before the optimizer steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import torch

from tdbg_lab.capture.pytorch.measuring import LATE, record_tensors
from tdbg_lab.capture.pytorch.packed import form_of, is_packed, unpacked
from tdbg_lab.capture.pytorch.raw_values import record_raw
from tdbg_lab.capture.pytorch.values import PLAIN, dtype_name, is_part, local
from tdbg_lab.capture.pytorch.zero import gradient_of, has_parts, is_divided, whole_shape
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.capture.pytorch.naming import ParameterSite
    from tdbg_lab.records import TensorKey

__all__ = ["Live", "ParameterProbe", "norm_of", "norm_on_device"]

Live: TypeAlias = "list[tuple[ParameterSite, torch.Tensor]]"
"""Parameters and buffers as they are now, with their places."""

_Known: TypeAlias = "tuple[torch.dtype, torch.Size, tuple[TensorKey, Membership]]"
"""Type and shape of a tensor, and what follows from them."""

_SHARD = ("shard",)
"""What a distributed parameter is marked with: a rank's rows are of its shard, merged ones of the whole."""


@dataclass(slots=True)
class _Rows:
    """What is gathered for one pass."""

    due: int
    keys: list[TensorKey] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)


class ParameterProbe:
    """The parameters of all models of a run."""

    def __init__(self, engine: Engine, sites: Sequence[ParameterSite]) -> None:
        self._engine = engine
        plan = engine.plan
        self.mask = plan.mask_of(Kind.WEIGHT, Kind.BIAS, Kind.BUFFER, Kind.GRADIENT)
        """Collections that may want something of what is read here."""
        self._gradients = plan.mask_of(Kind.GRADIENT)
        self._values = plan.mask_of(Kind.WEIGHT, Kind.BIAS, Kind.BUFFER)
        self._known: dict[str, _Known] = {}
        self.sharded = False
        """Whether parameters are spread over ranks, so that sums over them hold for this rank only."""
        self._frozen_versions: dict[str, tuple[int, int]] = {}
        self.place(sites)

    def place(self, sites: Sequence[ParameterSite]) -> None:
        """From now on these are the parameters: models may get others while they are trained."""
        self.sites = list(sites)
        plan = self._engine.plan
        for site in self.sites:  # so that patterns know all names from the start
            plan.membership(site.name, site.kind, site.path)
            if site.kind is not Kind.BUFFER:
                plan.membership(f"gradient/{site.name}", Kind.GRADIENT, site.path)

    def live(self) -> Live:
        """The parameters and buffers as they are now."""
        found: Live = []
        for site in self.sites:
            owner = site.owner()
            if owner is None:
                continue
            parameters, buffers = owner._parameters, owner._buffers  # noqa: SLF001
            if type(parameters) is dict:
                value: torch.Tensor | None = parameters.get(site.attribute)
                if value is None:
                    value = buffers.get(site.attribute)
            else:  # a script, whose attributes are not held in Python
                value = getattr(owner, site.attribute, None)
            if value is not None:
                found.append((site, value))
        return found

    def record(
        self, live: Live, due: int, *, values: bool, gradients_of: Collection[int] | None, scale: float = 1.0
    ) -> float | torch.Tensor | None:
        """Add rows of weights (when `values`) and of gradients, in one pass over memory.

        Parameters
        ----------
        live
            What to read.
        due
            Collections that are due.
        values
            Whether weights, biases and buffers are wanted.
        gradients_of
            ``id`` of the parameters whose gradients are wanted; None for none.
        scale
            Gradients are still multiplied by this: the scale of a fused optimizer's GradScaler.

        Returns
        -------
        L2 norm of the gradients seen, on their device if that is a GPU; or None when they are not due.
        """
        rows = _Rows(due)
        if values and due & self._values:
            for site, value in live:
                if not self._unchanged(site, value):
                    self._choose(rows, site.name, site, value)
        weights = len(rows.keys)
        if gradients_of is not None and due & self._gradients:
            for site, value in live:
                if id(value) in gradients_of and (grad := gradient_of(value)) is not None:
                    self._choose(rows, f"gradient/{site.name}", site, grad if scale == 1.0 else grad / scale)
        if not rows.keys:
            return None
        return self._measure(rows, weights)

    def _measure(self, rows: _Rows, weights: int) -> float | torch.Tensor | None:
        """Add the rows; the norm of those from the number of `weights` on, which are gradients."""
        recorder = self._engine.recorder
        block = record_tensors(recorder, rows.keys, rows.tensors)
        gradients = len(rows.keys) - weights
        if not gradients:
            return None
        if block is LATE:
            return norm_on_device(rows.tensors[weights:])
        if block is not None:
            counts = np.stack([block.count, block.nan_count, block.pos_inf_count, block.neg_inf_count])
            return norm_of(counts[:, weights:], block.l2[weights:])
        last = slice(len(recorder.measured) - gradients, len(recorder.measured))
        return norm_of(recorder.measured.counts[:4, last], recorder.measured.floats[5, last])

    def _choose(self, rows: _Rows, name: str, site: ParameterSite, value: torch.Tensor) -> None:
        known = self._known.get(name)
        if known is None or known[0] is not value.dtype or known[1] != value.shape:
            known = self._know(name, site, value)
        key, membership = known[2]
        if name == site.name and is_packed(value):
            self._add_packed(key, membership, value, rows.due)
            return
        if membership.raw_mask & rows.due:
            record_raw(self._engine.recorder, name, value, membership.sample_rows)
        if membership.mask & rows.due:
            rows.keys.append(key)
            rows.tensors.append(value if type(value) in PLAIN and not value.__dict__ else local(value))

    def _add_packed(self, key: TensorKey, membership: Membership, value: torch.Tensor, due: int) -> None:
        """Add the row of a packed weight by itself: there may be no room for what all of them stand for."""
        if not (membership.mask | membership.raw_mask) & due:
            return
        recorder, whole = self._engine.recorder, unpacked(value)
        if membership.raw_mask & due:
            record_raw(recorder, key.name, whole, membership.sample_rows)
        if membership.mask & due:
            record_tensors(recorder, [key], [whole])

    def _know(self, name: str, site: ParameterSite, value: torch.Tensor) -> _Known:
        """What is to be known of a tensor of a name, as long as its type and shape stay."""
        kind, owner = site.kind if name == site.name else Kind.GRADIENT, site.owner()
        whole = getattr(owner, site.attribute, value)  # no gradient tells by itself what it is part of
        kept = is_divided(whole) or (kind is Kind.GRADIENT and has_parts(whole))
        part = kept or is_part(value) or is_part(whole)
        form = form_of(value)
        found = self._engine.key(
            name,
            kind,
            path=site.path,
            module=owner,
            dtype=dtype_name(form),
            shape=whole_shape(whole) if kept else tuple(form.shape),
            marks=_SHARD if part else (),
        )
        self.sharded |= part
        known = self._known[name] = (value.dtype, value.shape, found)
        return known

    def _unchanged(self, site: ParameterSite, value: torch.Tensor) -> bool:
        """Whether a frozen parameter is the one already written: it is written once."""
        if value.requires_grad or site.kind is Kind.BUFFER:
            return False
        value = local(value)
        version = (value.data_ptr() if value.layout is torch.strided else id(value), value._version)  # noqa: SLF001
        if self._frozen_versions.get(site.name) == version:
            return True
        self._frozen_versions[site.name] = version
        return False


def norm_on_device(gradients: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """L2 norm of gradients, 0-d float32 on the device of the first; None where none is dense."""
    dense = [one.detach() for one in gradients if one.layout is torch.strided]
    if not dense:
        return None
    norms = [one.float().to(dense[0].device) for one in torch._foreach_norm(dense)]  # noqa: SLF001
    norm: torch.Tensor = torch.stack(norms).norm()
    return norm


def norm_of(counts: NDArray[np.int64], l2: NDArray[np.float64]) -> float:
    """L2 norm over rows of tensors; NaN or infinite when an element is.

    Parameters
    ----------
    counts : (4, N) int64
        Elements, NaN, +inf and -inf of each.
    l2 : (N,) float64
        Norms of their finite elements.
    """
    n_nan, above, below = counts[1:].sum(axis=1).tolist()
    if n_nan or above or below:
        return nan if n_nan else inf
    some = l2[counts[0] > 0]
    return sqrt(float(some @ some))
