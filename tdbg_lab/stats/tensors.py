"""Statistics of torch tensors: any type, layout and device; never an exception.

A dense CPU tensor is read in place, in the order in which it is stored. Everything else is first
turned into dense parts (`tdbg_lab.stats.layouts`), whose statistics merge to those of the tensor.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch

from tdbg_lab.stats import torch_ops
from tdbg_lab.stats.block import concat, empty_block, take
from tdbg_lab.stats.device import DeviceBuffer, summarize_on_device
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.fetching import fetched
from tdbg_lab.stats.gather import sentence, take_apart
from tdbg_lab.stats.layouts import memory_of, ordinary_memory
from tdbg_lab.stats.team import torch_team
from tdbg_lab.stats.transforms import outside_transforms, transforming, unwrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tdbg_lab.records import StatsBlock
    from tdbg_lab.stats.growing import GrowingBlock
    from tdbg_lab.stats.layouts import Part

__all__ = [
    "MAX_CHANNELS",
    "DeviceBuffer",
    "default_channel_axis",
    "says_its_axis",
    "summarize_into",
    "summarize_tensors",
]

log = logging.getLogger(__name__)

MAX_CHANNELS = 4096
"""Dimensions longer than this (a vocabulary) are not taken for channels by default."""

_FEATURES_LAST = (
    "Linear", "Norm1d", "LayerNorm", "RMSNorm", "Embedding", "Attention", "Transformer", "LSTM", "GRU", "RNN",
)  # fmt: skip
_CHANNELS_FIRST = ("Conv", "BatchNorm", "InstanceNorm", "GroupNorm", "Pool", "Upsample", "PixelShuffle")


def summarize_tensors(
    tensors: Sequence[Tensor], *, channel_axes: Sequence[int | None] | None = None
) -> StatsBlock:
    """Statistics of each tensor, one row each. Never raises: a row may have a reason instead.

    Parameters
    ----------
    tensors : sequence of torch.Tensor
        Any type, layout and device. They are read before the call returns and not referenced after.
        Complex ones are described by their modulus, quantised ones by the values they stand for,
        sparse ones with their implicit zeros, distributed ones by the local shard.
    channel_axes : sequence of int or None, optional
        Per tensor, the axis to measure channels along; None to leave them out.

    Notes
    -----
    A tensor on a device makes this call wait for it; `DeviceBuffer` does not wait for CUDA.
    """
    try:
        if channel_axes is None:
            channel_axes = (None,) * len(tensors)
        if transforming():
            return _under_transform(tensors, channel_axes)
        memories = [_plain(tensor, axis) for tensor, axis in zip(tensors, channel_axes, strict=True)]
        cpu = engine()
        if None not in memories and cpu.usable():
            return cpu.measure(memories, threads=torch.get_num_threads(), team=torch_team())  # type: ignore[arg-type]
        return _any_tensors(tensors, channel_axes)
    except Exception as error:
        log.warning("Statistics of %d tensors failed.", len(tensors), exc_info=True)
        return empty_block(len(tensors), sentence(error))


def summarize_into(
    target: GrowingBlock, tensors: Sequence[Tensor], *, channel_axes: Sequence[int | None] | None = None
) -> bool:
    """Add the rows of `summarize_tensors` to `target`, if that is quick: the tensors are ordinary CPU ones.

    Returns
    -------
    Whether they were added; if not, nothing was.

    Raises
    ------
    MemoryError
        There is no room for the rows.
    """
    cpu = engine()
    if transforming() or not cpu.usable():
        return False
    if channel_axes is None:
        channel_axes = (None,) * len(tensors)
    memories = [_plain(tensor, axis) for tensor, axis in zip(tensors, channel_axes, strict=True)]
    if None in memories:
        return False
    cpu.measure_into(target, memories, threads=torch.get_num_threads(), team=torch_team())  # type: ignore[arg-type]
    return True


def _under_transform(tensors: Sequence[Tensor], axes: Sequence[int | None]) -> StatsBlock:
    """Statistics of the values that ``torch.func`` wraps; an axis of a wrapper is none of theirs."""
    plain = [unwrapped(tensor) for tensor in tensors]
    kept = [axis if new is old else None for new, old, axis in zip(plain, tensors, axes, strict=True)]
    with outside_transforms():
        return _any_tensors([tensor.detach() for tensor in plain], kept)


def default_channel_axis(shape: Sequence[int], module_type_name: str) -> int | None:
    """The axis along which the output of a module has its units; None when it has none to tell apart.

    Parameters
    ----------
    shape : sequence of int
        Of the output.
    module_type_name : str
        Name of the module's class, such as ``"Conv2d"``.
    """
    ndim = len(shape)
    if ndim < 2:
        return None
    if any(word in module_type_name for word in _CHANNELS_FIRST):
        axis = 1
    elif ndim == 3 or any(word in module_type_name for word in _FEATURES_LAST):
        axis = ndim - 1
    else:
        axis = 1
    return axis if 1 <= shape[axis] <= MAX_CHANNELS else None


def says_its_axis(module_type_name: str) -> bool:
    """Whether a class is known to have its units along an axis, and does not take it as it comes."""
    return any(word in module_type_name for word in (*_CHANNELS_FIRST, *_FEATURES_LAST))


def _plain(tensor: Tensor, axis: int | None) -> tuple[int, int, int, int, int] | None:
    """Memory of an ordinary contiguous CPU tensor; None for all others."""
    found = ordinary_memory(tensor, axis)
    return found if found is not None and tensor.is_cpu else None


def _any_tensors(tensors: Sequence[Tensor], axes: Sequence[int | None]) -> StatsBlock:
    """Statistics by way of dense parts, each measured where it lies."""
    parts, layout = take_apart(tensors, axes)
    by_device: dict[torch.device, list[int]] = {}
    for i, part in enumerate(parts):
        by_device.setdefault(part.values.device, []).append(i)
    blocks = [_on_one_device([parts[i] for i in rows]) for rows in by_device.values()]
    order = [i for rows in by_device.values() for i in rows]
    return layout.join(take(concat(blocks), np.argsort(order, kind="stable")))


def _on_one_device(parts: Sequence[Part]) -> StatsBlock:
    kind = parts[0].values.device.type
    if kind == "cuda":
        return summarize_on_device(parts)
    if kind != "cpu":
        parts = fetched(parts)
    if engine().usable():
        memories = [memory_of(part.values, part.axis) for part in parts]
        return engine().measure(memories, threads=torch.get_num_threads(), team=torch_team())
    with torch.no_grad():
        return torch_ops.summarize(
            [part.values for part in parts], channel_axes=[part.axis for part in parts]
        )
