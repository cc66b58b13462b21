"""How far one optimizer step moves each parameter: ``|dw| / |w|``.

The values before the step are copied into buffers that are made once; large parameters are
represented by evenly spread blocks of elements, so neither memory nor time grows with the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from tdbg_lab.capture.pytorch.values import local
from tdbg_lab.records import Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.plan import Membership
    from tdbg_lab.capture.pytorch.naming import ParameterSite
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe
    from tdbg_lab.records import TensorKey

__all__ = ["SAMPLED_ELEMENTS", "UpdateProbe", "sampled"]

SAMPLED_ELEMENTS = 4096
"""Elements looked at in a parameter that has more: the ratio of norms of so many independent values
strays by about one part in a hundred."""
_BLOCK = 64


def sampled(value: torch.Tensor) -> torch.Tensor:
    """A view of the whole tensor (of this rank's shard), or of evenly spread blocks of a large one."""
    value = local(value.detach())
    n = value.numel()
    if n <= SAMPLED_ELEMENTS or not value.is_contiguous():
        return value
    rows = n // _BLOCK
    stride = rows // (SAMPLED_ELEMENTS // _BLOCK)
    if stride < 2:
        return value
    return value.view(-1)[: rows * _BLOCK].view(rows, _BLOCK)[::stride]


def _norms(tensors: list[torch.Tensor]) -> torch.Tensor:
    norms = list(torch._foreach_norm(tensors))  # noqa: SLF001
    dtype = norms[0].dtype
    if any(one.dtype is not dtype for one in norms):
        norms = [one.float() for one in norms]
    return torch.stack(norms).float()


class UpdateProbe:
    """Copies before the step, compares after it."""

    def __init__(self, engine: Engine, parameters: ParameterProbe) -> None:
        self._engine = engine
        self._parameters = parameters
        self._buffers: dict[str, torch.Tensor] = {}
        self._known: dict[str, tuple[TensorKey, Membership]] = {}
        self._before: list[tuple[TensorKey, torch.Tensor, torch.Tensor]] = []

    @torch.no_grad()
    def before(self, due: int, owned: Collection[int]) -> None:
        """Copy the parameters in `owned` (their ``id``) whose ratio is due."""
        self._before = []
        now: list[torch.Tensor] = []
        for site, value in self._parameters.live():
            if id(value) not in owned or not value.requires_grad or value.grad is None:
                continue
            key, membership = self._known.get(site.name) or self._key(site)
            if membership.mask & due and value.is_floating_point() and value.layout is torch.strided:
                view = sampled(value)
                now.append(view)
                self._before.append((key, value, self._buffer(site.name, view)))
        if now:
            torch._foreach_copy_([buffer for _, _, buffer in self._before], now)

    @torch.no_grad()
    def after(self) -> None:
        """Add one number per copied parameter."""
        before, self._before = self._before, []
        if not before:
            return
        old = [buffer for _, _, buffer in before]
        size = _norms(old)
        torch._foreach_sub_(old, [sampled(value) for _, value, _ in before])
        ratios: list[float] = (_norms(old) / size).tolist()
        for (key, _, _), ratio in zip(before, ratios, strict=True):
            self._engine.recorder.add_scalar(key, ratio)

    def _key(self, site: ParameterSite) -> tuple[TensorKey, Membership]:
        name = f"optimizer/update_ratio/{site.name}"
        found = self._known[site.name] = self._engine.key(name, Kind.OPTIMIZER, path=site.path)
        return found

    def _buffer(self, name: str, like: torch.Tensor) -> torch.Tensor:
        buffer = self._buffers.get(name)
        if (
            buffer is None
            or buffer.shape != like.shape
            or buffer.dtype != like.dtype
            or buffer.device != like.device
        ):
            buffer = self._buffers[name] = torch.empty_like(like, memory_format=torch.contiguous_format)
        return buffer
