"""The statistics by torch operations, for devices without a kernel of ours.

Every operation is queued on the device and none waits for it: no boolean indexing, no ``.item()``.
Long tensors are taken in parts, so that temporaries stay bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from tdbg_lab.stats.bins import N_BINS
from tdbg_lab.stats.partials import block_from_partials

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tdbg_lab.records import StatsBlock

__all__ = ["Queued", "channel_sums", "finish", "queue", "summarize"]

_PART = 1 << 22
"""Elements handled at a time."""
_TINY = 2.0**-149
_MAX = torch.finfo(torch.float32).max


class Queued(NamedTuple):
    """Results that the device may still be working on."""

    partials: Tensor
    """``(P, 10) float64``, by `tdbg_lab.stats.partials.COLUMNS`."""
    counts: list[int]
    """Partials of each tensor."""
    hist: Tensor
    """``(N, 2048) int64``."""
    channels: list[Tensor | None]
    """Per tensor what `channel_sums` gives."""
    sizes: list[int]
    """Elements of each tensor."""


def summarize(tensors: Sequence[Tensor], *, channel_axes: Sequence[int | None]) -> StatsBlock:
    """Statistics of dense real tensors on one or several devices, one row each. Waits for them."""
    if not tensors:
        from tdbg_lab.stats.block import empty_block

        return empty_block()
    with torch.no_grad():
        queued = queue(tensors, channel_axes)
    return finish(queued)


def finish(queued: Queued) -> StatsBlock:
    """Results as a block; waits for the device when they are still there."""
    sums = queued.channels
    return block_from_partials(
        queued.partials.cpu().numpy(),
        range(len(queued.counts)),
        queued.counts,
        queued.hist.cpu().numpy(),
        np.concatenate([np.zeros((0, 3)), *(one.cpu().numpy() for one in sums if one is not None)]),
        widths=[(0 if one is None else len(one), n) for one, n in zip(sums, queued.sizes, strict=True)],
    )


def queue(tensors: Sequence[Tensor], channel_axes: Sequence[int | None]) -> Queued:
    """Queue everything on the device of the tensors."""
    home = tensors[0].device
    partials, counts, hists, channels = [], [], [], []
    for tensor, axis in zip(tensors, channel_axes, strict=True):
        flat = _flat(tensor)
        hist = torch.zeros(N_BINS + 1, dtype=torch.int64, device=tensor.device)
        pieces = torch.split(flat, _PART) if flat.numel() else (flat,)
        for part in pieces:
            wide, narrow = _widened(part)
            partials.append(_moments(wide).to(home))
            _count_bins(wide, narrow, hist)
        counts.append(len(pieces))
        hists.append(hist[:N_BINS].to(home))
        channels.append(channel_sums(tensor, axis))
    sizes = [tensor.numel() for tensor in tensors]
    return Queued(torch.stack(partials), counts, torch.stack(hists), channels, sizes)


def channel_sums(tensor: Tensor, axis: int | None) -> Tensor | None:
    """Zeros, sum and number of the finite elements of each channel, ``(C, 3) float64``; None without."""
    if axis is None or not tensor.numel() or not -tensor.ndim <= axis < tensor.ndim:
        return None
    if tensor.dtype.itemsize == 1:
        tensor = tensor.float()
    finite = torch.isfinite(tensor)
    kept = torch.where(finite, tensor, torch.zeros((), dtype=tensor.dtype, device=tensor.device))
    others = [dim for dim in range(tensor.ndim) if dim != axis % tensor.ndim]
    if not others:
        return torch.stack([(tensor == 0).double(), kept.double(), finite.double()], 1)
    return torch.stack([one.sum(dim=others, dtype=torch.float64) for one in (tensor == 0, kept, finite)], 1)


def _flat(tensor: Tensor) -> Tensor:
    """All elements in storage order (which a dense permuted tensor allows without a copy)."""
    if tensor.is_contiguous():
        return tensor.reshape(-1)
    steps = tensor.stride()
    order = sorted(range(tensor.ndim), key=lambda dim: (-steps[dim], dim))
    return tensor.permute(order).reshape(-1)


def _widened(part: Tensor) -> tuple[Tensor, Tensor]:
    """A part as float64, and as float32 rounded the way the bins want it."""
    if part.dtype.itemsize == 1 and part.dtype.is_floating_point:
        part = part.float()
    if part.dtype in (torch.uint16, torch.uint32):
        part = part.long()
    elif part.dtype is torch.uint64:
        return _widened_uint64(part)
    wide, narrow = part.double(), part.float()
    if part.dtype is torch.float64:
        narrow = torch.where((narrow == 0) & (wide != 0), torch.copysign(_scalar(_TINY, wide), wide), narrow)
        over = torch.isinf(narrow) & torch.isfinite(wide)
        narrow = torch.where(over, torch.copysign(_scalar(_MAX, wide), wide), narrow)
    return wide, narrow.float()


def _widened_uint64(part: Tensor) -> tuple[Tensor, Tensor]:
    """uint64 has next to no operations: halve large values, keeping the last bit for the rounding."""
    signed = part.view(torch.int64)
    large = signed < 0
    half = (signed >> 1) & 0x7FFFFFFFFFFFFFFF | (signed & 1)
    wide = torch.where(large, half.double() * 2, signed.double())
    narrow = torch.where(large, half.float() * 2, signed.float())
    return wide, narrow


def _scalar(value: float, like: Tensor) -> Tensor:
    return torch.full((), value, dtype=torch.float64, device=like.device)


def _moments(wide: Tensor) -> Tensor:
    """One row of `tdbg_lab.stats.partials.COLUMNS`, ``(10,) float64``."""
    finite = torch.isfinite(wide)
    n = finite.sum()
    counts = [n, torch.isnan(wide).sum(), (wide == torch.inf).sum(), (wide == -torch.inf).sum()]
    counts.append((wide == 0).sum())
    kept = torch.where(finite, wide, 0.0)
    some = n.clamp(min=1)
    unit = kept.abs().max().clamp(min=1e-300) if wide.numel() else some.double()
    scaled = kept / unit  # so that squares neither overflow nor vanish
    mean = scaled.sum() / some
    centered = torch.where(finite, scaled - mean, 0.0)
    mean = mean + centered.sum() / some
    centered = torch.where(finite, scaled - mean, 0.0)
    std = ((centered * centered).sum() / some).sqrt()
    if wide.numel():
        low = torch.where(finite, wide, torch.inf).min()
        high = torch.where(finite, wide, -torch.inf).max()
    else:
        low = high = mean
    values = [low, high, mean * unit, std * unit, kept.abs().sum()]
    return torch.stack([value.double() for value in (*counts, *values)])


def _count_bins(wide: Tensor, narrow: Tensor, hist: Tensor) -> None:
    """Add a part to ``(2049,) int64`` counts; what has no bin goes to the last."""
    bins = (narrow.view(torch.int32) >> 21) & (N_BINS - 1)
    counted = torch.isfinite(wide) & (wide != 0)
    bins = torch.where(counted, bins, N_BINS).long()
    if hist.device.type == "cpu":
        hist += torch.bincount(bins, minlength=N_BINS + 1)
    else:  # bincount asks the device for its maximum, and waits
        hist.index_add_(0, bins, torch.ones_like(bins))
