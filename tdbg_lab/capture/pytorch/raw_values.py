"""Raw values of tensors for the recorder; what lies on a GPU comes to the host without being waited for."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import torch

from tdbg_lab.capture.late import LateRaw
from tdbg_lab.capture.pytorch.measuring import buffer_of, is_late
from tdbg_lab.capture.pytorch.values import PLAIN, raw_array

if TYPE_CHECKING:
    from tdbg_lab.capture.recorder import Recorder

__all__ = ["record_raw"]

_MAX_LATE_BYTES = 1 << 23
"""Larger values are copied at once, and waited for: they would be on the device twice."""


def record_raw(recorder: Recorder, name: str, tensor: torch.Tensor, rows: int | None = None) -> None:
    """Add a copy of the values; at most `rows` of the first dimension, evenly spread.

    bfloat16 and float8 become float32, because numpy does not know them.
    """
    late = _late(recorder, tensor, rows) if type(tensor) in PLAIN and is_late(tensor) else None
    recorder.add_raw(name, raw_array(tensor, rows) if late is None else late)


def _late(recorder: Recorder, tensor: torch.Tensor, rows: int | None) -> LateRaw | None:
    """The copy that the device will give; None where it cannot."""
    chosen = _chosen(tensor, rows)
    if chosen is None:
        return None
    buffer = buffer_of(recorder, chosen.device)
    first = buffer.add_values(chosen)
    if first is None:
        return None
    dtype = torch.empty(0, dtype=chosen.dtype).numpy().dtype
    return LateRaw(buffer, first, dtype, tuple(chosen.shape))


@torch.no_grad()
def _chosen(tensor: torch.Tensor, rows: int | None) -> torch.Tensor | None:
    """What is to be copied, contiguous; None of what is large, or no plain memory."""
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested or not tensor.numel():
        return None
    shape = tensor.shape or (1,)
    kept = shape[0] if rows is None else min(rows, shape[0])
    if kept * prod(shape[1:]) * tensor.itemsize > _MAX_LATE_BYTES:
        return None
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if kept < shape[0]:  # the same rows as `even_rows` picks
        tensor = tensor[torch.arange(kept, device=tensor.device) * shape[0] // kept]
    try:
        torch.empty(0, dtype=tensor.dtype).numpy()
    except TypeError:
        tensor = tensor.float()
    return tensor.contiguous()
