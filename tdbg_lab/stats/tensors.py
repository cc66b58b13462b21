"""Statistics of torch tensors: any type, layout and device; never an exception.

A dense CPU tensor is read in place, in the order in which it is stored. Everything else is first
turned into dense parts (`tdbg_lab.stats.layouts`), whose statistics merge to those of the tensor.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np
import torch

from tdbg_lab.stats.block import concat, empty_block, scalar_block, take
from tdbg_lab.stats.engine import engine
from tdbg_lab.stats.layouts import DTYPE_CODES, NotMeasuredError, Part, dense_parts, memory_of
from tdbg_lab.stats.merging import merge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from tdbg_lab.records import StatsBlock

__all__ = ["MAX_CHANNELS", "default_channel_axis", "summarize_tensors"]

log = logging.getLogger(__name__)

MAX_CHANNELS = 4096
"""Dimensions longer than this (a vocabulary) are not taken for channels by default."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)
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
    A CUDA tensor makes this call wait for the device; `tdbg_lab.stats.ring.DeviceBuffer` does not.
    """
    try:
        if channel_axes is None:
            channel_axes = (None,) * len(tensors)
        memories = [_plain(tensor, axis) for tensor, axis in zip(tensors, channel_axes, strict=True)]
        cpu = engine()
        if None not in memories and cpu.usable():
            return cpu.measure(memories, threads=torch.get_num_threads())  # type: ignore[arg-type]
        return _any_tensors(tensors, channel_axes)
    except Exception as error:
        log.warning("Statistics of %d tensors failed.", len(tensors), exc_info=True)
        return empty_block(len(tensors), _sentence(error))


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


def _plain(tensor: Tensor, axis: int | None) -> tuple[int, int, int, int, int] | None:
    """Memory of an ordinary contiguous CPU tensor, without a detour; None for all others."""
    if type(tensor) not in _PLAIN or not tensor.is_cpu or tensor.layout is not torch.strided:
        return None
    code = DTYPE_CODES.get(tensor.dtype)
    if code is None or tensor.is_nested or tensor.is_neg() or not tensor.is_contiguous():
        return None
    if axis is not None:
        return memory_of(tensor, axis)
    return tensor.data_ptr(), code, tensor.numel(), 0, 0


def _any_tensors(tensors: Sequence[Tensor], axes: Sequence[int | None]) -> StatsBlock:
    """Statistics by way of dense parts."""
    parts: list[Part] = []
    owners: list[int] = []
    reasons: dict[int, str] = {}
    for row, (tensor, axis) in enumerate(zip(tensors, axes, strict=True)):
        try:
            with torch.no_grad():
                found = dense_parts(tensor, axis)
        except NotMeasuredError as error:
            reasons[row] = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a tensor subclass raises is its reason
            reasons[row] = _sentence(error)
        else:
            parts += found
            owners += [row] * len(found)
    block = _measure_parts(parts)
    extra = [(owner, part.zeros) for owner, part in zip(owners, parts, strict=True) if part.zeros]
    blocks = [block, *(_zeros(n) for _, n in extra), *(empty_block(1, why) for why in reasons.values())]
    groups = [*owners, *(owner for owner, _ in extra), *reasons]
    if not extra and len(set(groups)) == len(groups):
        return take(concat(blocks), np.argsort(groups, kind="stable"))
    return merge(concat(blocks), groups, len(tensors))


def _measure_parts(parts: Sequence[Part]) -> StatsBlock:
    """Statistics of dense parts, one row each, each where it lies."""
    from tdbg_lab.stats import torch_ops

    on_cpu = [i for i, part in enumerate(parts) if part.values.device.type == "cpu"]
    away = [i for i, part in enumerate(parts) if part.values.device.type != "cpu"]
    blocks = []
    if on_cpu and engine().usable():
        memories = [memory_of(parts[i].values, parts[i].axis) for i in on_cpu]
        blocks.append(engine().measure(memories, threads=torch.get_num_threads()))
    else:
        on_cpu, away = [], list(range(len(parts)))
    if away:
        values, axes = [parts[i].values for i in away], [parts[i].axis for i in away]
        blocks.append(torch_ops.summarize(values, channel_axes=axes))
    return take(concat(blocks), np.argsort([*on_cpu, *away], kind="stable"))


def _zeros(n: int) -> StatsBlock:
    """Statistics of `n` zeros."""
    block = scalar_block([0.0])
    block.count[0] = block.zero_count[0] = n
    return block


def _sentence(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    return f"{type(error).__name__}: {text}"[:200]
