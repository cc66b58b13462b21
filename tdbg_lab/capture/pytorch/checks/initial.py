"""Parameters and buffers before the first step: memory that nobody filled shows in their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.nn.parameter import is_lazy

from tdbg_lab.capture.notes import check_key
from tdbg_lab.capture.pytorch.measuring import record_tensors
from tdbg_lab.capture.pytorch.values import local

if TYPE_CHECKING:
    from tdbg_lab.capture.engine import Engine
    from tdbg_lab.capture.pytorch.parameters import ParameterProbe

__all__ = ["record_initial"]

_MAX_TENSORS = 256
_MAX_ELEMENTS = 65_536


def record_initial(engine: Engine, parameters: ParameterProbe) -> None:
    """Write statistics of some values of each as ``check/initial/<name>``, once."""
    live = [
        (site, value)
        for site, value in parameters.live()
        if not is_lazy(value) and value.is_floating_point() and value.layout is torch.strided
    ][:_MAX_TENSORS]
    values = [_some(local(value).detach()) for _, value in live]
    if values:
        keys = [check_key(f"initial/{site.name}", site.path) for site, _ in live]
        record_tensors(engine.recorder, keys, values)


def _some(value: torch.Tensor) -> torch.Tensor:
    if value.numel() <= _MAX_ELEMENTS or not value.is_contiguous():
        return value
    return value.view(-1)[:: value.numel() // _MAX_ELEMENTS + 1]
