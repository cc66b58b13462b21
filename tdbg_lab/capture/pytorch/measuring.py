"""Rows of tensors for the recorder: ordinary ones on the CPU are measured straight into its columns.

What lies on a GPU is measured there, behind what made it, and nothing waits for it.
"""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import torch

from tdbg_lab.stats.device import DeviceBuffer
from tdbg_lab.stats.held import HeldNumbers
from tdbg_lab.stats.tensors import summarize_into, summarize_tensors
from tdbg_lab.stats.transforms import transforming
from tdbg_lab.stats.triton_kernels import triton_kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from tdbg_lab.capture.late import Told
    from tdbg_lab.capture.pytorch.known import Known
    from tdbg_lab.capture.recorder import Recorder
    from tdbg_lab.records import StatsBlock, TensorKey

__all__ = [
    "LATE",
    "buffer_of",
    "is_elsewhere",
    "is_late",
    "on_gpu",
    "record_facts",
    "record_late_numbers",
    "record_number",
    "record_one",
    "record_tensors",
]


class _When(Enum):
    LATE = "late"


LATE: Final = _When.LATE


def on_gpu(tensor: torch.Tensor) -> bool:
    """Whether a tensor lies where reading it means to wait."""
    return tensor.is_cuda


def is_late(tensor: torch.Tensor) -> bool:
    """Whether the values of a tensor are left for the device to give, when it is through."""
    return on_gpu(tensor) and not transforming()


def is_elsewhere(tensor: torch.Tensor) -> bool:
    """Whether a number is left where it lies: until its device gives it, or it is read with others."""
    return is_late(tensor) or _is_held(tensor)


def _is_held(tensor: torch.Tensor) -> bool:
    """Whether a number lies on a device that is not CUDA's, where it is read with others."""
    return not (tensor.is_cpu or tensor.is_cuda or tensor.is_meta) and not transforming()


def record_tensors(
    recorder: Recorder,
    keys: list[TensorKey],
    tensors: Sequence[torch.Tensor],
    *,
    channel_axes: Sequence[int | None] | None = None,
) -> StatsBlock | Literal[_When.LATE] | None:
    """Add a row for each tensor. They may change or go as soon as the call returns.

    Returns
    -------
    The rows, or None where they are the last of ``recorder.measured``, or `LATE` where a device is to measure
    some of them.
    """
    if not on_gpu(tensors[0]) and summarize_into(recorder.measured, tensors, channel_axes=channel_axes):
        recorder.add_measured(keys)
        return None
    if any(map(on_gpu, tensors)) and not transforming():
        _record_by_device(recorder, keys, tensors, channel_axes or (None,) * len(tensors))
        return LATE
    block = summarize_tensors(tensors, channel_axes=channel_axes)
    recorder.add(keys, block)
    return block


def record_one(
    recorder: Recorder, known: Known, tensor: torch.Tensor
) -> StatsBlock | Literal[_When.LATE] | None:
    """`record_tensors` of one tensor that comes again and again."""
    keys = [known.key]
    if on_gpu(tensor):
        if not transforming():
            _record_there(recorder, keys, [tensor], [known.repeated.axis])
            return LATE
    elif known.repeated.add(tensor):
        recorder.add_measured(keys)
        return None
    return record_tensors(recorder, keys, [tensor], channel_axes=[known.repeated.axis])


def _record_by_device(
    recorder: Recorder, keys: list[TensorKey], tensors: Sequence[torch.Tensor], axes: Sequence[int | None]
) -> None:
    """Add rows of tensors, each measured where it lies."""
    devices = {tensor.device for tensor in tensors}
    if len(devices) == 1:
        _record_on(recorder, keys, tensors, axes)
        return
    for device in devices:
        rows = [row for row, tensor in enumerate(tensors) if tensor.device == device]
        some = [tensors[row] for row in rows]
        _record_on(recorder, [keys[row] for row in rows], some, [axes[row] for row in rows])


def _record_on(
    recorder: Recorder, keys: list[TensorKey], tensors: Sequence[torch.Tensor], axes: Sequence[int | None]
) -> None:
    """Add rows of tensors that lie on one device."""
    if on_gpu(tensors[0]):
        _record_there(recorder, keys, tensors, axes)
    else:
        recorder.add(keys, summarize_tensors(tensors, channel_axes=axes))


def _record_there(
    recorder: Recorder, keys: list[TensorKey], tensors: Sequence[torch.Tensor], axes: Sequence[int | None]
) -> None:
    """Have a device measure tensors that lie on it."""
    buffer = buffer_of(recorder, tensors[0].device)
    if buffer.add(tensors, axes) is not None:
        recorder.add_late(buffer, keys)


def record_number(recorder: Recorder, key: TensorKey, value: float | torch.Tensor) -> None:
    """Add a row with one number, which may lie on a device."""
    if isinstance(value, float):
        recorder.add_scalar(key, value)
    elif value.numel() == 1 and is_elsewhere(value):
        record_late_numbers(recorder, value, lambda found: ([key], found.tolist()))
    else:
        recorder.add_scalar(key, float(value.detach()))


def record_late_numbers(recorder: Recorder, values: torch.Tensor, told: Told) -> None:
    """Add what follows from real numbers that lie on a device.

    Parameters
    ----------
    told
        Called with them as float64, 1-D, in another thread: keys and values of rows with one number each.
    """
    device = values.device
    buffer = _holder_of(recorder, device) if _is_held(values) else buffer_of(recorder, device)
    first = buffer.add_numbers(values)
    if first is not None:
        recorder.add_late_numbers(buffer, first, values.numel(), told)


def record_facts(
    recorder: Recorder,
    tensors: Sequence[torch.Tensor],
    told: Callable[[list[NDArray[Any]]], tuple[Sequence[TensorKey], Sequence[float]]],
) -> None:
    """Add what follows from the values of a few real tensors, the floating-point ones as float32.

    Parameters
    ----------
    told
        Called with them in memory: at once, or in another thread when a GPU has given them.
    """
    if not all(map(is_late, tensors)) or len({tensor.device for tensor in tensors}) > 1:
        wide = [tensor.float() if tensor.is_floating_point() else tensor for tensor in tensors]
        recorder.add_scalars(*told([tensor.cpu().numpy() for tensor in wide]))
        return
    shapes = [tuple(tensor.shape) for tensor in tensors]
    types = [np.float32 if tensor.is_floating_point() else np.int64 for tensor in tensors]

    def unpacked(values: NDArray[Any]) -> tuple[Sequence[TensorKey], Sequence[float]]:
        ends = np.cumsum([prod(shape) for shape in shapes])
        pieces = np.split(values, ends[:-1])
        return told(
            [one.astype(kind).reshape(shape) for one, kind, shape in zip(pieces, types, shapes, strict=True)]
        )

    record_late_numbers(recorder, torch.cat([tensor.reshape(-1).double() for tensor in tensors]), unpacked)


def buffer_of(recorder: Recorder, device: torch.device) -> DeviceBuffer:
    """What measures on a device for this recorder."""
    found = recorder.sources.get(device)
    if found is None:
        if device.type == "cuda":
            triton_kernels().warm_up()
        found = recorder.sources[device] = DeviceBuffer(device)
    assert isinstance(found, DeviceBuffer)  # noqa: S101
    return found


def _holder_of(recorder: Recorder, device: torch.device) -> HeldNumbers:
    """What holds numbers of another device for this recorder."""
    found = recorder.sources.get(device)
    if found is None:
        found = recorder.sources[device] = HeldNumbers()
    assert isinstance(found, HeldNumbers)  # noqa: S101
    return found
